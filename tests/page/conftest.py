"""The page in a browser: a server, logged-in users, and films to read."""

import os
from collections.abc import Callable, Iterator
from zlib import crc32

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from medgrape.server.app import PAGE_FOLDER
from page.browser import OPTIONS, TIMEOUT, Watch, chromium
from page.reading_screen import ReadingScreen
from page.server import PageServer

expect.set_options(timeout=TIMEOUT)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium with an empty profile; where there is none, tests are skipped, but never in CI."""
    if chromium() is None and not os.environ.get("CI"):
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium(), args=list(OPTIONS))
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def server(browser, strict_run, drawn_dataset, tmp_path_factory) -> Iterator[PageServer]:  # noqa: ARG001
    """One server for all page tests; it warns about every box in which another finding leads.

    It depends on the browser so that no model is trained without one.
    """
    assert (PAGE_FOLDER / "index.html").is_file(), f"{PAGE_FOLDER} holds no page: build it with make ui."
    opened = PageServer(strict_run, drawn_dataset, tmp_path_factory.mktemp("server"))
    try:
        opened.set_up()
        yield opened
    finally:
        opened.kill()


@pytest.fixture
def watch(server) -> Iterator[Watch]:
    """Fails the test if the browser reports an error that the test did not expect."""
    watching = Watch(server.address)
    yield watching
    assert watching.unexpected == []


@pytest.fixture
def window(server, browser, watch) -> Iterator[Callable[..., Page]]:
    """Opens a browser window with a logged-in user, or without login."""
    opened = []

    def window(who: str | None, **more) -> Page:
        options = {"locale": "en-US", "viewport": {"width": 1400, "height": 900}, "reduced_motion": "reduce"}
        context = browser.new_context(base_url=server.address, **options | more)
        context.set_default_timeout(TIMEOUT)
        opened.append(context)
        watch.over(context)
        if who is not None:
            context.add_cookies([{"name": "medgrape", "value": server.cookie(who), "url": server.address}])
        return context.new_page()

    yield window
    for context in opened:
        context.close()


@pytest.fixture
def film(request, server) -> str:
    """A film of this test alone, which nobody has read."""
    return server.film(crc32(request.node.name.partition("@")[0].encode()))


@pytest.fixture
def open_film(server, window, film) -> Callable[..., ReadingScreen]:
    """Opens the film of the test as a user."""

    def open_as(who: str = "rita", page: Page | None = None) -> ReadingScreen:
        return ReadingScreen(server, page or window(who), who, film).opened()

    return open_as
