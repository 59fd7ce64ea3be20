"""Boxes: drawn, doubted, applied, moved, taken back."""

import pytest
from playwright.sync_api import expect

from page.light_box import near

pytestmark = pytest.mark.xdist_group("page")  # one server and one browser for all of them


def said(mean: float) -> str:
    """A figure as the page writes it."""
    return f"{mean:.2f}".replace("-", "−")


def test_a_wrong_box_is_warned_of_and_nothing_is_applied_when_one_cancels(at_the_light_box):
    desk = at_the_light_box()
    wrong = desk.wrong_claim()
    seen = desk.titles()[wrong.check["rival"]]

    desk.draw_for(wrong)
    desk.tells_of(wrong.box)

    means = {one["name"]: said(one["mean"]) for one in desk.check(desk.box_seen(), wrong.concept)["concepts"]}
    figures = f"({means[wrong.check['rival']]} against {means[wrong.concept]})"
    expect(desk.doubt).to_contain_text(f"You said {wrong.title}.")
    expect(desk.doubt).to_contain_text(f"Inside this box the model sees {seen} {figures}.")
    expect(desk.doubt.get_by_role("img", name=f"What you said: {wrong.title}")).to_be_visible()
    expect(desk.doubt.get_by_role("img", name=f"What the model sees: {seen}")).to_be_visible()
    desk.doubt.get_by_role("button", name="Cancel").click()
    expect(desk.doubt).to_have_count(0)
    expect(desk.card).to_have_count(0)
    assert desk.study()["revision"] == 0


def test_a_box_drawn_a_second_time_is_warned_of_a_second_time(at_the_light_box):
    desk = at_the_light_box()
    wrong = desk.wrong_claim()
    for _ in range(2):
        desk.draw_for(wrong)
        desk.doubt.get_by_role("button", name="Cancel").click()
        expect(desk.doubt).to_have_count(0)


def test_a_wrong_box_is_applied_only_with_a_reason_which_the_history_keeps(at_the_light_box):
    desk = at_the_light_box()
    wrong = desk.wrong_claim()
    desk.draw_for(wrong)
    anyway = desk.doubt.get_by_role("button", name="Apply anyway")
    expect(anyway).to_be_disabled()
    desk.doubt.get_by_label("Why you are right").fill("  ")
    expect(anyway).to_be_disabled()

    desk.doubt.get_by_label("Why you are right").fill("Seen on the earlier film.")
    anyway.click()

    expect(desk.corrections).to_have_text([f"1. {wrong.title} is hereagainst the model✕"])
    expect(desk.history).to_have_count(1)
    expect(desk.history.first.locator("q")).to_have_text("Seen on the earlier film.")
    (kept,) = desk.study()["corrections"]
    assert (kept["kind"], kept["concept"], kept["confirmed"]) == ("box", wrong.concept, True)
    assert near(kept["box"], wrong.box)
    assert [one["reason"] for one in desk.steps()] == ["Seen on the earlier film."]

    desk.button("Undo").click()
    expect(desk.corrections).to_have_count(0)
    assert desk.study()["corrections"] == []
    desk.button("Redo").click()
    expect(desk.corrections).to_have_count(1)
    assert desk.study()["corrections"] == [kept]


def test_a_doubted_box_becomes_the_finding_that_the_model_sees(at_the_light_box):
    desk = at_the_light_box()
    wrong = desk.wrong_claim()
    seen = desk.titles()[wrong.check["rival"]]
    desk.draw_for(wrong)
    desk.doubt.get_by_role("button", name=f"Change it to {seen}").click()
    expect(desk.corrections).to_have_text([f"1. {seen} is here✕"])
    (kept,) = desk.study()["corrections"]
    assert (kept["concept"], kept["confirmed"]) == (wrong.check["rival"], False)


def test_while_the_hand_draws_it_is_told_what_the_model_sees_inside(at_the_light_box):
    desk = at_the_light_box()
    wrong = desk.wrong_claim()
    desk.choose(wrong.concept)
    x1, y1, x2, y2 = wrong.box

    desk.hold((x1, y1), (x1 + 30, y1 + 30))
    desk.tells_of((x1, y1, x1 + 30, y1 + 30))
    desk.page.mouse.move(*desk.at(x2, y2), steps=3)
    desk.tells_of(wrong.box)

    told = desk.check(desk.box_seen(), wrong.concept)
    rows = [f"{desk.titles()[one['name']]}{said(one['mean'])}" for one in told["concepts"]]
    expect(desk.card.locator(".box-check li")).to_have_text(rows)
    expect(desk.card.locator(".verdict.warned")).to_contain_text("The model sees")
    expect(desk.doubt).to_have_count(0)  # nobody is interrupted while they draw
    desk.page.mouse.up()
    expect(desk.doubt).to_be_visible()
    assert desk.study()["revision"] == 0


def test_an_applied_box_is_moved_resized_and_removed_and_undo_brings_it_back(at_the_light_box):
    desk = at_the_light_box()
    right = desk.right_claim()
    x1, y1, x2, y2 = right.box
    desk.apply(right)
    assert near(desk.study()["corrections"][0]["box"], right.box)

    desk.pick(right.box)
    expect(desk.card.locator("strong")).to_have_text("Box 1")
    desk.drag((x1 + 30, y1 + 30), (x1 + 38, y1 + 36))
    desk.press_apply()
    expect(desk.history.first).to_contain_text("Changed:")
    moved = (x1 + 8, y1 + 6, x2 + 8, y2 + 6)
    assert desk.steps()[-1]["kind"] == "redrawn"
    assert near(desk.study()["corrections"][0]["box"], moved)

    desk.pick(moved)
    desk.drag(moved[2:], (moved[2] - 12, moved[3] - 10))
    desk.press_apply()
    expect(desk.history).to_have_count(3)
    resized = (*moved[:2], moved[2] - 12, moved[3] - 10)
    assert near(desk.study()["corrections"][0]["box"], resized)

    desk.pick(resized)
    expect(desk.card).to_be_visible()
    desk.page.keyboard.press("Delete")
    expect(desk.corrections).to_have_count(0)
    assert desk.steps()[-1]["kind"] == "withdrawn"
    assert desk.study()["corrections"] == []
    desk.page.keyboard.press("Control+z")
    expect(desk.corrections).to_have_count(1)
    assert near(desk.study()["corrections"][0]["box"], resized)


def test_a_box_can_say_that_a_finding_is_not_here(at_the_light_box):
    desk = at_the_light_box()
    right = desk.right_claim()
    desk.draw_for(right)
    desk.card.get_by_label("is here").select_option("is not here")
    expect(desk.card.locator(".verdict")).to_contain_text("is not checked")
    desk.press_apply()
    expect(desk.corrections).to_have_text([f"1. {right.title} is not here✕"])
    (kept,) = desk.study()["corrections"]
    assert (kept["kind"], kept["concept"]) == ("not_box", right.concept)


def test_a_finding_is_rejected_by_key_and_the_rejection_taken_back(at_the_light_box):
    desk = at_the_light_box()
    name, title = next(iter(desk.titles().items()))
    desk.choose(name)
    desk.page.keyboard.press("x")
    expect(desk.corrections).to_have_text([f"1. {title} is not on this film✕"])
    expect(desk.finding(name)).to_have_accessible_name(f"{title} rejected")
    assert [(one["kind"], one["concept"]) for one in desk.study()["corrections"]] == [("reject", name)]
    desk.page.keyboard.press("x")
    expect(desk.corrections).to_have_count(0)
    expect(desk.finding(name)).not_to_have_accessible_name(f"{title} rejected")
    assert desk.steps()[-1]["kind"] == "withdrawn"


def test_looking_back_through_the_history_locks_the_film_until_one_returns(at_the_light_box):
    desk = at_the_light_box()
    right = desk.right_claim()
    desk.apply(right)
    rejected = next(name for name in desk.titles() if name != right.concept)
    desk.choose(rejected)
    desk.page.keyboard.press("x")
    expect(desk.corrections).to_have_count(2)
    looking = desk.page.locator(".history-notice")

    desk.page.keyboard.press("[")
    expect(looking).to_contain_text("You are viewing step 1 of 2.")
    expect(desk.corrections).to_have_count(1)
    expect(desk.history.nth(1)).to_have_attribute("aria-current", "step")
    desk.page.keyboard.press("[")
    expect(looking).to_contain_text("Before any correction")
    expect(desk.corrections).to_have_count(0)
    first = desk.study()["first_prediction"]
    for name, share in first.items():
        expect(desk.page.locator(f"[data-class={name}]")).to_have_text(
            f"{share:.0%}" if share >= 0.01 else f"{share:.1%}"
        )

    desk.draw(right.box)
    expect(desk.card).to_have_count(0)
    expect(desk.button("Undo")).to_be_disabled()
    desk.page.keyboard.press("]")
    expect(looking).to_contain_text("step 1 of 2")
    desk.page.keyboard.press("Escape")
    expect(looking).to_have_count(0)
    expect(desk.corrections).to_have_count(2)
    assert desk.study()["revision"] == 2
