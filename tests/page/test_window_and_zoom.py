"""Grey window and zoom of the film, by mouse and by keys."""

import pytest
from playwright.sync_api import Page, expect

from page.reading_screen import ReadingScreen, eventually

pytestmark = pytest.mark.xdist_group("page")


def greys(page: Page) -> list[int]:
    """Greys along the diagonal of the film as shown."""
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


def test_the_right_button_drags_the_greys_and_reset_brings_them_back(open_film):
    screen = open_film()
    screen.page.keyboard.press("m")  # the map off
    before = greys(screen.page)
    status = screen.page.get_by_role("toolbar").get_by_text("level")
    expect(status).to_have_count(0)

    with screen.page.expect_response(lambda answer: "picture.png" in answer.url and "centre=" in answer.url) as fine:
        screen.drag((100, 60), (100, 160), button="right")
    assert fine.value.ok  # once the hand rests, the server draws these greys from all its bits
    expect(status).to_contain_text("window 1.00")
    eventually(screen.page, lambda: sum(greys(screen.page)) > sum(before) + 30 * 20)  # down is brighter
    expect(screen.card).to_have_count(0)

    screen.button("Reset").click()
    expect(status).to_have_count(0)
    eventually(screen.page, lambda: greys(screen.page) == before)
    screen.button("Invert").click()
    inverted = [255 - grey for grey in before]
    eventually(screen.page, lambda: greys(screen.page) == pytest.approx(inverted, abs=2))


def across(screen: ReadingScreen) -> float:
    """How much of the film a hand's width is."""
    screen.draw((80.0, 80.0, 160.0, 160.0))
    eventually(screen.page, lambda: screen.box_seen() is not None)
    expect(screen.card.locator(".muted").first).to_contain_text("pixels")
    status = screen.card.locator(".muted").first.inner_text()
    screen.page.keyboard.press("Escape")
    expect(screen.card).to_have_count(0)
    return float(status.split()[0])


def test_the_wheel_makes_the_film_larger_and_f_makes_it_fit_again(open_film):
    screen = open_film()
    screen.choose_what_is_seen((80.0, 80.0, 160.0, 160.0))
    assert across(screen) == pytest.approx(80, abs=1)
    screen.page.mouse.move(*screen.at(120, 120))
    screen.page.mouse.wheel(0, -500)
    larger = across(screen)
    assert larger < 60
    screen.page.keyboard.press("f")
    assert across(screen) == pytest.approx(80, abs=1)
