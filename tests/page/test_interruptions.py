"""A page that is loaded again, a server that dies, a session that ends: nothing that somebody did is lost."""

import pytest
from playwright.sync_api import expect

from page.house import PASSWORD
from page.light_box import MIDDLE, near

pytestmark = pytest.mark.xdist_group("page")
DEAD = r"net::ERR_(CONNECTION|EMPTY|INCOMPLETE|SOCKET|FAILED|CONTENT_LENGTH_MISMATCH)"
"""What a browser says of a server that was killed, also in the middle of an answer."""


def test_after_a_reload_everything_is_as_it_was(at_the_light_box):
    desk = at_the_light_box()
    right = desk.right_claim()
    desk.apply(right)
    desk.drag((100, 60), (130, 100), button="right")
    greys = desk.page.get_by_role("toolbar").get_by_text("level").inner_text()
    desk.choose_what_is_seen(MIDDLE)
    desk.page.keyboard.press("b")
    desk.page.keyboard.press("n")  # a box that claims nothing, whatever finding it is for
    chosen = next(name for name in reversed(desk.titles()) if name != right.concept)
    desk.choose(chosen)

    desk.page.reload()

    desk.shown()
    expect(desk.card.get_by_label("Finding")).to_have_value(chosen)
    expect(desk.card.get_by_label("is here")).to_have_value("not")
    desk.tells_of(MIDDLE)
    expect(desk.finding(chosen)).to_have_attribute("aria-pressed", "true")
    expect(desk.page.get_by_role("toolbar").get_by_text("level")).to_have_text(greys)
    expect(desk.corrections).to_have_text([f"1. {right.title} is here✕"])
    desk.press_apply()
    expect(desk.corrections).to_have_count(2)


def test_after_a_reload_a_finding_that_is_being_taught_is_as_it_was(at_the_light_box):
    desk = at_the_light_box("cora")
    desk.page.keyboard.press("t")
    panel = desk.page.locator(".teach")
    panel.get_by_label("Name").fill("Ring shadow")
    panel.get_by_label("How it looks").fill("A thin ring.")
    desk.draw((60.0, 60.0, 110.0, 110.0))
    desk.button("Use as an example ⏎").click()
    desk.draw((130.0, 60.0, 180.0, 110.0))
    expect(desk.card).to_be_visible()

    desk.page.reload()

    desk.shown()
    expect(panel.get_by_label("Name")).to_have_value("Ring shadow")
    expect(panel.get_by_label("How it looks")).to_have_value("A thin ring.")
    expect(panel.get_by_role("img", name="Example 1")).to_be_visible()
    expect(desk.button("Use as an example ⏎")).to_be_visible()
    assert desk.study()["revision"] == 0


def test_a_box_outlives_a_server_that_is_killed_and_is_applied_exactly_once(at_the_light_box, house, watch):
    watch.expects(DEAD)
    desk = at_the_light_box()
    right = desk.right_claim()
    banner = desk.page.locator(".banner")
    desk.choose(right.concept)
    x1, y1, x2, y2 = right.box
    desk.hold((x1, y1), (x2 - 20, y2 - 20))
    place = desk.page.locator(".film").bounding_box()
    house.kill()
    try:
        desk.page.mouse.move(*desk.at(x2 - 10, y2 - 10))
        expect(banner).to_have_text("The server does not answer. Your work is kept; the page tries again every second.")
        assert desk.page.locator(".film").bounding_box() == place  # a film must not move under a hand that draws
        desk.page.mouse.move(*desk.at(x2, y2), steps=2)
        desk.page.mouse.up()
        expect(desk.card).to_be_visible()
        desk.press_apply()
        expect(desk.card).to_contain_text("Not applied yet: the server does not answer.")
    finally:
        house.start()

    expect(desk.corrections).to_have_text([f"1. {right.title} is here✕"])
    expect(banner).to_be_empty()
    expect(desk.card).to_have_count(0)
    told = desk.study()
    assert (told["revision"], len(told["corrections"]), len(desk.steps())) == (1, 1, 1)
    assert near(told["corrections"][0]["box"], right.box)


def test_a_step_whose_answer_was_lost_on_its_way_is_not_taken_twice(at_the_light_box, watch):
    watch.expects(f"{DEAD}|409")
    desk = at_the_light_box()
    right = desk.right_claim()
    lost = []

    def lose(route) -> None:
        if lost:
            route.continue_()
            return
        lost.append(route.fetch().status)  # the server did it
        route.abort()

    desk.page.route("**/boxes", lose)
    desk.apply(right)
    expect(desk.corrections).to_have_count(1)
    expect(desk.page.get_by_role("alert")).to_have_count(0)
    assert lost == [200]
    assert len(desk.steps()) == 1


def test_a_session_that_ended_is_renewed_over_the_page_and_the_step_goes_on(house, at_the_light_box, watch):
    watch.expects("401")
    house.newcomer("greta")
    desk = at_the_light_box("greta")
    right = desk.right_claim()
    desk.draw_for(right)
    desk.tells_of(right.box)
    status, _ = house.callers["alma"].ask("PATCH", "/users/greta", {"password": f"new {PASSWORD}"})
    assert status == 200  # whoever's password is changed is logged out everywhere

    desk.press_apply()

    door = desk.page.get_by_role("dialog", name="Your session has ended")
    expect(door).to_be_visible()
    expect(desk.card).to_be_visible()
    assert desk.study()["revision"] == 0
    door.get_by_label("Name").fill("greta")
    door.get_by_label("Password").fill(PASSWORD)
    door.get_by_role("button", name="Log in").click()
    expect(door.get_by_role("alert")).to_contain_text("Name or password is wrong")
    door.get_by_label("Password").fill(f"new {PASSWORD}")
    door.get_by_role("button", name="Log in").click()
    expect(door).to_have_count(0)
    expect(desk.corrections).to_have_text([f"1. {right.title} is here✕"])
    expect(desk.card).to_have_count(0)
    assert len(desk.steps()) == 1
