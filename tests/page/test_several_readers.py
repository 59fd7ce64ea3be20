"""Several readers of a film, and one reader in several windows."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("page")


def test_two_readers_of_a_film_have_separate_studies(open_film):
    rita, rolf = open_film("rita"), open_film("rolf")
    assert rita.study_id != rolf.study_id

    rita.apply(rita.right_claim())

    expect(rita.corrections).to_have_count(1)
    rolf.page.reload()
    rolf.shown()
    expect(rolf.corrections).to_have_count(0)
    expect(rolf.page.get_by_text("No corrections yet.")).to_be_visible()
    assert (rita.study()["revision"], rolf.study()["revision"]) == (1, 0)


def test_a_step_in_an_outdated_window_is_refused_and_the_window_is_updated(open_film, watch):
    watch.expects("409")
    first_window = open_film()
    second_window = open_film(page=first_window.page.context.new_page())
    first, second = list(first_window.titles())[:2]
    first_window.choose(first)
    first_window.page.keyboard.press("x")
    expect(first_window.corrections).to_have_count(1)

    second_window.choose(second)
    second_window.page.keyboard.press("x")

    expect(second_window.page.get_by_role("alert")).to_contain_text("The study was changed in another window.")
    expect(second_window.corrections).to_have_text([f"1. {first_window.titles()[first]} is not on this film✕"])
    assert [step["correction"]["concept"] for step in first_window.steps()] == [first]
    second_window.page.get_by_role("alert").get_by_role("button", name="Close").click()
    second_window.page.keyboard.press("x")
    expect(second_window.corrections).to_have_count(2)
    assert [step["correction"]["concept"] for step in first_window.steps()] == [first, second]
