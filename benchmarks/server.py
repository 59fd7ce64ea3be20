"""The server under load, under kills and over time: targets and measurements."""

import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.postgres import temporary_postgres
from benchmarks.server_kills import Kills, kill_again_and_again
from benchmarks.server_load import Crowd, Memory, crowd, memory
from benchmarks.server_under_test import server
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.film import draw
from medgrape.progress import Track, quietly

FILMS, SIDE = 12, 224
SLOWDOWN, GROWTH, RESTART = 10.0, 1.10, 5.0
"""Targets: time of a box among many readers relative to one reader, growth of memory, seconds to start."""


@dataclass(frozen=True)
class Order:
    """What to measure."""

    run: Path
    database: str = "sqlite"
    """Or postgresql, for which a temporary server is started."""
    kills: int = 20
    readers: int = 50
    boxes: int = 20
    pause: float = 1.0
    requests: int = 10_000
    workers: int = 2
    seed: int = 0


@dataclass(frozen=True)
class Finding:
    """One target and its measurement."""

    what: str
    found: str
    promised: str
    kept: bool

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"what": self.what, "found": self.found, "promised": self.promised, "kept": self.kept}


def bench_server(order: Order, track: Track = quietly) -> Iterator[Finding]:
    """Yield the results of each part, each in a new room; a part with number 0 is left out."""
    films = _films()
    with _database(order.database) as new_database, tempfile.TemporaryDirectory(prefix="medgrape-bench-") as name:
        folder = Path(name)
        if order.readers:
            yield from _of_crowds(order, films, folder, new_database)
        if order.requests:
            with server(order.run, folder / "memory", new_database(), port=free_port(), workers=order.workers) as (
                one,
                admin,
            ):
                yield from _of_memory(memory(one, admin, films, order.requests // 10, order.requests, track))
        if order.kills:
            with server(order.run, folder / "kills", new_database(), port=free_port(), workers=order.workers) as (
                one,
                admin,
            ):
                yield from _of_kills(kill_again_and_again(one, admin, films, order.kills, order.seed, track))


def _of_crowds(order: Order, films: list[bytes], folder: Path, new_database: Any) -> Iterator[Finding]:  # noqa: ANN401
    """Measure with the pause that a person makes between two boxes, and for comparison without a pause."""
    with server(order.run, folder / "crowd", new_database(), port=free_port(), workers=order.workers) as (_, admin):
        yield from _of_crowd(crowd(admin, films, order.readers, order.boxes, order.pause, "reader"), promised=True)
        yield from _of_crowd(crowd(admin, films, order.readers, order.boxes, 0.0, "hasty"), promised=False)


def _of_crowd(found: Crowd, *, promised: bool) -> Iterator[Finding]:
    times = found.p95 / found.alone
    who = f"{found.readers} readers, {found.boxes} boxes each, {found.pause:g} s between two"
    yield Finding(f"errors: {who}", f"{found.errors}", "0", found.errors == 0)
    measured = (
        f"{times:.1f} times ({found.p95 * 1e3:.0f} ms; alone {found.alone * 1e3:.1f} ms; median "
        f"{found.p50 * 1e3:.0f} ms; {found.rate:.0f} boxes/s)"
    )
    most = f"at most {SLOWDOWN:g} times" if promised else "nothing: readers without a pause, for comparison"
    yield Finding(f"p95 of a box against one reader alone: {who}", measured, most, not promised or times <= SLOWDOWN)


def _of_memory(found: Memory) -> Iterator[Finding]:
    grown = found.late / found.early
    measured = f"{grown:.3f} times ({found.early / 2**20:.0f} MiB, then {found.late / 2**20:.0f} MiB)"
    what = f"memory after {found.late_requests:,} requests against after {found.early_requests:,}"
    yield Finding(what, measured, f"at most {GROWTH:g} times", grown <= GROWTH)
    yield Finding(f"errors in {found.late_requests:,} requests", f"{found.errors}", "0", found.errors == 0)


def _of_kills(found: Kills) -> Iterator[Finding]:
    measured = f"{found.missing} of {found.acknowledged:,}"
    yield Finding(f"acknowledged steps missing after {found.kills} kills", measured, "0", found.missing == 0)
    yield Finding("the log verifies after every kill", "yes" if found.whole else "no", "yes", found.whole)
    start = found.slowest_start
    yield Finding("slowest start after a kill", f"{start:.1f} s", f"at most {RESTART:g} s", start <= RESTART)
    replaced = found.worker_replaced
    measured = "no" if replaced is None else f"after {replaced:.1f} s"
    yield Finding("a killed worker is replaced unasked", measured, "yes", replaced is not None)
    yield Finding("requests refused while it ran", f"{found.refused}", "0", found.refused == 0)


@contextmanager
def _database(kind: str) -> Iterator[Any]:
    if kind == "sqlite":
        yield lambda: ""
        return
    with temporary_postgres() as cluster:
        yield cluster.new_database


def _films() -> list[bytes]:
    drawn = []
    for drawing in plan("tb", FILMS, seed=1):
        out = BytesIO()
        Image.fromarray(draw(drawing, SIDE).pixels).save(out, "PNG")
        drawn.append(out.getvalue())
    return drawn


def free_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
