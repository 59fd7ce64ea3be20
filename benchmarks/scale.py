"""How long, how many machines and how many bytes: plans for more films than are here, from what one film costs here.

Nothing here was run at that size. Costs of a film are measured; how parts are shared out to thousands of workers is
simulated; the rest is arithmetic, and says what it assumes.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.scale_costs import ARCHIVED, PUBLISHED, Costs

HOUR, DAY, YEAR = 3600.0, 86400.0, 365.25 * 86400.0
NIH_FILMS, NIH_EPOCHS, NIH_LATER_EPOCHS = 112_120, 30, 20
HOSPITAL_FILMS, BUSIEST = 1_000_000, 5.0
"""Films of a year, and the load of the busiest hour relative to the mean."""
MANY_FILMS = 1_000_000_000
MACHINE_CORES = 32
"""Cores of the machines in a plan."""
WORKERS = (2, 32, 320, 3200, 32_000)


@dataclass(frozen=True)
class Planned:
    """One line of a plan."""

    plan: str
    what: str
    figure: str
    rests_on: str
    """``measured``, ``simulated`` or ``assumed: ...``, with the origin of the figure."""


@dataclass(frozen=True)
class Crowd:
    """A simulation of some workers and one driver."""

    workers: int
    parts_per_second: float
    busy: float
    """Share of the workers' time spent on reading."""
    driver: float
    """Share of the driver's time spent on writing."""


def simulate(workers: int, reading: float, writing: float, parts: int, *, uneven: float = 0.1) -> Crowd:
    """Share ``parts`` out: each takes about ``reading`` seconds of a worker, then ``writing`` of the one driver.

    A worker may take its next part as soon as the driver has room for its result, of which as many may wait as there
    are workers: so a slow driver holds everybody up, as it does in ``engine/crew.py``.
    """
    free = [0.0] * workers
    done_at, driver_free, written = list[float](), 0.0, list[float]()
    for number in range(parts):
        began = heapq.heappop(free)
        ended = began + reading * (1 + uneven * (2 * ((number * 0.6180339887) % 1) - 1))
        waits_for = written[number - workers] if number >= workers else 0.0
        handed = max(ended, waits_for)
        driver_free = max(driver_free, handed) + writing
        written.append(driver_free)
        done_at.append(ended - began)
        heapq.heappush(free, handed)
    took = written[-1]
    return Crowd(workers, parts / took, sum(done_at) / (took * workers), parts * writing / took)


def crowds(costs: Costs) -> list[Crowd]:
    """Simulate bulk reading of a hospital's films with more and more workers and one driver."""
    reading = costs.part * per_film(costs)
    return [simulate(workers, reading, costs.handing_out, 20 * workers + 200) for workers in WORKERS]


def per_film(costs: Costs) -> float:
    """Return the seconds of one core for a film: decoding from the archive, and the int8 model."""
    return costs.decoding[ARCHIVED.title] + costs.forward["int8"]


def plans(costs: Costs, gpu: float) -> Iterator[Planned]:
    """Yield every line; ``gpu`` is the assumed number of films a second that a GPU trains on."""
    yield from _nih(costs, gpu)
    yield from _hospital(costs)
    yield from _billion(costs)


def _nih(costs: Costs, gpu: float) -> Iterator[Planned]:
    name, films = f"NIH, {NIH_FILMS:,} films, one GPU", NIH_FILMS
    decoding = films * costs.decoding[PUBLISHED.title]
    yield Planned(name, "decode all films once, 8 cores", _time(decoding / 8), "measured: a 1024 pixel PNG on one core")
    learning = NIH_EPOCHS * films / gpu
    yield Planned(
        name, f"stage 1, {NIH_EPOCHS} epochs", _time(learning), f"assumed: a GPU learns from {gpu:,.0f} films/s"
    )
    on_cpu = NIH_EPOCHS * films * costs.learning
    yield Planned(name, f"the same on {costs.cores} cores", _time(on_cpu), "measured: a step of stage 1 here")
    looking = films * costs.forward["torch"] / costs.cores
    yield Planned(name, f"vectors and scores, {costs.cores} cores", _time(2 * looking), "measured: forward, twice")
    later = NIH_LATER_EPOCHS * films * costs.stages_3_and_4
    yield Planned(name, f"stages 3 and 4, {NIH_LATER_EPOCHS} epochs", _time(later), "measured: an epoch from disk here")
    yield Planned(name, "decoded films on disk", _bytes(films * costs.cached_bytes), "arithmetic: 224 x 224 bytes each")
    yield Planned(name, "scores on disk", _bytes(films * costs.score_bytes), "arithmetic: K x M numbers each")


def _hospital(costs: Costs) -> Iterator[Planned]:
    name, films = f"hospital, {HOSPITAL_FILMS:,} films a year", HOSPITAL_FILMS
    cores = films * per_film(costs) / YEAR
    yield Planned(name, "cores that are busy on average", f"{cores:.4f}", "measured: decoding a DICOM film, int8")
    yield Planned(name, f"in an hour {BUSIEST:g} times as busy", f"{BUSIEST * cores:.3f}", "assumed: how busy that is")
    yield Planned(name, "the year again with another model", _time(films * per_film(costs) / costs.cores),
                  f"measured, on {costs.cores} cores")  # fmt: skip
    yield Planned(name, "a table of the year", _bytes(films * costs.row_bytes), "measured: bytes of a row")


def _billion(costs: Costs) -> Iterator[Planned]:
    name, films = f"{MANY_FILMS:,} films", MANY_FILMS
    core_hours = films * per_film(costs) / HOUR
    yield Planned(name, "hours of one core", f"{core_hours:,.0f}", "measured: decoding a DICOM film, int8")
    for machines in (10, 100):
        seconds = films * per_film(costs) / (machines * MACHINE_CORES)
        what = f"{machines} machines of {MACHINE_CORES} cores"
        yield Planned(name, what, _time(seconds), "arithmetic: as if nobody waited (see below for who does)")
    rate = 100 * MACHINE_CORES / per_film(costs)
    read = rate * ARCHIVED.side**2 * 2
    yield Planned(name, "read from storage by 100 machines", f"{_bytes(read)}/s", "arithmetic: 16 bit, uncompressed")
    yield Planned(name, "films in storage", _bytes(films * ARCHIVED.side**2 * 2), "arithmetic: the same")
    yield Planned(name, "the table", _bytes(films * costs.row_bytes), "measured: bytes of a row")
    yield Planned(name, "files of the table", f"{films / costs.part:,.0f}", f"arithmetic: {costs.part} films to a part")
    most = costs.part * per_film(costs) / costs.handing_out
    yield Planned(name, "workers that one driver keeps busy", f"{most:,.0f}", "measured: writing a part")


def _time(seconds: float) -> str:
    for length, unit in ((YEAR, "years"), (DAY, "days"), (HOUR, "hours"), (60.0, "minutes")):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.1f} s"


def _bytes(count: float) -> str:
    for size, unit in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,.0f} B"
