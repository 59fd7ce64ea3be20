"""Take the screenshots in docs/pictures with the results of `make demo`: python -m tools.screenshots [DEMO]."""

import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.page import ARGUMENTS, chromium
from medgrape.cli.demo import Suggestion, films_for_room, find_suggestion, write_as_dicom
from medgrape.datasets.dataset import Dataset
from medgrape.geometry import Box, FilmSize
from medgrape.reader import load
from medgrape.server import process
from medgrape.server.films import add_films_before_start
from medgrape.server.room import RoomFolder
from medgrape.server.settings import ServerSettings

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
LAPTOP, DESK, TABLET = (1440, 900), (1920, 1080), (820, 1180)


@contextmanager
def served(demo: Path) -> Iterator[tuple[str, list[str], Suggestion]]:
    """Serve a new room with films of the demo; yield its address, the ids of the films, and the suggestion."""
    run, data = demo / "tb-model-seed0", demo / "tb-films-seed0"
    dataset = Dataset.load(data)
    suggestion = find_suggestion(load(run), dataset)
    if suggestion is None:
        raise SystemExit("The demo's model doubts no box; train it again.")
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder) / "room"
        ready = process.prepare([run], RoomFolder(room), ServerSettings(port=0, data=str(data)))
        paths = [write_as_dicom(film, dataset, Path(folder)) for film in films_for_room(dataset, suggestion)]
        films = add_films_before_start(ready.folder, ready.settings, paths, login=ready.login)
        port = ready.listening.getsockname()[1]
        ready.listening.close()
        ready.lock.release()
        command = [sys.executable, "-m", "medgrape", "serve", str(run), "--room", str(room), "--data", str(data)]
        serving = subprocess.Popen([*command, "--port", str(port)], stderr=subprocess.DEVNULL)  # noqa: S603
        try:
            wait_for(port)
            yield f"http://127.0.0.1:{port}", films, suggestion
        finally:
            serving.terminate()
            serving.wait()


def wait_for(port: int) -> None:
    """Wait until the server can read films."""
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.2)


def taken(page: Page, name: str) -> None:
    """Save a screenshot."""
    page.mouse.move(5, 200)
    page.wait_for_timeout(900)  # until animations have ended
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    picture.save(PICTURES / f"{name}.jpg", quality=90, subsampling=0, optimize=True)
    sys.stderr.write(f"docs/pictures/{name}.jpg\n")


def window(browser: Browser, address: str, size: tuple[int, int]) -> Page:
    """Open a new window, in English."""
    context = browser.new_context(base_url=address, viewport={"width": size[0], "height": size[1]}, locale="en-GB")
    return context.new_page()


def reading(page: Page, film: str, finding: str) -> None:
    """Open a film with the map of a finding."""
    page.goto(f"/#/films/{film}")
    page.wait_for_selector(".film[data-shown=whole]")
    button = page.locator(f"button[data-concept={finding}]")
    button.wait_for()
    if button.get_attribute("aria-pressed") != "true":
        button.click()


def draw(page: Page, box: Box, film: FilmSize) -> None:
    """Draw a box on a film, shown as large as possible."""
    place = page.locator(".film").bounding_box()
    if place is None:
        raise SystemExit("The page shows no film to draw on.")
    scale = min(place["width"] / film.width, place["height"] / film.height)
    left = place["x"] + (place["width"] - film.width * scale) / 2
    top = place["y"] + (place["height"] - film.height * scale) / 2
    page.mouse.move(left + box.x1 * scale, top + box.y1 * scale)
    page.mouse.down()
    page.mouse.move(left + box.x2 * scale, top + box.y2 * scale, steps=8)
    page.mouse.up()


def all_pictures(browser: Browser, address: str, films: list[str], suggestion: Suggestion) -> None:
    """Take a screenshot of every screen, in common window sizes."""
    corners = ",".join(f"{edge:g}" for edge in suggestion.box.corners)
    page = window(browser, address, LAPTOP)
    page.goto(f"/#/try/{films[-1]}/{suggestion.concept}/{corners}")
    page.wait_for_selector(".film[data-shown=whole]")
    page.get_by_role("button", name="Draw it for me").click()
    page.get_by_role("alertdialog").wait_for()
    taken(page, "page-warning")
    page.get_by_label("Why you are right").fill("Calcified already on the film of last year.")
    page.get_by_role("button", name="Apply anyway").click()
    page.locator(".steps li").first.wait_for()
    reading(page, films[-1], "active_tb")
    taken(page, "page-reading")
    page.goto("/#/films")
    page.locator(".films .likeliest").first.wait_for()
    taken(page, "page-films")
    page.goto("/#/atlas")
    page.get_by_role("button", name="Measure it now").click()
    page.get_by_text("always").first.wait_for(timeout=300_000)
    taken(page, "page-atlas")
    page.goto("/#/model")
    page.locator(".measurement").wait_for()
    taken(page, "page-model")
    page = window(browser, address, DESK)
    reading(page, films[-1], "active_tb")
    page.get_by_role("button", name="Teach a finding").click()
    page.get_by_label("Name").fill("Cavity")
    page.get_by_label("How it looks, in one sentence").fill("Thick-walled lucency in the upper lobe.")
    draw(page, suggestion.box, suggestion.film.size)
    page.get_by_role("button", name="Use as an example").click()
    page.get_by_role("button", name="Learn it").click()
    page.get_by_text("On this film:").wait_for(timeout=120_000)
    taken(page, "page-teaching")
    page.get_by_role("button", name="Discard it").click()
    page = window(browser, address, TABLET)
    reading(page, films[-1], "active_tb")
    taken(page, "page-tablet")


def main() -> None:
    """Take all screenshots."""
    demo = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "demo")
    with served(demo) as (address, films, suggestion), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        all_pictures(browser, address, films, suggestion)
        browser.close()


if __name__ == "__main__":
    main()
