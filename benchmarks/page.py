"""The page in a real browser: time until a film is shown, frames while a box is drawn, delay of the check."""

import gzip
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from benchmarks import ROOT
from benchmarks.server import Finding, free_port
from benchmarks.server_under_test import Caller, ServerUnderTest
from medgrape.errors import UserError
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.film import draw

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Page

SIDE, DRAWN = 2048, 512
"""Side of the film that is opened, and of the drawing from which it is enlarged."""
FIRST_FILM, BEHIND, SMOOTH, BUNDLE = 1.0, 50.0, 0.9, 600
"""Targets: seconds to the first film, milliseconds of delay, share of an idle page's frames, packed kilobytes."""
ROUNDS, MOVES = 5, 240
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
_WATCH = Path(__file__).with_name("page_watch.js")
_PAGE = ROOT / "src" / "medgrape" / "server" / "page"


@dataclass(frozen=True)
class Drawing:
    """Measurements while a box was drawn."""

    frames: float
    """Frames a second."""
    idle_frames: float
    """Frames a second while the same pointer moves over the list of films."""
    lags: tuple[float, ...]
    """Milliseconds from a move of the pointer to the answer about its box."""
    stale: tuple[float, ...]
    """Age of the shown answer in milliseconds at the moment that the next one arrived."""
    alone: float
    """Milliseconds for the same question when nothing is drawn."""


def chromium() -> str:
    """Return the path of this machine's browser."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise UserError(
            "The page benchmark drives Chromium, which is not installed; on Debian: apt-get install chromium."
        )
    return found


def bench_page(run: Path, *, workers: int = 2) -> Iterator[Finding]:
    """Yield all targets of the page."""
    files = [path for path in _PAGE.rglob("*") if path.is_file() and path.suffix != ".md"]
    packed = sum(len(gzip.compress(path.read_bytes())) for path in files) / 1024
    yield Finding("what a browser fetches, packed", f"{packed:.0f} kB", f"at most {BUNDLE} kB", packed <= BUNDLE)
    with _opened(run, workers) as (page, address, film):
        yield _first_film(page, address, film)
        yield from _drawing(_drawn(page, address, film))


@contextmanager
def _opened(run: Path, workers: int) -> Iterator[tuple["Page", str, str]]:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="medgrape-bench-") as name:
        tested = ServerUnderTest(run, Path(name) / "room", "", free_port(), workers)
        tested.start()
        try:
            caller = Caller(tested.port, "-")
            film = caller.upload(_film())
            caller.post("/studies", {"film": film})
            caller.hang_up()
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                yield page, f"http://127.0.0.1:{tested.port}", film
                browser.close()
        finally:
            tested.kill()


def _film() -> bytes:
    out = BytesIO()
    drawing = next(iter(plan("tb", 1, seed=1)))
    Image.fromarray(draw(drawing, DRAWN).pixels).resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(out, "PNG")
    return out.getvalue()


def _first_film(page: "Page", address: str, film: str) -> Finding:
    """Compare the time from an empty tab to the whole film on the light box with the same picture alone in the tab."""
    opened, alone = [], []
    for _ in range(ROUNDS):
        alone.append(_timed(page, f"{address}/api/v1/films/{film}/picture.png?side={SIDE}&width=0.999", None))
        opened.append(_timed(page, f"{address}/#/films/{film}", ".film[data-shown=whole]"))
    ours, theirs = statistics.median(opened), statistics.median(alone)
    measured = f"{ours:.2f} s (the picture alone in a tab: {theirs:.2f} s)"
    return Finding(f"a film of {SIDE} pixels is seen", measured, f"within {FIRST_FILM:g} s", ours <= FIRST_FILM)


def _timed(page: "Page", address: str, waited_for: str | None) -> float:
    page.goto("about:blank")
    began = page.evaluate("Date.now()")
    page.goto(address, wait_until="load" if waited_for is None else "commit")
    if waited_for is not None:
        page.wait_for_selector(waited_for)
    return float(page.evaluate("Date.now()") - began) / 1e3


def _drawn(page: "Page", address: str, film: str) -> Drawing:
    page.goto(f"{address}/#/films")
    page.wait_for_selector("main img")
    idle = _moved(page, {"x": 300, "y": 200, "width": 700, "height": 500})["frames"]
    page.goto(f"{address}/#/films/{film}")
    page.wait_for_selector(".film[data-shown=whole]")
    page.wait_for_selector(".finding.chosen")
    place = page.locator(".film").bounding_box()
    if place is None:
        raise UserError("The page shows no film; look at it with medgrape serve.")
    alone = [float(page.evaluate(_ALONE, film)) for _ in range(20)]
    seen = _moved(page, place, film_side=SIDE)
    return Drawing(seen["frames"], idle, tuple(seen["lags"]), tuple(seen["stale"]), statistics.median(alone))


def _moved(page: "Page", place: "FloatRect", film_side: int = 0) -> dict[str, Any]:
    """Drag across a place and back while the page's own clock is recorded."""
    page.evaluate(f"({_WATCH.read_text('utf-8')})({film_side})")
    left, top = place["x"] + place["width"] * 0.35, place["y"] + place["height"] * 0.3
    page.mouse.move(left, top)
    page.mouse.down()
    for move in range(MOVES):
        share = 0.5 - 0.45 * abs(2 * (move % 80) / 80 - 1)
        page.mouse.move(left + place["width"] * share, top + place["height"] * share)
    seen: dict[str, Any] = page.evaluate("window.benchSeen()")
    page.keyboard.press("Escape")
    page.mouse.up()
    return seen


def _drawing(found: Drawing) -> Iterator[Finding]:
    share = found.frames / found.idle_frames
    measured = f"{found.frames:.0f} a second ({found.idle_frames:.0f} with the same moves over the list of films)"
    yield Finding("frames while a box is drawn", measured, f"at least {SMOOTH:g} of those", share >= SMOOTH)
    if not found.lags:
        yield Finding("the live check follows the pointer", "no answer came", f"within {BEHIND:g} ms", kept=False)
        return
    late, stale = _most(found.lags), _most(found.stale)
    measured = (
        f"{statistics.median(found.lags):.0f} ms, 95 % within {late:.0f} ms "
        f"({len(found.lags)} answers; the question alone: {found.alone:.0f} ms)"
    )
    yield Finding("from a move to the answer about it", measured, f"95 % within {BEHIND:g} ms", late <= BEHIND)
    measured = f"{statistics.median(found.stale):.0f} ms, 95 % within {stale:.0f} ms"
    yield Finding("how old an answer gets before the next one", measured, "nothing", kept=True)


def _most(values: tuple[float, ...]) -> float:
    return sorted(values)[min(int(0.95 * len(values)), len(values) - 1)] if values else 0.0


_ALONE = """async (film) => {
    const headers = { "Content-Type": "application/json" };
    const ask = (path, body) => fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
    const study = await (await ask("/api/v1/studies", { film })).json();
    const [{ name: concept }] = await (await fetch(`/api/v1/models/${study.model}/concepts`)).json();
    const began = performance.now();
    const box = { x1: 300, y1: 300, x2: 700, y2: 800 };
    await (await ask(`/api/v1/studies/${study.id}/check`, { concept, box })).json();
    return performance.now() - began;
}"""
