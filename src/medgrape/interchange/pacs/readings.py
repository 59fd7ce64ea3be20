"""Readings on disk: a folder for each film, whole or not there."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from medgrape.data.files import sync_folder
from medgrape.errors import UserError
from medgrape.interchange.pacs.header import header_of

LEDGER = "ledger.db"
READING, OBJECTS, REPORT = "reading.json", "dicom", "report.dcm"
"""A film's reading, the folder with its DICOM objects, and the one among these that is always there."""
_LOCK, _DRAFT = ".lock", ".draft"


class Readings:
    """A watcher's folder. Names are UIDs, which were checked when they arrived."""

    def __init__(self, out: Path) -> None:
        self.out = out

    @property
    def ledger(self) -> Path:
        """Where the watcher remembers films."""
        return self.out / LEDGER

    @property
    def arrival(self) -> Path:
        """Where a film is while it is being read."""
        return self.out / _DRAFT / "film.dcm"

    def place(self, uid: str) -> Path:
        """Of a film's reading; spread over 256 folders, so that a million still open quickly."""
        return self.out / "readings" / hashlib.sha256(uid.encode()).hexdigest()[:2] / uid

    def objects(self, uid: str) -> list[Path]:
        """The DICOM objects that were made of a film."""
        return sorted((self.place(uid) / OBJECTS).glob("*.dcm"))

    def own_uids(self, uid: str) -> list[str]:
        """What those objects are called."""
        found = (header_of(path) for path in self.objects(uid))
        return [one.uid for one in found if one is not None]

    def remove_objects(self, uid: str) -> None:
        """They name the patient; once the server has them, they need not lie here."""
        with suppress(FileNotFoundError):  # by a watcher that was killed right after
            shutil.rmtree(self.place(uid) / OBJECTS)

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """A private folder for one film and what becomes of it; nothing of it stays."""
        folder = self.out / _DRAFT
        shutil.rmtree(folder, ignore_errors=True)  # of a watcher that was killed
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def keep(self, made: Path, uid: str) -> None:
        """Put a reading in its place, all of its files at once; from then on it is there, whatever happens."""
        for path in (made, *made.rglob("*")):
            _sync(path)
        place = self.place(uid)
        place.parent.parent.mkdir(mode=0o700, exist_ok=True)  # also in a folder that others may enter
        place.parent.mkdir(exist_ok=True)
        made.rename(place)
        for folder in (place.parent, place.parent.parent, self.out):
            sync_folder(folder)


def _sync(path: Path) -> None:
    if path.is_dir():
        sync_folder(path)
        return
    with path.open("rb+") as written:
        os.fsync(written.fileno())


@contextmanager
def alone_in(out: Path) -> Iterator[Readings]:
    """The folder, which no other watcher may use at the same time, and which holds nothing else."""
    if out.exists() and not (out / LEDGER).is_file() and (not out.is_dir() or any(_foreign(out))):
        raise UserError(f"{out} is there already and holds something else; choose another --out.")
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with FileLock(out / _LOCK, timeout=0):
            shutil.rmtree(out / _DRAFT, ignore_errors=True)
            yield Readings(out)
    except Timeout:
        raise UserError(f"Another watcher is at work in {out}; choose another --out, or end it first.") from None


def _foreign(out: Path) -> Iterator[Path]:
    return (path for path in out.iterdir() if path.name not in (_LOCK, _DRAFT))
