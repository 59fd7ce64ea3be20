"""How the film is looked at: greys and size; and all of it without a mouse."""

import pytest
from playwright.sync_api import Page, expect

from page.light_box import LightBox, eventually

pytestmark = pytest.mark.xdist_group("page")


def greys(page: Page) -> list[int]:
    """What is seen of the film along its diagonal, from black to white."""
    return page.evaluate(
        """() => {
          const canvas = document.querySelector(".film canvas");
          const side = Math.min(canvas.width, canvas.height);
          const [left, top] = [(canvas.width - side) / 2, (canvas.height - side) / 2];
          const ink = canvas.getContext("2d");
          return Array.from({ length: 30 }, (_, at) => {
            const along = (side * (at + 1)) / 32;
            return ink.getImageData(left + along, top + along, 1, 1).data[0];
          });
        }"""
    )


def test_the_right_button_drags_the_greys_and_reset_brings_them_back(at_the_light_box):
    desk = at_the_light_box()
    desk.page.keyboard.press("m")  # the map off
    before = greys(desk.page)
    told = desk.page.get_by_role("toolbar").get_by_text("level")
    expect(told).to_have_count(0)

    with desk.page.expect_response(lambda answer: "picture.png" in answer.url and "centre=" in answer.url) as fine:
        desk.drag((100, 60), (100, 160), button="right")
    assert fine.value.ok  # once the hand rests, the server draws these greys from all its bits
    expect(told).to_contain_text("window 1.00")
    eventually(desk.page, lambda: sum(greys(desk.page)) > sum(before) + 30 * 20)  # down is brighter
    expect(desk.card).to_have_count(0)

    desk.button("Reset").click()
    expect(told).to_have_count(0)
    eventually(desk.page, lambda: greys(desk.page) == before)
    desk.button("Invert").click()
    inverted = [255 - grey for grey in before]
    eventually(desk.page, lambda: greys(desk.page) == pytest.approx(inverted, abs=2))


def across(desk: LightBox) -> float:
    """How much of the film a hand's width is."""
    desk.draw((80.0, 80.0, 160.0, 160.0))
    eventually(desk.page, lambda: desk.box_seen() is not None)
    expect(desk.card.locator(".muted").first).to_contain_text("pixels")
    told = desk.card.locator(".muted").first.inner_text()
    desk.page.keyboard.press("Escape")
    expect(desk.card).to_have_count(0)
    return float(told.split()[0])


def test_the_wheel_makes_the_film_larger_and_f_makes_it_fit_again(at_the_light_box):
    desk = at_the_light_box()
    desk.choose_what_is_seen((80.0, 80.0, 160.0, 160.0))
    assert across(desk) == pytest.approx(80, abs=1)
    desk.page.mouse.move(*desk.at(120, 120))
    desk.page.mouse.wheel(0, -500)
    larger = across(desk)
    assert larger < 60
    desk.page.keyboard.press("f")
    assert across(desk) == pytest.approx(80, abs=1)
