"""Which films are meant by a place: a film, a folder, a list, a prepared data set, or any of these in some storage."""

import csv
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from medgrape.bulk import storage
from medgrape.datasets.dataset import film_paths
from medgrape.errors import UserError, nearest
from medgrape.films.film import FilmError
from medgrape.films.reading import START, kind_of_start

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".dcm", ".dicom"})
LISTS = frozenset({".txt", ".csv"})


@dataclass(frozen=True)
class ListedFilm:
    """A film as somebody listed it, and where it is for whoever works in another folder."""

    name: str
    place: str
    """A URL or an absolute path."""

    @classmethod
    def of(cls, name: str) -> "ListedFilm":
        """By its path or URL."""
        return cls(name, name if storage.is_url(name) else os.path.abspath(name))  # noqa: PTH100 (a link stays a link)


def films_of(places: Iterable[str]) -> Iterator[tuple[int, int, str]]:
    """Every film of every place, in no particular order: number of the place, rank there, path or URL.

    Films of a list have its lines as ranks; those of a folder all have the same one and are ordered by name.
    """
    for number, place in enumerate(places):
        for rank, film in _films(place):
            yield number, rank, film


def refuse_missing(places: Iterable[str]) -> None:
    """Before anything is started: a mistyped path is told at once."""
    for place in places:
        if not storage.is_url(place) and not Path(place).exists():
            raise UserError(f"{place} is not there: name films, a folder, a list, a prepared data set or a URL.")


def _films(place: str) -> Iterator[tuple[int, str]]:
    suffix = PurePosixPath(place).suffix.lower()
    if suffix in LISTS:
        yield from enumerate(_listed(place, suffix))
    elif storage.is_url(place):
        if suffix in SUFFIXES or not storage.is_folder(place):
            yield 0, place
        else:
            yield from ((0, film) for film in _in_storage(place))
    elif (Path(place) / "dataset.toml").is_file():
        yield from enumerate(map(str, film_paths(Path(place))))
    elif Path(place).is_dir():
        yield from ((0, film) for film in _in_folder(place))
    else:
        yield 0, place


def _in_folder(folder: str) -> Iterator[str]:
    """Links to films are followed, links to folders are not: those may lead in circles."""
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                yield from _in_folder(entry.path)
            elif entry.is_file() and _looks_like_film(entry.path):
                yield entry.path


def _in_storage(folder: str) -> Iterator[str]:
    for url, is_folder in storage.entries(folder):
        if is_folder:
            yield from _in_storage(url)
        elif _looks_like_film(url):
            yield url


def _looks_like_film(place: str) -> bool:
    """By its suffix; where there is none, as in many archives of DICOM files, by its first bytes."""
    suffix = PurePosixPath(place).suffix.lower()
    if suffix in SUFFIXES:
        return True
    if suffix and not suffix[1:].isdecimal():  # a DICOM file is often called by its number, 1.2.840.10008
        return False
    try:
        start = storage.first_bytes(place, START) if storage.is_url(place) else _first_bytes(place)
        kind_of_start(start)
    except (FilmError, OSError):
        return False
    return True


def _first_bytes(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(START)


def _listed(place: str, suffix: str) -> Iterator[str]:
    """Lines of a text file, or the column ``path`` of a CSV file; beside the list, where they are no full paths."""
    with closing(_lines(place)) as lines:
        names = _column(place, lines) if suffix == ".csv" else (line.strip("\r\n") for line in lines)
        yield from (_beside(place, name) for name in names if name.strip())


def _column(place: str, lines: Iterable[str]) -> Iterator[str]:
    rows = csv.DictReader(lines)
    try:
        if "path" not in (rows.fieldnames or ()):
            raise UserError(f"{place} has no column 'path'{nearest('path', rows.fieldnames or ())}.")
        yield from (row["path"] or "" for row in rows)
    except csv.Error as error:
        raise UserError(f"{place} is no CSV file: {error}.") from error


def _lines(place: str) -> Generator[str, None, None]:
    if storage.is_url(place):
        yield from storage.lines(place)
        return
    with _told(place), Path(place).open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        yield from file


@contextmanager
def _told(place: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{place} cannot be read: {error.strerror}.") from error


def _beside(place: str, name: str) -> str:
    if storage.is_url(name) or Path(name).is_absolute():
        return name
    if storage.is_url(place):
        return f"{place.rsplit('/', 1)[0]}/{name}"
    return str(Path(place).parent / name)
