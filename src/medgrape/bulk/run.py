"""Many films read with one model, on any engine: planned, shared out, written part by part, and gone on with."""

import importlib.util
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from filelock import FileLock, Timeout

from medgrape.bulk.film_reader import Job, model_version
from medgrape.bulk.listing import refuse_missing
from medgrape.bulk.plan import PLAN, Listing, Part, Plan, list_films, plan_for, plan_in
from medgrape.bulk.results import Parts, Summary
from medgrape.bulk.scheduler import Crew, Engine, Seat, SeatLostError
from medgrape.errors import UserError
from medgrape.progress import Watch, unwatched

_LOCK = ".lock"


@dataclass(frozen=True)
class Order:
    """Which films, with which model, where to."""

    places: tuple[str, ...]
    model: Path
    out: Path
    batch: int = 8
    """Films that the model sees at once; more than 8 are slower on most processors."""
    part: int | None = None
    """Films to a file; None: by how many there are."""


def read_in_bulk(order: Order, engine: Engine, watch: Watch = unwatched) -> Summary:
    """Read whatever has no row yet. Nothing is written before films and model are known to be good."""
    began = time.monotonic()
    if importlib.util.find_spec("pyarrow") is None:
        raise UserError("Tables of films need: pip install 'medgrape[bulk]'.")
    refuse_missing(order.places)
    job = Job(order.model.resolve(), model_version(order.model), order.batch)
    with _alone_in(order.out), _listed(order) as listing:
        known = plan_in(order.out)
        plan = known or plan_for(listing, job.version, order.part, engine.workers)
        _refuse_other(order, plan, listing, job.version)
        parts = Parts(order.out, plan)
        if known is None:
            with _started(engine.seats(job)) as seats:
                plan.write(order.out, listing)
                _read(parts, parts.missing(), seats, watch)
        else:
            _go_on(parts, engine, job, watch)
        seconds = time.monotonic() - began
        summary = Summary(str(order.out), job.version, engine.name, engine.workers, parts.found, parts.made, seconds)
        summary.write(order.out)
    return summary


def _go_on(parts: Parts, engine: Engine, job: Job, watch: Watch) -> None:
    """With whatever an earlier call has not read; if it has read everything, no worker is started."""
    missing = parts.missing()
    first = next(missing, None)
    if first is not None:
        with _started(engine.seats(job)) as seats:
            _read(parts, chain([first], missing), seats, watch)


def _read(parts: Parts, missing: Iterator[Part], seats: Sequence[Seat], watch: Watch) -> None:
    told = 0
    with watch("reading films", parts.plan.parts) as step:
        for part, table in Crew(seats, missing).results():
            parts.keep(part, table)
            count = parts.found + parts.made
            for _ in range(count.parts - told):
                step(f"{count.films:,} films, {count.refused:,} refused")
            told = count.parts


@contextmanager
def _started(seats: Sequence[Seat]) -> Iterator[Sequence[Seat]]:
    """All workers on their way and one of them ready: a model that cannot be loaded is told before anything is kept."""
    try:
        for seat in seats:
            seat.launch()
        _wait(seats[0])
        yield seats
    finally:
        for seat in seats:
            seat.close()


def _wait(seat: Seat) -> None:
    try:
        seat.wait(lambda: True)
    except SeatLostError:
        raise UserError("No worker can be started: there is too little memory, or no room on the cluster.") from None


@contextmanager
def _alone_in(out: Path) -> Iterator[None]:
    """The folder, which no other call may write to at the same time; without a plan it is left as it was."""
    new = not out.exists()
    if not new and (not out.is_dir() or (plan_in(out) is None and any(_foreign(out)))):
        raise UserError(f"{out} is there already and holds something else; choose another --out.")
    out.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(out / _LOCK, timeout=0):
            for left_over in out.glob(".*.part"):  # of calls that were killed
                left_over.unlink()
            try:
                yield
            finally:
                if not (out / PLAN).is_file():
                    (out / _LOCK).unlink(missing_ok=True)
    except Timeout:
        raise UserError(f"Another process is reading films into {out}; wait for it, or choose another --out.") from None
    finally:
        if new and not any(out.iterdir()):
            out.rmdir()


def _foreign(out: Path) -> Iterator[Path]:
    return (path for path in out.iterdir() if not path.name.startswith((".", "_")))


@contextmanager
def _listed(order: Order) -> Iterator[Listing]:
    path = order.out / ".films.part"
    try:
        listing = list_films(order.places, path)
        if not listing.films:
            raise UserError(f"There is no film in {', '.join(order.places)}.")
        yield listing
    finally:
        path.unlink(missing_ok=True)


def _refuse_other(order: Order, plan: Plan, listing: Listing, version: str) -> None:
    """A folder holds the films of one listing, read with one model."""
    if plan.model != version:
        raise UserError(
            f"{order.out} was begun with another model ({plan.model}, this one is {version}); choose another --out."
        )
    if plan.digest != listing.digest:
        raise UserError(
            f"{order.out} was begun with other films ({plan.films:,}, now {listing.films:,}); choose another --out."
        )
    if order.part not in (None, plan.part):
        raise UserError(f"{order.out} was begun with {plan.part} films to a part; leave --shard out to go on.")
