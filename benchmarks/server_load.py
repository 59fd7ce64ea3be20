"""Many readers at once against a single one; and memory after many requests against memory after few."""

import random
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from benchmarks.server_under_test import LOST, Caller, ServerUnderTest, new_reader
from medgrape.progress import Track, quietly


@dataclass(frozen=True)
class Crowd:
    """Times of boxes with many readers and with one."""

    readers: int
    boxes: int
    pause: float
    """Mean seconds between two boxes of a reader."""
    errors: int
    alone: float
    """Median seconds of a box with one reader."""
    p50: float
    p95: float
    """Seconds of a box with all readers: median and 95th percentile."""
    rate: float
    """Boxes a second."""


@dataclass(frozen=True)
class Memory:
    """Bytes of memory of all server processes together."""

    early_requests: int
    early: int
    late_requests: int
    late: int
    errors: int


def crowd(admin: Caller, films: Sequence[bytes], readers: int, boxes: int, pause: float, name: str) -> Crowd:
    """Let every reader open a film and draw: first one alone, then all."""
    people = [new_reader(admin, f"{name}{number}") for number in range(readers)]
    uploaded = [people[0].upload(film) for film in films]
    studies = [
        str(person.post("/studies", {"film": uploaded[number % len(uploaded)]})["id"])
        for number, person in enumerate(people)
    ]
    alone, errors = _boxes(people[0], studies[0], boxes, 0.0, 0)
    began = time.perf_counter()
    with ThreadPoolExecutor(readers) as crowd_:
        jobs = [
            crowd_.submit(_boxes, person, study, boxes, pause, number)
            for number, (person, study) in enumerate(zip(people, studies, strict=True))
        ]
        drawn = [job.result() for job in jobs]
    taken = time.perf_counter() - began
    times = sorted(one for own, _ in drawn for one in own)
    errors += sum(failed for _, failed in drawn)
    p95 = times[int(0.95 * len(times))]
    return Crowd(
        readers, boxes, pause, errors, statistics.median(alone), statistics.median(times), p95, len(times) / taken
    )


def _boxes(caller: Caller, study: str, count: int, pause: float, seed: int) -> tuple[list[float], int]:
    """Return the seconds of each box, and the number of failed ones."""
    chance, times, errors = random.Random(seed), [], 0  # noqa: S311
    for _ in range(count):
        time.sleep(chance.uniform(0.5, 1.5) * pause)
        began = time.perf_counter()
        try:
            status, _body = caller.ask("POST", f"/studies/{study}/boxes", _box(chance))
        except LOST:
            status = 0
        times.append(time.perf_counter() - began)
        errors += status != 200
    return times, errors


def memory(
    tested: ServerUnderTest, admin: Caller, films: Sequence[bytes], early: int, late: int, track: Track = quietly
) -> Memory:
    """Measure the memory of the processes after ``early`` and after ``late`` requests of all kinds."""
    people = [new_reader(admin, f"mixed{number}") for number in range(8)]
    uploaded = [people[0].upload(film) for film in films]
    work = _Mixture(people, uploaded)
    work.do(early)
    first = _resident(tested.process_id)
    for _ in track(range(10), f"asking {late - early:,} more times", 10):
        work.do((late - early) // 10)
    return Memory(early, first, late, _resident(tested.process_id), work.errors)


class _Mixture:
    """Eight readers who send requests of all kinds."""

    def __init__(self, people: Sequence[Caller], films: Sequence[str]) -> None:
        self.errors = 0
        self._lock = threading.Lock()
        self._people, self._films = people, films
        self._studies = [
            [str(person.post("/studies", {"film": film})["id"]) for film in films[:3]] for person in people
        ]
        self._round = 0

    def do(self, requests: int) -> None:
        """Send this number of requests with all readers together."""
        self._round += 1
        each = requests // len(self._people)
        with ThreadPoolExecutor(len(self._people)) as threads:
            list(threads.map(lambda number: self._person(number, each), range(len(self._people))))

    def _person(self, number: int, requests: int) -> None:
        caller, chance = self._people[number], random.Random(self._round * 1000 + number)  # noqa: S311
        for _ in range(requests):
            study = chance.choice(self._studies[number])
            method, path, payload = chance.choice(_DEEDS)(study, chance.choice(self._films), chance)
            status, _body = caller.ask(method, path, payload)
            if status >= 400 and status != 409:  # 409: there was nothing to undo
                with self._lock:
                    self.errors += 1


Deed = Callable[[str, str, random.Random], tuple[str, str, Any]]
_DEEDS: tuple[Deed, ...] = (
    lambda study, _, chance: ("POST", f"/studies/{study}/boxes", _box(chance)),
    lambda study, _, __: ("POST", f"/studies/{study}/undo", {}),
    lambda study, _, __: ("POST", f"/studies/{study}/undo", {}),
    lambda study, _, chance: ("POST", f"/studies/{study}/check", {"box": _box(chance)["box"], "concept": "active_tb"}),
    lambda study, _, __: ("GET", f"/studies/{study}/explanation", None),
    lambda study, _, __: ("GET", f"/studies/{study}/maps/active_tb.png?side=256", None),
    lambda _, film, __: ("GET", f"/films/{film}/picture.png?side=256", None),
    lambda _, film, __: ("GET", f"/films/{film}/preview.png", None),
    lambda _, __, ___: ("GET", "/films?size=20", None),
    lambda _, film, __: ("POST", "/studies", {"film": film}),
)


def _box(chance: random.Random) -> dict[str, Any]:
    x, y = chance.uniform(0, 150), chance.uniform(0, 150)
    box = {"x1": x, "y1": y, "x2": x + chance.uniform(5, 60), "y2": y + chance.uniform(5, 60)}
    return {"box": box, "concept": "active_tb", "confirmed": True}


def _resident(process: int) -> int:
    import psutil

    watcher = psutil.Process(process)
    return sum(one.memory_info().rss for one in (watcher, *watcher.children(recursive=True)))
