"""Boxes: drawn, warned about, applied, moved, withdrawn."""

import pytest
from playwright.sync_api import expect

from page.reading_screen import near

pytestmark = pytest.mark.xdist_group("page")  # one server and one browser for all of them


def formatted(mean: float) -> str:
    """A number as the page shows it."""
    return f"{mean:.2f}".replace("-", "−")


def test_a_wrong_box_gets_a_warning_and_cancel_applies_nothing(open_film):
    screen = open_film()
    wrong = screen.wrong_claim()
    seen = screen.titles()[wrong.check["rival"]]

    screen.draw_for(wrong)
    screen.tells_of(wrong.box)

    means = {
        finding["name"]: formatted(finding["mean"])
        for finding in screen.check(screen.box_seen(), wrong.concept)["concepts"]
    }
    figures = f"({means[wrong.check['rival']]} against {means[wrong.concept]})"
    expect(screen.warning).to_contain_text(f"You said {wrong.title}.")
    expect(screen.warning).to_contain_text(f"Inside this box the model sees {seen} {figures}.")
    expect(screen.warning.get_by_role("img", name=f"What you said: {wrong.title}")).to_be_visible()
    expect(screen.warning.get_by_role("img", name=f"What the model sees: {seen}")).to_be_visible()
    screen.warning.get_by_role("button", name="Cancel").click()
    expect(screen.warning).to_have_count(0)
    expect(screen.card).to_have_count(0)
    assert screen.study()["revision"] == 0


def test_a_wrong_box_drawn_again_gets_a_second_warning(open_film):
    screen = open_film()
    wrong = screen.wrong_claim()
    for _ in range(2):
        screen.draw_for(wrong)
        screen.warning.get_by_role("button", name="Cancel").click()
        expect(screen.warning).to_have_count(0)


def test_a_wrong_box_needs_a_reason_which_the_history_shows(open_film):
    screen = open_film()
    wrong = screen.wrong_claim()
    screen.draw_for(wrong)
    anyway = screen.warning.get_by_role("button", name="Apply anyway")
    expect(anyway).to_be_disabled()
    screen.warning.get_by_label("Why you are right").fill("  ")
    expect(anyway).to_be_disabled()

    screen.warning.get_by_label("Why you are right").fill("Seen on the earlier film.")
    anyway.click()

    expect(screen.corrections).to_have_text([f"1. {wrong.title} is hereagainst the model✕"])
    expect(screen.history).to_have_count(1)
    expect(screen.history.first.locator("q")).to_have_text("Seen on the earlier film.")
    (kept,) = screen.study()["corrections"]
    assert (kept["kind"], kept["concept"], kept["confirmed"]) == ("box", wrong.concept, True)
    assert near(kept["box"], wrong.box)
    assert [one["reason"] for one in screen.steps()] == ["Seen on the earlier film."]

    screen.button("Undo").click()
    expect(screen.corrections).to_have_count(0)
    assert screen.study()["corrections"] == []
    screen.button("Redo").click()
    expect(screen.corrections).to_have_count(1)
    assert screen.study()["corrections"] == [kept]


def test_a_box_with_a_warning_can_take_the_finding_that_the_model_sees(open_film):
    screen = open_film()
    wrong = screen.wrong_claim()
    seen = screen.titles()[wrong.check["rival"]]
    screen.draw_for(wrong)
    screen.warning.get_by_role("button", name=f"Change it to {seen}").click()
    expect(screen.corrections).to_have_text([f"1. {seen} is here✕"])
    (kept,) = screen.study()["corrections"]
    assert (kept["concept"], kept["confirmed"]) == (wrong.check["rival"], False)


def test_while_a_box_is_drawn_the_page_shows_what_the_model_sees_inside(open_film):
    screen = open_film()
    wrong = screen.wrong_claim()
    screen.choose(wrong.concept)
    x1, y1, x2, y2 = wrong.box

    screen.hold((x1, y1), (x1 + 30, y1 + 30))
    screen.tells_of((x1, y1, x1 + 30, y1 + 30))
    screen.page.mouse.move(*screen.at(x2, y2), steps=3)
    screen.tells_of(wrong.box)

    check = screen.check(screen.box_seen(), wrong.concept)
    rows = [f"{screen.titles()[one['name']]}{formatted(one['mean'])}" for one in check["concepts"]]
    expect(screen.card.locator(".box-check li")).to_have_text(rows)
    expect(screen.card.locator(".verdict.warned")).to_contain_text("The model sees")
    expect(screen.warning).to_have_count(0)  # nobody is interrupted while they draw
    screen.page.mouse.up()
    expect(screen.warning).to_be_visible()
    assert screen.study()["revision"] == 0


def test_an_applied_box_is_moved_resized_and_removed_and_undo_brings_it_back(open_film):
    screen = open_film()
    right = screen.right_claim()
    x1, y1, x2, y2 = right.box
    screen.apply(right)
    assert near(screen.study()["corrections"][0]["box"], right.box)

    screen.pick(right.box)
    expect(screen.card.locator("strong")).to_have_text("Box 1")
    screen.drag((x1 + 30, y1 + 30), (x1 + 38, y1 + 36))
    screen.press_apply()
    expect(screen.history.first).to_contain_text("Changed:")
    moved = (x1 + 8, y1 + 6, x2 + 8, y2 + 6)
    assert screen.steps()[-1]["kind"] == "redrawn"
    assert near(screen.study()["corrections"][0]["box"], moved)

    screen.pick(moved)
    screen.drag(moved[2:], (moved[2] - 12, moved[3] - 10))
    screen.press_apply()
    expect(screen.history).to_have_count(3)
    resized = (*moved[:2], moved[2] - 12, moved[3] - 10)
    assert near(screen.study()["corrections"][0]["box"], resized)

    screen.pick(resized)
    expect(screen.card).to_be_visible()
    screen.page.keyboard.press("Delete")
    expect(screen.corrections).to_have_count(0)
    assert screen.steps()[-1]["kind"] == "withdrawn"
    assert screen.study()["corrections"] == []
    screen.page.keyboard.press("Control+z")
    expect(screen.corrections).to_have_count(1)
    assert near(screen.study()["corrections"][0]["box"], resized)


def test_a_box_can_say_that_a_finding_is_not_here(open_film):
    screen = open_film()
    right = screen.right_claim()
    screen.draw_for(right)
    screen.card.get_by_label("is here").select_option("is not here")
    expect(screen.card.locator(".verdict")).to_contain_text("is not checked")
    screen.press_apply()
    expect(screen.corrections).to_have_text([f"1. {right.title} is not here✕"])
    (kept,) = screen.study()["corrections"]
    assert (kept["kind"], kept["concept"]) == ("not_box", right.concept)


def test_a_finding_is_rejected_by_key_and_the_rejection_withdrawn(open_film):
    screen = open_film()
    name, title = next(iter(screen.titles().items()))
    screen.choose(name)
    screen.page.keyboard.press("x")
    expect(screen.corrections).to_have_text([f"1. {title} is not on this film✕"])
    expect(screen.finding(name)).to_have_accessible_name(f"{title} rejected")
    assert [(one["kind"], one["concept"]) for one in screen.study()["corrections"]] == [("reject", name)]
    screen.page.keyboard.press("x")
    expect(screen.corrections).to_have_count(0)
    expect(screen.finding(name)).not_to_have_accessible_name(f"{title} rejected")
    assert screen.steps()[-1]["kind"] == "withdrawn"


def test_a_past_step_of_the_history_cannot_be_changed(open_film):
    screen = open_film()
    right = screen.right_claim()
    screen.apply(right)
    rejected = next(name for name in screen.titles() if name != right.concept)
    screen.choose(rejected)
    screen.page.keyboard.press("x")
    expect(screen.corrections).to_have_count(2)
    looking = screen.page.locator(".history-notice")

    screen.page.keyboard.press("[")
    expect(looking).to_contain_text("You are viewing step 1 of 2.")
    expect(screen.corrections).to_have_count(1)
    expect(screen.history.nth(1)).to_have_attribute("aria-current", "step")
    screen.page.keyboard.press("[")
    expect(looking).to_contain_text("Before any correction")
    expect(screen.corrections).to_have_count(0)
    first = screen.study()["first_prediction"]
    for name, share in first.items():
        expect(screen.page.locator(f"[data-class={name}]")).to_have_text(
            f"{share:.0%}" if share >= 0.01 else f"{share:.1%}"
        )

    screen.draw(right.box)
    expect(screen.card).to_have_count(0)
    expect(screen.button("Undo")).to_be_disabled()
    screen.page.keyboard.press("]")
    expect(looking).to_contain_text("step 1 of 2")
    screen.page.keyboard.press("Escape")
    expect(looking).to_have_count(0)
    expect(screen.corrections).to_have_count(2)
    assert screen.study()["revision"] == 2
