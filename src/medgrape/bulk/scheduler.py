"""Some workers and the parts that they share out: each takes the next one when it has nothing to do.

So no more parts are under way than there are workers, and no more results wait than the driver can write: memory does
not grow with the number of films. A part whose worker died goes to the next that is free.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from medgrape.bulk.listing import ListedFilm
from medgrape.bulk.plan import Part
from medgrape.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

    from medgrape.bulk.film_reader import Job


class WorkerDiedError(Exception):
    """The process is gone, and with it what it was reading."""


class SeatLostError(Exception):
    """No process can be started here any more."""


@runtime_checkable
class Seat(Protocol):
    """A place for one worker at a time. ``UserError`` from any of these is told to the person and ends the work."""

    def launch(self) -> None:
        """Start a process, and do not wait for it; one that was there before is ended."""
        ...

    def wait(self, wanted: Callable[[], bool]) -> None:
        """Until the process is ready or nobody wants it any more; ``SeatLostError`` if there will be none."""
        ...

    def read(self, films: Sequence[ListedFilm], refused: str | None = None) -> "pa.Table":
        """A row for each film, or, with a reason, rows that refuse them; ``WorkerDiedError`` if the process dies."""
        ...

    def close(self) -> None:
        """End the process, whatever it does; may be called by another thread."""
        ...


@runtime_checkable
class Engine(Protocol):
    """Where workers come from."""

    @property
    def name(self) -> str:
        """As it is called on the command line."""
        ...

    @property
    def workers(self) -> int:
        """How many there are at once."""
        ...

    def seats(self, job: "Job") -> list[Seat]:
        """A seat for each of them, none of them started."""
        ...


MOST_DEATHS = 3
"""After so many workers that died over a part, its films are read one by one, to find the one that does it."""
CULPRIT = "reading it ended the process that read it, as often as it was tried."


@dataclass
class Errand:
    """A part on its way to becoming a table."""

    part: Part
    deaths: int = 0
    one_by_one: "list[pa.Table]" = field(default_factory=list)
    suspect: int = -1
    """The film that a worker died over when it read that film alone."""

    def read_by(self, seat: Seat) -> "pa.Table":
        """All rows. What was read one by one is kept if the worker dies, and each film can end one worker at most."""
        if self.deaths < MOST_DEATHS:
            return seat.read(self.part.films)
        import pyarrow as pa

        for number, film in list(enumerate(self.part.films))[len(self.one_by_one) :]:
            refused = CULPRIT if self.suspect == number else None
            self.suspect = number
            self.one_by_one.append(seat.read([film], refused))
        return pa.concat_tables(self.one_by_one)


class Crew:
    """A thread for each seat, which hands its worker one part at a time."""

    def __init__(self, seats: Sequence[Seat], parts: Iterator[Part]) -> None:
        self._seats, self._parts = seats, parts
        self._given_back: deque[Errand] = deque()
        self._under_way, self._seated, self._no_more, self._stopped = 0, len(seats), False, False
        self._change = threading.Condition()
        self._done: queue.SimpleQueue[tuple[Part, pa.Table] | BaseException | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(len(seats))
        """For results that wait to be written."""

    def results(self) -> "Iterator[tuple[Part, pa.Table]]":
        """Every part with its table, in the order in which they are done."""
        threads = [threading.Thread(target=self._work, args=(seat,), daemon=True) for seat in self._seats]
        for thread in threads:
            thread.start()
        try:
            while (done := self._done.get()) is not None:
                if isinstance(done, BaseException):
                    raise done
                yield done
                self._room.release()
        finally:
            self._stop()
            self._close()
            for thread in threads:
                thread.join()
            self._close()  # of those that were just being started

    def _close(self) -> None:
        for seat in self._seats:
            seat.close()

    def _work(self, seat: Seat) -> None:
        try:
            seat.wait(self._wanted)
            while (errand := self._next()) is not None:
                self._read(errand, seat)
        except SeatLostError:
            self._leave()
        except BaseException as error:
            self._done.put(error)

    def _read(self, errand: Errand, seat: Seat) -> None:
        try:
            table = errand.read_by(seat)
        except WorkerDiedError:
            errand.deaths += 1
            with self._change:
                self._given_back.append(errand)
                self._change.notify_all()
            if self._wanted():
                seat.launch()
                seat.wait(self._wanted)
            return
        self._hand_over(errand.part, table)
        with self._change:
            self._under_way -= 1
            self._end_if_done()

    def _next(self) -> Errand | None:
        """What to do now; None once everything is done. Whoever has nothing to do waits: a part may come back."""
        with self._change:
            while not self._stopped:
                if self._given_back:
                    return self._given_back.popleft()
                if not self._no_more:
                    part = next(self._parts, None)
                    if part is not None:
                        self._under_way += 1
                        return Errand(part)
                    self._no_more = True
                    self._end_if_done()
                    continue
                self._change.wait()
        return None

    def _end_if_done(self) -> None:
        if self._no_more and self._under_way == 0 and not self._stopped:
            self._stopped = True
            self._change.notify_all()
            self._done.put(None)

    def _wanted(self) -> bool:
        return not self._stopped

    def _leave(self) -> None:
        with self._change:
            self._seated -= 1
            if self._seated:
                return
        sentence = "No worker is left, and none can be started; what is done is kept: give the command again."
        self._done.put(UserError(sentence))

    def _hand_over(self, part: Part, table: "pa.Table") -> None:
        """To the driver, as soon as it has written enough of what came before."""
        while not self._room.acquire(timeout=0.5):
            if self._stopped:
                return
        self._done.put((part, table))

    def _stop(self) -> None:
        with self._change:
            self._stopped = True
            self._change.notify_all()
