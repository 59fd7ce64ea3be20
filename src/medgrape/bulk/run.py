"""Reads many films with one model, on any engine, and continues where an earlier call ended.

Each worker slot takes the next part when it has finished one. So there are never more parts under way than workers, and
finished parts wait only until they are written: memory does not grow with the number of films. If a worker dies, its
part goes to the next free slot.
"""

import importlib.util
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from medgrape.bulk.film_reader import WorkerConfig, model_version
from medgrape.bulk.listing import ListedFilm, refuse_missing
from medgrape.bulk.results import NEEDED, PLAN, Listing, Part, Parts, Plan, Summary, list_films, part_size, read_plan
from medgrape.errors import UserError
from medgrape.files import LOCK, locked_folder
from medgrape.progress import Watch, unwatched

if TYPE_CHECKING:
    import pyarrow as pa


class WorkerDiedError(Exception):
    """The worker process is gone, and with it the part that it was reading."""


class WorkerSlotLostError(Exception):
    """No process can be started in this slot any more."""


@runtime_checkable
class WorkerSlot(Protocol):
    """A place for one worker process at a time; a ``UserError`` from any method ends the whole work."""

    def launch(self) -> None:
        """Start a process without waiting for it; end the one before."""

    def wait(self, wanted: Callable[[], bool]) -> None:
        """Wait until the process is ready or no longer wanted; raise ``WorkerSlotLostError`` if it cannot start."""

    def read(self, films: Sequence[ListedFilm], refused: str | None = None) -> "pa.Table":
        """Return a row for each film, or rows with the reason ``refused``; ``WorkerDiedError`` if the process dies."""

    def close(self) -> None:
        """End the process, whatever it does; another thread may call this."""


@runtime_checkable
class Engine(Protocol):
    """Where the workers run."""

    @property
    def name(self) -> str:
        """Name of the engine on the command line."""

    @property
    def workers(self) -> int:
        """Number of workers."""

    def slots(self, config: WorkerConfig) -> list[WorkerSlot]:
        """Return a slot for each worker, none of them started."""


MAX_DEATHS = 3  # workers that may die over a part before its films are read one by one, to find the one that kills them
CRASHED = "the reader process crashed on this film every time."


@dataclass
class Task:
    """A part that is being read."""

    part: Part
    deaths: int = 0
    one_by_one: "list[pa.Table]" = field(default_factory=list)
    suspect: int = -1  # number of the film that a worker is reading, or died over, when it reads films one by one

    def run(self, slot: WorkerSlot) -> "pa.Table":
        """Return all rows. Rows that were read one by one survive the worker, and each film kills one more at most."""
        if self.deaths < MAX_DEATHS:
            return slot.read(self.part.films)
        import pyarrow as pa

        for number, film in list(enumerate(self.part.films))[len(self.one_by_one) :]:
            refused = CRASHED if self.suspect == number else None
            self.suspect = number
            self.one_by_one.append(slot.read([film], refused))
        return pa.concat_tables(self.one_by_one)


class Scheduler:
    """Gives each worker slot one part at a time; every slot has a thread."""

    def __init__(self, slots: Sequence[WorkerSlot], parts: Iterator[Part]) -> None:
        self._slots, self._tasks, self._stopped = slots, map(Task, parts), False

    def results(self) -> "Generator[tuple[Part, pa.Table], None, None]":
        """Yield every part with its table, in the order in which they are finished."""
        with ExitStack() as stack:
            stack.callback(self._close)  # after all threads have ended, which may just have started processes
            threads = stack.enter_context(ThreadPoolExecutor(len(self._slots)))
            stack.callback(self._stop)
            yield from self._schedule(threads)

    def _schedule(self, threads: Executor) -> "Iterator[tuple[Part, pa.Table]]":
        running: dict[Future[Any], tuple[WorkerSlot, Task | None]] = {
            threads.submit(slot.wait, self._is_wanted): (slot, None) for slot in self._slots
        }
        idle, interrupted = deque[WorkerSlot](), deque[Task]()
        while running:
            finished = []
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                slot, task = running.pop(future)
                try:
                    table = future.result()
                except WorkerSlotLostError:
                    continue
                except WorkerDiedError:
                    if task is not None:
                        task.deaths += 1
                        interrupted.append(task)
                    running[threads.submit(self._restart, slot)] = slot, None
                    continue
                idle.append(slot)
                if task is not None:
                    finished.append((task.part, table))
            while idle and (task := interrupted.popleft() if interrupted else next(self._tasks, None)) is not None:
                slot = idle.popleft()
                running[threads.submit(task.run, slot)] = slot, task
            yield from finished
            if idle and all(task is None for _, task in running.values()):
                return
        raise UserError("No worker is left and none can be started; finished parts are kept: give the command again.")

    def _restart(self, slot: WorkerSlot) -> None:
        if not self._stopped:
            slot.launch()
            slot.wait(self._is_wanted)

    def _is_wanted(self) -> bool:
        return not self._stopped

    def _stop(self) -> None:
        self._stopped = True
        self._close()

    def _close(self) -> None:
        for slot in self._slots:
            slot.close()


@dataclass(frozen=True)
class BulkRequest:
    """Which films to read, with which model, and where to write the results."""

    places: tuple[str, ...]
    model: Path
    out: Path
    batch: int = 8  # films that the model sees at once; more than 8 are slower on most processors
    part: int | None = None  # films in a part; None: depends on their number


def read_in_bulk(request: BulkRequest, engine: Engine, watch: Watch = unwatched) -> Summary:
    """Read all films that have no row yet; films and model are checked before anything is written."""
    began = time.monotonic()
    if importlib.util.find_spec("pyarrow") is None:
        raise UserError(NEEDED)
    refuse_missing(request.places)
    config = WorkerConfig(model=request.model.resolve(), version=model_version(request.model), batch=request.batch)
    with _locked(request.out), _listed(request) as listing:
        plan = read_plan(request.out)
        is_new = plan is None
        if plan is None:
            size = request.part or part_size(listing.films, engine.workers)
            plan = Plan(model=config.version, films=listing.films, digest=listing.digest, part=size)
        _refuse_other(request, plan, listing, config.version)
        parts = Parts(request.out, plan)
        missing = parts.missing()
        first = [] if is_new else list(islice(missing, 1))
        if is_new or first:  # otherwise everything is read, and no worker is needed
            with _started(engine.slots(config)) as slots:
                if is_new:
                    plan.write(request.out, listing)
                _read(parts, chain(first, missing), slots, watch)
        seconds = time.monotonic() - began
        found, made = parts.found, parts.made
        summary = Summary(str(request.out), config.version, engine.name, engine.workers, found, made, seconds)
        summary.write(request.out)
    return summary


def _read(parts: Parts, missing: Iterator[Part], slots: Sequence[WorkerSlot], watch: Watch) -> None:
    shown = 0
    with watch("reading films", parts.plan.parts) as step, closing(Scheduler(slots, missing).results()) as results:
        for part, table in results:
            parts.keep(part, table)
            count = parts.found + parts.made
            for _ in range(count.parts - shown):
                step(f"{count.films:,} films, {count.refused:,} refused")
            shown = count.parts


@contextmanager
def _started(slots: Sequence[WorkerSlot]) -> Iterator[Sequence[WorkerSlot]]:
    """Start all workers and wait for one, so that a model that cannot be loaded ends it before anything is written."""
    with ExitStack() as stack:
        for slot in slots:
            stack.callback(slot.close)
            slot.launch()
        try:
            slots[0].wait(lambda: True)
        except WorkerSlotLostError:
            raise UserError("No worker can be started: memory is short, or the cluster has no free core.") from None
        yield slots


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Lock the folder against other calls; without a plan in the end, leave it as it was."""
    new = not out.exists()

    def is_ours() -> bool:
        return read_plan(out) is not None or all(path.name[0] in "._" for path in out.iterdir())

    busy = f"Another process is reading films into {out}; wait for it, or choose another --out."
    try:
        with locked_folder(out, busy, is_ours=is_ours):
            for left_over in out.glob(".*.part"):  # of calls that were killed
                left_over.unlink()
            try:
                yield
            finally:
                if not (out / PLAN).is_file():
                    (out / LOCK).unlink(missing_ok=True)
    finally:
        if new and out.is_dir() and not any(out.iterdir()):
            out.rmdir()


@contextmanager
def _listed(request: BulkRequest) -> Iterator[Listing]:
    path = request.out / ".films.part"
    try:
        listing = list_films(request.places, path)
        if not listing.films:
            raise UserError(f"There is no film in {', '.join(request.places)}.")
        yield listing
    finally:
        path.unlink(missing_ok=True)


def _refuse_other(request: BulkRequest, plan: Plan, listing: Listing, version: str) -> None:
    """Refuse a folder that was started with other films or another model."""
    started = f"{request.out} was started with"
    if plan.model != version:
        raise UserError(f"{started} another model ({plan.model}, this one is {version}); choose another --out.")
    if plan.digest != listing.digest:
        raise UserError(f"{started} other films ({plan.films:,}, now {listing.films:,}); choose another --out.")
    if request.part not in (None, plan.part):
        raise UserError(f"{started} {plan.part} films to a part; leave out --shard to continue.")
