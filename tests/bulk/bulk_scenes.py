"""Films to read in bulk, and what a folder of results holds."""

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow.dataset as ds
import torch

from medgrape.bulk.film_reader import FilmReader, WorkerConfig
from medgrape.bulk.run import BulkRequest


def copies(films: list[Path], folder: Path, count: int) -> Path:
    """As many films as asked for: second names of a few."""
    folder.mkdir()
    for number in range(count):
        os.link(films[number % len(films)], folder / f"{number:05d}.png")
    return folder


def bulk_request(place, model: Path, out: Path, part: int | None = 4, batch: int = 2) -> BulkRequest:
    return BulkRequest((str(place),), model, out, batch, part)


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


class InProcessSlot:
    """A worker that is no process of its own: for what does not depend on that."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config, self._reader = config, None

    def launch(self) -> None:
        self.close()

    def wait(self, wanted) -> None:
        if self._reader is None and wanted():
            threads = torch.get_num_threads()
            self._reader = FilmReader(self._config)
            torch.set_num_threads(threads)

    def read(self, films, refused=None):
        return self._reader.read(films, refused)

    def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()


@dataclass
class InProcessEngine:
    """One such worker; how often it was asked for is counted."""

    slot: type = InProcessSlot
    workers: int = 1
    name: str = "in process"
    asked: int = 0

    def slots(self, config: WorkerConfig) -> list:
        self.asked += 1
        return [self.slot(config)]
