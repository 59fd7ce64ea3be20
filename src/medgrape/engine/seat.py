"""Where one worker sits: a process that reads films, that may die, and that is then replaced."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from medgrape.engine.listing import ListedFilm

if TYPE_CHECKING:
    import pyarrow as pa

    from medgrape.engine.reading import Job


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
