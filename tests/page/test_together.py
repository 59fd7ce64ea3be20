"""Several people, and one person in several windows."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("page")


def test_two_readers_of_a_film_each_have_a_study_of_their_own(at_the_light_box):
    rita, rolf = at_the_light_box("rita"), at_the_light_box("rolf")
    assert rita.study_id != rolf.study_id

    rita.apply(rita.right_claim())

    expect(rita.corrections).to_have_count(1)
    rolf.page.reload()
    rolf.shown()
    expect(rolf.corrections).to_have_count(0)
    expect(rolf.page.get_by_text("No corrections yet.")).to_be_visible()
    assert (rita.study()["revision"], rolf.study()["revision"]) == (1, 0)


def test_a_step_from_a_window_that_is_behind_is_refused_and_the_window_catches_up(at_the_light_box, watch):
    watch.expects("409")
    one = at_the_light_box()
    other = at_the_light_box(page=one.page.context.new_page())
    first, second = list(one.titles())[:2]
    one.choose(first)
    one.page.keyboard.press("x")
    expect(one.corrections).to_have_count(1)

    other.choose(second)
    other.page.keyboard.press("x")

    expect(other.page.get_by_role("alert")).to_contain_text("The study was changed in another window.")
    expect(other.corrections).to_have_text([f"1. {one.titles()[first]} is not on this film✕"])
    assert [step["correction"]["concept"] for step in one.steps()] == [first]
    other.page.get_by_role("alert").get_by_role("button", name="Close").click()
    other.page.keyboard.press("x")
    expect(other.corrections).to_have_count(2)
    assert [step["correction"]["concept"] for step in one.steps()] == [first, second]
