"""Reading twenty thousand films: every film has a row, and memory stays flat."""

import threading
import time

import numpy as np
import psutil
import pytest
from bulk_scenes import bulk_request, copies, rows

from medgrape.bulk.local import LocalEngine
from medgrape.bulk.run import read_in_bulk

FILMS = 20_000


class Scales(threading.Thread):
    """Weighs this process and all below it, over and over; how far the reading is stands beside each weight."""

    def __init__(self, out) -> None:
        super().__init__(daemon=True)
        self._out, self.over, self.found = out, threading.Event(), []

    def run(self) -> None:
        while not self.over.wait(0.5):
            self.found.append((len(list(self._out.glob("part-*"))), weight()))


def weight() -> int:
    """Bytes in memory, those that processes share counted for each."""
    total = 0
    for one in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            total += one.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_twenty_thousand_films_have_twenty_thousand_rows_and_memory_stays_flat(tiny, films, tmp_path):
    folder, out = copies(films, tmp_path / "many", FILMS), tmp_path / "out"
    scales = Scales(out)
    scales.start()
    began = time.monotonic()
    summary = read_in_bulk(bulk_request(folder, tiny, out, part=100, batch=8), LocalEngine(2))
    seconds = time.monotonic() - began
    scales.over.set()
    scales.join()
    assert (summary.all.films, summary.all.refused, summary.all.parts) == (FILMS, 0, FILMS // 100)
    assert [row["film"] for row in rows(out)] == [str(film) for film in sorted(folder.iterdir())]
    tenths = [[held for parts, held in scales.found if tenth * 20 <= parts < (tenth + 1) * 20] for tenth in range(10)]
    means = [float(np.mean(tenth)) / 2**20 for tenth in tenths]
    print(f"{FILMS / seconds:.0f} films/s; MiB by tenth: {', '.join(f'{one:.0f}' for one in means)}")  # noqa: T201
    assert means[-1] <= 1.1 * means[1]
