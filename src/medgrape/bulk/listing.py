"""Finds the films to read: in folders, lists and prepared data sets, on this disk or in any storage that fsspec knows.

A film in storage is downloaded when it is read, and deleted afterwards.
"""

import csv
import os
import shutil
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from medgrape.config import FilmLimits
from medgrape.datasets.dataset import film_paths
from medgrape.errors import UserError, first_line, nearest
from medgrape.films.film import FilmError
from medgrape.films.reading import START, kind_of_start

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".dcm", ".dicom"})
LISTS = frozenset({".txt", ".csv"})


@dataclass(frozen=True)
class ListedFilm:
    """A film under the name that the user gave it."""

    name: str
    place: str  # its URL or absolute path, which processes in other folders can use

    @classmethod
    def of(cls, name: str) -> "ListedFilm":
        """Return the film of a path or URL."""
        return cls(name, name if is_url(name) else os.path.abspath(name))  # noqa: PTH100 (a link stays a link)


def refuse_missing(places: Iterable[str]) -> None:
    """Raise for a place on this disk that does not exist."""
    for place in places:
        if not is_url(place) and not Path(place).exists():
            raise UserError(f"{place} does not exist: give films, a folder, a list, a prepared data set or a URL.")


def films_of(places: Iterable[str]) -> Iterator[tuple[int, int, str]]:
    """Yield every film of every place, in no particular order: number of the place, rank there, path or URL.

    Films of a list have its line numbers as ranks; those of a folder all have rank 0 and are ordered by name.
    """
    for number, place in enumerate(places):
        for rank, film in _films(place):
            yield number, rank, film


def _films(place: str) -> Iterator[tuple[int, str]]:
    suffix = PurePosixPath(place).suffix.lower()
    if suffix in LISTS:
        yield from enumerate(_listed(place, suffix))
    elif is_url(place):
        is_film = suffix in SUFFIXES or not _is_folder(place)
        yield from ((0, film) for film in ([place] if is_film else _in_storage(place)))
    elif (Path(place) / "dataset.toml").is_file():
        yield from enumerate(map(str, film_paths(Path(place))))
    elif Path(place).is_dir():
        yield from ((0, film) for film in _in_folder(place))
    else:
        yield 0, place


def _in_folder(folder: str) -> Iterator[str]:
    """Follow links to films but not links to folders, which may form circles."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _in_folder(entry.path)
            elif entry.is_file() and _looks_like_film(entry.path):
                yield entry.path


def _in_storage(folder: str) -> Iterator[str]:
    storage, path = _storage(folder)
    with _storage_errors(folder):
        entries = storage.ls(path, detail=True)
    for entry in entries:
        if entry["name"].rstrip("/") == path.rstrip("/"):  # S3 keeps an empty object for the folder itself
            continue
        url = storage.unstrip_protocol(entry["name"])
        if entry["type"] == "directory":
            yield from _in_storage(url)
        elif _looks_like_film(url):
            yield url


def _looks_like_film(place: str) -> bool:
    """Decide by the suffix; without one, as in many archives of DICOM files, by the first bytes."""
    suffix = PurePosixPath(place).suffix.lower()
    if suffix in SUFFIXES:
        return True
    if suffix and not suffix[1:].isdecimal():  # the name of a DICOM file is often a number, 1.2.840.10008
        return False
    try:
        kind_of_start(_first_bytes(place))
    except (FilmError, OSError):
        return False
    return True


def _first_bytes(place: str) -> bytes:
    if not is_url(place):
        with Path(place).open("rb") as file:
            return file.read(START)
    storage, path = _storage(place)
    with _storage_errors(place), storage.open(path, "rb", block_size=4096) as file:
        return bytes(file.read(START))


def _listed(place: str, suffix: str) -> Iterator[str]:
    """Yield the lines of a text file, or the column ``path`` of a CSV file; a relative path starts at the list."""
    with closing(_lines(place)) as lines:
        names = _column(place, lines) if suffix == ".csv" else (line.strip("\r\n") for line in lines)
        for name in names:
            if not name.strip():
                continue
            if is_url(name) or Path(name).is_absolute():
                yield name
            elif is_url(place):
                yield f"{place.rsplit('/', 1)[0]}/{name}"
            else:
                yield str(Path(place).parent / name)


def _column(place: str, lines: Iterable[str]) -> Iterator[str]:
    rows = csv.DictReader(lines)
    try:
        if "path" not in (rows.fieldnames or ()):
            raise UserError(f"{place} has no column 'path'{nearest('path', rows.fieldnames or ())}.")
        yield from (row["path"] or "" for row in rows)
    except csv.Error as error:
        raise UserError(f"{place} is not a CSV file: {error}.") from error


def _lines(place: str) -> Generator[str, None, None]:
    if is_url(place):
        storage, path = _storage(place)
        with _storage_errors(place), storage.open(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield from file
        return
    try:
        with Path(place).open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            yield from file
    except OSError as error:
        raise UserError(f"{place} cannot be read: {error.strerror}.") from error


_ATTEMPTS = 3  # downloads of a film that may fail before the film is refused
_PREFIX = "medgrape-fetched-"


def is_url(place: str) -> bool:
    """Whether a place is in some storage instead of on this disk."""
    return "://" in place


def _storage(url: str) -> tuple[Any, str]:
    """Return the file system behind a URL, and the path of the URL in it."""
    try:
        from fsspec.core import url_to_fs
    except ModuleNotFoundError as missing:
        raise UserError("Films at a URL need: pip install 'medgrape[bulk]'.") from missing
    try:
        system, path = url_to_fs(url, use_listings_cache=False)  # every listing is requested once
    except (ImportError, ValueError) as error:
        raise UserError(f"{url} cannot be reached: {_described(error)}.") from error
    return system, path


def _is_folder(url: str) -> bool:
    storage, path = _storage(url)
    with _storage_errors(url):
        if storage.isdir(path):
            return True
        if not storage.exists(path):
            raise UserError(f"{url} does not exist.")
        return False


@contextmanager
def _storage_errors(url: str) -> Iterator[None]:
    """Turn whatever the storage raises into one sentence: each kind of storage has errors of its own."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{url} cannot be read: {_described(error)}.") from error


class DownloadFolder:
    """A private folder for films from storage, each of which stays only while it is read."""

    def __init__(self) -> None:
        remove_abandoned_downloads()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))

    def close(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def fetch(self, url: str, limits: FilmLimits) -> Path:
        """Download the film and return its path; the caller deletes it."""
        target, attempt = self._folder / uuid4().hex, 0
        while True:
            attempt += 1
            try:
                _download(url, target, limits)
                return target
            except Exception as error:
                target.unlink(missing_ok=True)
                if isinstance(error, FilmError):
                    raise
                permanent = isinstance(error, FileNotFoundError | PermissionError | UserError)
                if permanent or attempt == _ATTEMPTS:
                    raise FilmError(f"it cannot be fetched ({_described(error)}).") from error
                time.sleep(0.2 * 4**attempt)


def _download(url: str, target: Path, limits: FilmLimits) -> None:
    storage, path = _storage(url)
    with storage.open(path, "rb") as source, target.open("wb") as file:
        while chunk := source.read(2**20):
            file.write(chunk)
            if file.tell() > limits.max_bytes:
                raise FilmError(f"it has more than {limits.max_bytes:,} bytes, the limit (limits.max_bytes).")


def remove_abandoned_downloads() -> None:
    """Delete the download folders of processes that were killed."""
    if os.name == "nt":  # Windows has no signal that only asks whether a process runs
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).split("-")[0]
        try:
            os.kill(int(owner), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except (OSError, ValueError, OverflowError):  # it belongs to another user, or is no folder of ours
            continue


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(error).rstrip('.')}"
