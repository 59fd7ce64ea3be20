"""What annotation tools tell of films, whichever tool it was: films by the names they were listed under, and marks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from medgrape.datasets.dataset import FilmRecord
from medgrape.datasets.draft import Complaints, Draft, placed_box
from medgrape.datasets.label_files import SourceError
from medgrape.geometry import Box, FilmSize

RESHAPED = "shapes that are no upright box, taken as the box around them"
NO_BOX = "marks that are no box, left out"
PERCENT = FilmSize(100, 100)
"""The frame of boxes whose film's size nobody told: shares of its width and height."""


@dataclass(frozen=True)
class Mark:
    """A finding that somebody pointed at."""

    label: str
    """As the tool calls it."""
    corners: tuple[float, float, float, float] | None
    """x1, y1, x2, y2; None where somebody said that it is there, but not with a box."""
    size: FilmSize
    """Of the film as the tool saw it: the frame of the corners."""
    trouble: str | None = None
    """What kind of complaint it is, where it was no upright box."""


@dataclass(frozen=True)
class MarkedFilm:
    """A film that somebody looked at, with all that they marked on it."""

    listed: str
    """The path or name that the tool has for it."""
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class MarkedFilms:
    """What a tool's file tells."""

    labels: tuple[str, ...]
    """Findings that could be marked, in the file's order."""
    films: tuple[MarkedFilm, ...]
    complaints: Complaints = field(default_factory=Complaints)
    notes: tuple[str, ...] = ()
    """What was left out though nothing is wrong with it."""


def shaped(label: str, make: Callable[[], Box], size: FilmSize, trouble: str | None = None) -> Mark:
    """A mark around some shape; a shape that makes no sense is a mark without a box."""
    try:
        return Mark(label, make().corners, size, trouble)
    except (ValueError, OverflowError):
        return Mark(label, (0.0, 0.0, 0.0, 0.0), size, trouble)


def place_marks(draft: Draft, marked: MarkedFilm, film: FilmRecord) -> None:
    """Draw the marks in the pixels of the film that is there, which may have been resized since."""
    for mark in marked.marks:
        if mark.corners is None:
            draft.doubt(film, mark.label, mark.trouble or NO_BOX)
            continue
        seen = None if mark.size is PERCENT else mark.size
        drawn = draft.draw(film, mark.label, placed_box(Box, mark.corners, mark.size, film.size), seen)
        if drawn and mark.trouble is not None:
            draft.complaints.add(mark.trouble, f"{mark.label} on {film.id}")


@contextmanager
def told_as(path: Path, what: str) -> Iterator[None]:
    """Whatever does not fit a format becomes one sentence that names the file."""
    try:
        yield
    except SourceError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise SourceError(f"{path} is no {what} ({type(error).__name__}: {error}).") from error
