"""Reload of the page, a killed server, an ended session: no work is lost."""

import pytest
from playwright.sync_api import expect

from page.reading_screen import MIDDLE, near
from page.server import PASSWORD

pytestmark = pytest.mark.xdist_group("page")
DEAD = r"net::ERR_(CONNECTION|EMPTY|INCOMPLETE|SOCKET|FAILED|CONTENT_LENGTH_MISMATCH)"
"""Errors of the browser after the server was killed, also during a response."""


def test_after_a_reload_everything_is_as_it_was(open_film):
    screen = open_film()
    right = screen.right_claim()
    screen.apply(right)
    screen.drag((100, 60), (130, 100), button="right")
    greys = screen.page.get_by_role("toolbar").get_by_text("level").inner_text()
    screen.choose_what_is_seen(MIDDLE)
    screen.page.keyboard.press("b")
    screen.page.keyboard.press("n")  # a box that claims nothing, whatever finding it is for
    chosen = next(name for name in reversed(screen.titles()) if name != right.concept)
    screen.choose(chosen)

    screen.page.reload()

    screen.shown()
    expect(screen.card.get_by_label("Finding")).to_have_value(chosen)
    expect(screen.card.get_by_label("is here")).to_have_value("not")
    screen.tells_of(MIDDLE)
    expect(screen.finding(chosen)).to_have_attribute("aria-pressed", "true")
    expect(screen.page.get_by_role("toolbar").get_by_text("level")).to_have_text(greys)
    expect(screen.corrections).to_have_text([f"1. {right.title} is here✕"])
    screen.press_apply()
    expect(screen.corrections).to_have_count(2)


def test_after_a_reload_the_teaching_panel_is_as_it_was(open_film):
    screen = open_film("cora")
    screen.page.keyboard.press("t")
    panel = screen.page.locator(".teach")
    panel.get_by_label("Name").fill("Ring shadow")
    panel.get_by_label("How it looks").fill("A thin ring.")
    screen.draw((60.0, 60.0, 110.0, 110.0))
    screen.button("Use as an example ⏎").click()
    screen.draw((130.0, 60.0, 180.0, 110.0))
    expect(screen.card).to_be_visible()

    screen.page.reload()

    screen.shown()
    expect(panel.get_by_label("Name")).to_have_value("Ring shadow")
    expect(panel.get_by_label("How it looks")).to_have_value("A thin ring.")
    expect(panel.get_by_role("img", name="Example 1")).to_be_visible()
    expect(screen.button("Use as an example ⏎")).to_be_visible()
    assert screen.study()["revision"] == 0


def test_a_box_is_applied_exactly_once_although_the_server_is_killed(open_film, server, watch):
    watch.expects(DEAD)
    screen = open_film()
    right = screen.right_claim()
    banner = screen.page.locator(".banner")
    screen.choose(right.concept)
    x1, y1, x2, y2 = right.box
    screen.hold((x1, y1), (x2 - 20, y2 - 20))
    place = screen.page.locator(".film").bounding_box()
    server.kill()
    try:
        screen.page.mouse.move(*screen.at(x2 - 10, y2 - 10))
        expect(banner).to_have_text("The server does not answer. Your work is kept; the page tries again every second.")
        assert screen.page.locator(".film").bounding_box() == place  # a film must not move under a hand that draws
        screen.page.mouse.move(*screen.at(x2, y2), steps=2)
        screen.page.mouse.up()
        expect(screen.card).to_be_visible()
        screen.press_apply()
        expect(screen.card).to_contain_text("Not applied yet: the server does not answer.")
    finally:
        server.start()

    expect(screen.corrections).to_have_text([f"1. {right.title} is here✕"])
    expect(banner).to_be_empty()
    expect(screen.card).to_have_count(0)
    study = screen.study()
    assert (study["revision"], len(study["corrections"]), len(screen.steps())) == (1, 1, 1)
    assert near(study["corrections"][0]["box"], right.box)


def test_a_step_whose_response_was_lost_is_not_repeated(open_film, watch):
    watch.expects(f"{DEAD}|409")
    screen = open_film()
    right = screen.right_claim()
    lost = []

    def lose(route) -> None:
        if lost:
            route.continue_()
            return
        lost.append(route.fetch().status)  # the server did it
        route.abort()

    screen.page.route("**/boxes", lose)
    screen.apply(right)
    expect(screen.corrections).to_have_count(1)
    expect(screen.page.get_by_role("alert")).to_have_count(0)
    assert lost == [200]
    assert len(screen.steps()) == 1


def test_after_a_new_login_the_interrupted_step_continues(server, open_film, watch):
    watch.expects("401")
    server.add_user("greta")
    screen = open_film("greta")
    right = screen.right_claim()
    screen.draw_for(right)
    screen.tells_of(right.box)
    status, _ = server.callers["alma"].ask("PATCH", "/users/greta", {"password": f"new {PASSWORD}"})
    assert status == 200  # whoever's password is changed is logged out everywhere

    screen.press_apply()

    login = screen.page.get_by_role("dialog", name="Your session has ended")
    expect(login).to_be_visible()
    expect(screen.card).to_be_visible()
    assert screen.study()["revision"] == 0
    login.get_by_label("Name").fill("greta")
    login.get_by_label("Password").fill(PASSWORD)
    login.get_by_role("button", name="Log in").click()
    expect(login.get_by_role("alert")).to_contain_text("Name or password is wrong")
    login.get_by_label("Password").fill(f"new {PASSWORD}")
    login.get_by_role("button", name="Log in").click()
    expect(login).to_have_count(0)
    expect(screen.corrections).to_have_text([f"1. {right.title} is here✕"])
    expect(screen.card).to_have_count(0)
    assert len(screen.steps()) == 1
