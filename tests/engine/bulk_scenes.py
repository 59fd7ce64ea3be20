"""Films to read in bulk, and what a folder of results holds."""

import os
import signal
import threading
import time
from pathlib import Path

import pyarrow.dataset as ds

from medgrape.engine.bulk import Order


def copies(films: list[Path], folder: Path, count: int) -> Path:
    """As many films as asked for: second names of a few."""
    folder.mkdir()
    for number in range(count):
        os.link(films[number % len(films)], folder / f"{number:05d}.png")
    return folder


def order(place, model: Path, out: Path, part: int | None = 4, batch: int = 2) -> Order:
    return Order((str(place),), model, out, batch, part)


def rows(out: Path) -> list[dict]:
    return sorted(ds.dataset(out).to_table().to_pylist(), key=lambda row: row["film"])


def kill_when(ready, process_id) -> threading.Thread:
    """SIGKILL for one process, by its id, as soon as something is so."""

    def wait() -> None:
        deadline = time.monotonic() + 60
        while not ready() and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(process_id(), signal.SIGKILL)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread
