"""Films in any storage that fsspec knows, such as S3: found there, and kept here only while they are read."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from medgrape.config import FilmLimits
from medgrape.errors import UserError
from medgrape.films.film import FilmError

_CHUNK = 2**20
_ATTEMPTS = 3
"""How often a film is fetched before storage that does not answer counts as the film's own fault."""
_PREFIX = "medgrape-fetched-"


def is_url(place: str) -> bool:
    """Whether a place is in some storage instead of on this disk."""
    return "://" in place


def _storage(url: str) -> tuple[Any, str]:
    """The file system behind a URL, and what the URL is called there."""
    try:
        from fsspec.core import url_to_fs
    except ModuleNotFoundError as missing:
        raise UserError("Films at a URL need: pip install 'medgrape[bulk]'.") from missing
    try:
        system, path = url_to_fs(url, use_listings_cache=False)  # a listing is asked for once
    except (ImportError, ValueError) as error:
        raise UserError(f"{url} cannot be reached: {_in_short(error)}.") from error
    return system, path


def is_folder(url: str) -> bool:
    """Whether more is found below a URL; one that is not there is an error."""
    storage, path = _storage(url)
    with told_of_storage(url):
        if storage.isdir(path):
            return True
        if not storage.exists(path):
            raise UserError(f"{url} is not there.")
        return False


def entries(url: str) -> Iterator[tuple[str, bool]]:
    """What lies in a folder of some storage: URLs, and whether each is a folder itself."""
    storage, path = _storage(url)
    with told_of_storage(url):
        found = storage.ls(path, detail=True)
    for entry in found:
        if entry["name"].rstrip("/") != path.rstrip("/"):  # S3 keeps an empty object for the folder itself
            yield storage.unstrip_protocol(entry["name"]), entry["type"] == "directory"


def first_bytes(url: str, count: int) -> bytes:
    """How a file in some storage begins."""
    storage, path = _storage(url)
    with told_of_storage(url), storage.open(path, "rb", block_size=4096) as file:
        return bytes(file.read(count))


def lines(url: str) -> Iterator[str]:
    """A text file in some storage, line by line."""
    storage, path = _storage(url)
    with told_of_storage(url), storage.open(path, "rt", encoding="utf-8-sig", newline="") as file:
        yield from file


@contextmanager
def told_of_storage(url: str) -> Iterator[None]:
    """Every kind of storage has its own words for a wrong name, a missing right or a lost connection."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{url} cannot be read: {_in_short(error)}.") from error


class Fetched:
    """A private folder for films from elsewhere, each there only while somebody reads it."""

    def __init__(self) -> None:
        sweep()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))

    def close(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def fetch(self, url: str, limits: FilmLimits) -> Path:
        """A copy of the film, no larger than a film may be; whoever reads it removes it."""
        handle, name = tempfile.mkstemp(dir=self._folder)
        os.close(handle)
        try:
            _copy_patiently(url, Path(name), limits)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        return Path(name)


def _copy_patiently(url: str, copy: Path, limits: FilmLimits) -> None:
    for attempt in count(1):
        try:
            _copy(url, copy, limits)
        except FilmError:
            raise
        except Exception as error:
            hopeless = isinstance(error, FileNotFoundError | PermissionError | UserError)
            if hopeless or attempt == _ATTEMPTS:
                raise FilmError(f"it cannot be fetched ({_in_short(error)}).") from error
            time.sleep(0.2 * 4**attempt)
        else:
            return


def _copy(url: str, copy: Path, limits: FilmLimits) -> None:
    storage, path = _storage(url)
    with storage.open(path, "rb") as source, copy.open("wb") as target:
        taken = 0
        while chunk := source.read(_CHUNK):
            taken += len(chunk)
            if taken > limits.max_bytes:
                raise FilmError(f"it has more than {limits.max_bytes:,} bytes, the limit (limits.max_bytes).")
            target.write(chunk)


def sweep() -> None:
    """Remove what readers that were killed could not remove themselves."""
    if os.name == "nt":  # no signal there asks whether a process lives
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdecimal() and not _alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def _in_short(error: Exception) -> str:
    words = str(error).strip().splitlines()
    return f"{type(error).__name__}: {words[0].rstrip('.')}" if words else type(error).__name__
