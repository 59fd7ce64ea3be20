"""Somebody sits down at the page: a server, a browser, and people who are logged in."""

import os
from collections.abc import Callable, Iterator
from zlib import crc32

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from medgrape.server.app import PAGE_FOLDER
from page.browser import PATIENCE, PLAIN, Watch, chromium
from page.house import House
from page.light_box import LightBox

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium with an empty profile; where there is none, whatever needs it is passed over, but never in CI."""
    if chromium() is None and not os.environ.get("CI"):
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium(), args=list(PLAIN))
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def house(browser, strict_run, drawn_dataset, tmp_path_factory) -> Iterator[House]:  # noqa: ARG001
    """One server for all of these tests, which doubts every box in which another finding leads.

    It asks for the browser so that nothing is trained where there is none.
    """
    assert (PAGE_FOLDER / "index.html").is_file(), f"{PAGE_FOLDER} holds no page: build it with make ui."
    opened = House(strict_run, drawn_dataset, tmp_path_factory.mktemp("house"))
    try:
        opened.furnish()
        yield opened
    finally:
        opened.kill()


@pytest.fixture
def watch(house) -> Iterator[Watch]:
    """Nothing goes wrong in any window but what a test said would."""
    watching = Watch(house.address)
    yield watching
    assert watching.unexpected == []


@pytest.fixture
def window(house, browser, watch) -> Iterator[Callable[..., Page]]:
    """Opens a browser's window, in which somebody is logged in or nobody is."""
    opened = []

    def window(who: str | None, **more) -> Page:
        liking = {"locale": "en-US", "viewport": {"width": 1400, "height": 900}, "reduced_motion": "reduce"}
        context = browser.new_context(base_url=house.address, **liking | more)
        context.set_default_timeout(PATIENCE)
        opened.append(context)
        watch.over(context)
        if who is not None:
            context.add_cookies([{"name": "medgrape", "value": house.cookie(who), "url": house.address}])
        return context.new_page()

    yield window
    for context in opened:
        context.close()


@pytest.fixture
def film(request, house) -> str:
    """A film that nobody has read yet; a test's own, the same whichever tests ran before."""
    return house.film(crc32(request.node.name.partition("@")[0].encode()))


@pytest.fixture
def at_the_light_box(house, window, film) -> Callable[..., LightBox]:
    """Puts the film in front of somebody."""

    def sit_down(who: str = "rita", page: Page | None = None) -> LightBox:
        return LightBox(house, page or window(who), who, film).opened()

    return sit_down
