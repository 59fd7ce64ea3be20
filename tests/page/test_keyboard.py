"""Use of the page by keyboard only."""

import pytest
from playwright.sync_api import expect

from page.reading_screen import MIDDLE, Corners, ReadingScreen, near

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


def placed_by_keys(screen: ReadingScreen, concept: str) -> None:
    """Place a box for a finding by keys; no warning appears before Enter."""
    keys = screen.page.keyboard
    keys.press(str(list(screen.titles()).index(concept) + 1))
    keys.press("b")
    screen.tells_of(MIDDLE)
    for key in MOVES:
        keys.press(key)
    screen.tells_of(MEANT)
    expect(screen.warning).to_have_count(0)


def test_a_box_is_drawn_moved_resized_and_applied_by_keys_alone(open_film):
    screen = open_film()
    seen = screen.check(MEANT, next(iter(screen.titles())))["dominant"]
    placed_by_keys(screen, seen)
    screen.page.keyboard.press("Enter")
    expect(screen.corrections).to_have_text([f"1. {screen.titles()[seen]} is here✕"])
    (kept,) = screen.study()["corrections"]
    assert kept["concept"] == seen
    assert near(kept["box"], MEANT)


def test_a_wrong_box_placed_by_keys_gets_a_warning_on_enter(open_film, watch):
    watch.expects("409")
    screen = open_film()
    unseen = screen.check(MEANT, next(iter(screen.titles())))["concepts"][-1]["name"]
    placed_by_keys(screen, unseen)
    screen.page.keyboard.press("Enter")
    expect(screen.warning).to_be_visible()
    screen.page.keyboard.press("Escape")
    expect(screen.warning).to_have_count(0)
    assert screen.study()["revision"] == 0


def test_question_mark_shows_the_shortcuts_and_escape_closes_them(open_film):
    screen = open_film()
    screen.page.keyboard.press("?")
    keys = screen.page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_be_visible()
    for text in (
        "apply the box",
        "step back and forward through the history",
        "reject the selected finding, or undo that",
    ):
        expect(keys.get_by_text(text)).to_be_visible()
    screen.page.keyboard.press("b")
    expect(screen.card).to_have_count(0)  # keys belong to the dialog while it is open
    screen.page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    screen.page.keyboard.press("b")
    expect(screen.card).to_be_visible()


def test_single_letter_keys_can_be_switched_off_for_dictation(open_film):
    screen = open_film()
    screen.apply(screen.right_claim())
    screen.button("Settings").click()
    screen.page.get_by_label("Single letters are shortcuts").uncheck()
    screen.button("Done").click()
    for letter in ("x", "z", "b"):
        screen.page.keyboard.press(letter)
    screen.page.keyboard.press("Control+z")  # no letter, so it still undoes
    expect(screen.corrections).to_have_count(0)
    expect(screen.card).to_have_count(0)
    # Had a letter done anything, its step would stand before this one.
    assert [one["kind"] for one in screen.steps()] == ["corrected", "undone"]


def test_the_tab_key_reaches_every_control_with_a_visible_focus(open_film):
    screen = open_film("cora")
    screen.choose_what_is_seen(MIDDLE)
    screen.page.keyboard.press("b")
    expect(screen.card).to_be_visible()
    unseen, rounds = [], 0
    while rounds < 2:  # from where the last click was to the end of the page, and once around
        screen.page.keyboard.press("Tab")
        focused = screen.page.evaluate(FOCUSED)
        rounds += focused is None
        unseen += [focused["what"]] if focused and not focused["ring"] else []
    assert unseen == []
    assert screen.page.evaluate(MISSED) == []
