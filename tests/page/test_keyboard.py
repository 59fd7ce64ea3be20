"""Everything without a mouse."""

import pytest
from playwright.sync_api import expect

from page.light_box import MIDDLE, Corners, LightBox, near

pytestmark = pytest.mark.xdist_group("page")
STEP = 2.4
"""Film pixels that an arrow key moves a box by: a hundredth of the film."""
FOCUSED = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const drawn = getComputedStyle(one);
  const ring = drawn.outlineStyle !== "none" && parseFloat(drawn.outlineWidth) > 0;
  one.dataset.reached = "yes";
  return { what: one.outerHTML.slice(0, 80), ring: ring || drawn.boxShadow !== "none" };
}"""
MISSED = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter((one) => !one.disabled && one.tabIndex >= 0 && one.checkVisibility() && !one.dataset.reached)
  .map((one) => one.outerHTML.slice(0, 120))"""


MOVES = ["ArrowRight"] * 3 + ["Shift+ArrowDown"] * 2
MEANT: Corners = (MIDDLE[0] + 3 * STEP, MIDDLE[1], MIDDLE[2] + 3 * STEP, MIDDLE[3] + 2 * STEP)
"""The box that those keys make of the one in the middle."""


def placed_by_keys(desk: LightBox, concept: str) -> None:
    """A box for a finding, without a mouse; whatever lies on the way, nobody asks before it is there."""
    keys = desk.page.keyboard
    keys.press(str(list(desk.titles()).index(concept) + 1))
    keys.press("b")
    desk.tells_of(MIDDLE)
    for key in MOVES:
        keys.press(key)
    desk.tells_of(MEANT)
    expect(desk.doubt).to_have_count(0)


def test_a_box_is_drawn_moved_resized_and_applied_by_keys_alone(at_the_light_box):
    desk = at_the_light_box()
    seen = desk.check(MEANT, next(iter(desk.titles())))["dominant"]
    placed_by_keys(desk, seen)
    desk.page.keyboard.press("Enter")
    expect(desk.corrections).to_have_text([f"1. {desk.titles()[seen]} is here✕"])
    (kept,) = desk.study()["corrections"]
    assert kept["concept"] == seen
    assert near(kept["box"], MEANT)


def test_a_box_placed_by_keys_is_doubted_when_enter_says_that_it_is_there(at_the_light_box, watch):
    watch.expects("409")
    desk = at_the_light_box()
    unseen = desk.check(MEANT, next(iter(desk.titles())))["concepts"][-1]["name"]
    placed_by_keys(desk, unseen)
    desk.page.keyboard.press("Enter")
    expect(desk.doubt).to_be_visible()
    desk.page.keyboard.press("Escape")
    expect(desk.doubt).to_have_count(0)
    assert desk.study()["revision"] == 0


def test_a_question_mark_shows_every_key_and_escape_leads_back(at_the_light_box):
    desk = at_the_light_box()
    desk.page.keyboard.press("?")
    keys = desk.page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_be_visible()
    for told in (
        "apply the box",
        "step back and forward through the history",
        "reject the selected finding, or undo that",
    ):
        expect(keys.get_by_text(told)).to_be_visible()
    desk.page.keyboard.press("b")
    expect(desk.card).to_have_count(0)  # keys belong to the dialog while it is open
    desk.page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    desk.page.keyboard.press("b")
    expect(desk.card).to_be_visible()


def test_single_letters_can_be_switched_off_for_whoever_dictates(at_the_light_box):
    desk = at_the_light_box()
    desk.apply(desk.right_claim())
    desk.button("Settings").click()
    desk.page.get_by_label("Single letters are shortcuts").uncheck()
    desk.button("Done").click()
    for letter in ("x", "z", "b"):
        desk.page.keyboard.press(letter)
    desk.page.keyboard.press("Control+z")  # no letter, so it still undoes
    expect(desk.corrections).to_have_count(0)
    expect(desk.card).to_have_count(0)
    # Had a letter done anything, its step would stand before this one.
    assert [one["kind"] for one in desk.steps()] == ["corrected", "undone"]


def test_the_tab_key_reaches_everything_and_one_sees_where_one_is(at_the_light_box):
    desk = at_the_light_box("cora")
    desk.choose_what_is_seen(MIDDLE)
    desk.page.keyboard.press("b")
    expect(desk.card).to_be_visible()
    unseen, rounds = [], 0
    while rounds < 2:  # from where the last click was to the end of the page, and once around
        desk.page.keyboard.press("Tab")
        focused = desk.page.evaluate(FOCUSED)
        rounds += focused is None
        unseen += [focused["what"]] if focused and not focused["ring"] else []
    assert unseen == []
    assert desk.page.evaluate(MISSED) == []
