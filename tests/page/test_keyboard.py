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


def on_the_way() -> list[Corners]:
    """Every box that those keys make of the one in the middle."""
    x1, y1, x2, y2 = MIDDLE
    moved = [(x1 + times * STEP, y1, x2 + times * STEP, y2) for times in range(4)]
    return [*moved, *((*moved[-1][:3], y2 + times * STEP) for times in (1, 2))]


@pytest.fixture
def nothing_to_doubt(house, window) -> tuple[LightBox, str]:
    """A film on which one finding leads wherever those keys take the box: a doubt would ask on the way."""
    page = window("rita")
    for seed in range(500, 530):
        desk = LightBox(house, page, "rita", house.film(seed))
        leading = {desk.check(box, next(iter(desk.titles())))["dominant"] for box in on_the_way()}
        if len(leading) == 1:
            return desk.opened(), leading.pop()
    raise AssertionError("No film without a doubt.")


def test_a_box_is_drawn_moved_resized_and_applied_by_keys_alone(nothing_to_doubt):
    desk, seen = nothing_to_doubt
    keys, meant = desk.page.keyboard, on_the_way()[-1]
    keys.press(str(list(desk.titles()).index(seen) + 1))
    keys.press("b")
    desk.tells_of(MIDDLE)
    for key in MOVES:
        keys.press(key)
    desk.tells_of(meant)
    keys.press("Enter")
    expect(desk.corrections).to_have_text([f"1. {desk.titles()[seen]} is here✕"])
    (kept,) = desk.study()["corrections"]
    assert kept["concept"] == seen
    assert near(kept["box"], meant)


def test_a_question_mark_shows_every_key_and_escape_leads_back(at_the_light_box):
    desk = at_the_light_box()
    desk.page.keyboard.press("?")
    keys = desk.page.get_by_role("dialog", name="Keys")
    expect(keys).to_be_visible()
    for told in (
        "apply the box",
        "step back and on through the history",
        "reject the chosen finding, or take that back",
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
    desk.button("Settings").click()
    desk.page.get_by_label("Single letters are shortcuts").uncheck()
    desk.button("Done").click()
    desk.page.keyboard.press("x")
    desk.page.keyboard.press("b")
    expect(desk.card).to_have_count(0)
    desk.page.keyboard.press("Control+z")
    assert desk.study()["revision"] == 0


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
