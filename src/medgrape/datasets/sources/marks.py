"""Annotations in a form that does not depend on the tool: films by the names they were listed under, and marks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from medgrape.datasets.dataset import FilmRecord
from medgrape.datasets.draft import Complaints, Draft, box_on_film
from medgrape.datasets.label_files import SourceError
from medgrape.geometry import Box, FilmSize

RESHAPED = "shapes that are no upright box, taken as the box around them"
NO_BOX = "marks that are no box, left out"
PERCENT = FilmSize(100, 100)
"""The frame of boxes in percent of the film's width and height, whose size is not in the file."""


@dataclass(frozen=True)
class Mark:
    """A finding that somebody marked on a film."""

    label: str
    """The label in the tool."""
    corners: tuple[float, float, float, float] | None
    """x1, y1, x2, y2; None where the finding was marked, but not with a box."""
    size: FilmSize
    """Size of the film in the tool: the frame of the corners."""
    complaint: str | None = None
    """The complaint to record, where it was no upright box."""


@dataclass(frozen=True)
class MarkedFilm:
    """A film that somebody annotated, with all marks on it."""

    listed: str
    """Path or name of the film in the tool."""
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class MarkedFilms:
    """The content of an annotation file."""

    labels: tuple[str, ...]
    """Findings that could be marked, in the file's order."""
    films: tuple[MarkedFilm, ...]
    complaints: Complaints = field(default_factory=Complaints)
    notes: tuple[str, ...] = ()
    """What was left out although nothing is wrong with it."""


def mark_around(label: str, make: Callable[[], Box], size: FilmSize) -> Mark:
    """Return a mark with the box around some shape; a shape that makes no sense has an empty box."""
    try:
        return Mark(label, make().corners, size, RESHAPED)
    except (ValueError, OverflowError):
        return Mark(label, (0.0, 0.0, 0.0, 0.0), size, RESHAPED)


def place_marks(draft: Draft, marked: MarkedFilm, film: FilmRecord) -> None:
    """Add the marks in pixels of the film at hand, which may have been resized since."""
    for mark in marked.marks:
        if mark.corners is None:
            draft.doubt(film, mark.label, mark.complaint or NO_BOX)
            continue
        published = None if mark.size is PERCENT else mark.size
        added = draft.draw(film, mark.label, box_on_film(Box, mark.corners, mark.size, film.size), published)
        if added and mark.complaint is not None:
            draft.complaints.add(mark.complaint, f"{mark.label} on {film.id}")


@contextmanager
def source_errors(path: Path, what: str) -> Iterator[None]:
    """Turn whatever is raised on a file of another format into a ``SourceError`` that names the file."""
    try:
        yield
    except SourceError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise SourceError(f"{path} is no {what} ({type(error).__name__}: {error}).") from error
