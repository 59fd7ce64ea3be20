"""The output folder of a watch: one folder per reading, renamed into place when complete, and the ledger."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from medgrape.files import LOCK, locked_folder, sync_folder
from medgrape.hospital.pacs.header import read_header

READING, OBJECTS = "reading.json", "dicom"  # a film's reading, and the folder with its DICOM objects
REPORT = "report.dcm"  # the DICOM object that is always made
_LEDGER, _DRAFT = "ledger.db", ".draft"


class ReadingsFolder:
    """Paths in the folder. UIDs in them were checked when they arrived."""

    def __init__(self, out: Path) -> None:
        self.out, self.ledger = out, out / _LEDGER
        self.draft_film = out / _DRAFT / "film.dcm"  # the film while it is read

    def reading(self, uid: str) -> Path:
        """Return the folder of a film's reading, below one of 256 folders so that a million still open quickly."""
        return self.out / "readings" / hashlib.sha256(uid.encode()).hexdigest()[:2] / uid

    def objects(self, uid: str) -> list[Path]:
        """Return the DICOM objects that were made for a film."""
        return sorted((self.reading(uid) / OBJECTS).glob("*.dcm"))

    def object_uids(self, uid: str) -> list[str]:
        """Return the UIDs of these objects."""
        headers = map(read_header, self.objects(uid))
        return [header.uid for header in headers if header is not None]

    def remove_objects(self, uid: str) -> None:
        """Remove these objects, which name the patient, once the server has them."""
        with suppress(FileNotFoundError):  # removed before by a watch that was killed
            shutil.rmtree(self.reading(uid) / OBJECTS)

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """Yield a private temporary folder for one film and its reading."""
        folder = self.out / _DRAFT
        shutil.rmtree(folder, ignore_errors=True)  # left by a watch that was killed
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def keep(self, draft: Path, uid: str) -> None:
        """Move a complete reading to its place, durably and all files at once."""
        for path in (draft, *draft.rglob("*")):
            if path.is_dir():
                sync_folder(path)
            else:
                with path.open("rb+") as file:
                    os.fsync(file.fileno())
        target = self.reading(uid)
        target.parent.parent.mkdir(mode=0o700, exist_ok=True)  # private even if others may enter the output folder
        target.parent.mkdir(exist_ok=True)
        draft.rename(target)
        for folder in (target.parent, target.parent.parent, self.out):
            sync_folder(folder)


@contextmanager
def lock_folder(out: Path) -> Iterator[ReadingsFolder]:
    """Yield the folder, locked; refuse one that another watch uses or that holds other files."""

    def is_ours() -> bool:
        return (out / _LEDGER).is_file() or {path.name for path in out.iterdir()} <= {LOCK, _DRAFT}

    busy = f"Another watch uses {out}; choose another --out, or stop it first."
    with locked_folder(out, busy, is_ours=is_ours, mode=0o700):
        shutil.rmtree(out / _DRAFT, ignore_errors=True)
        yield ReadingsFolder(out)
