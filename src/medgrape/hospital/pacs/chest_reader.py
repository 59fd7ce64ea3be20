"""One film from a PACS read without a person: only what is surely a frontal chest film, as far as its header tells."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout
from pydicom.uid import (
    ComputedRadiographyImageStorage,
    DigitalXRayImageStorageForPresentation,
    DigitalXRayImageStorageForProcessing,
)

from medgrape.errors import UserError
from medgrape.files import sync_folder
from medgrape.films.decoder import Decoder
from medgrape.films.film import FRONTAL_VIEWS, FilmError
from medgrape.hospital.pacs.header import Header, header_of
from medgrape.hospital.pacs.query import CHEST_MODALITIES, ListedFilm
from medgrape.runs.manifest import unseal, version_of

if TYPE_CHECKING:
    from medgrape.reader import Reader

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


_FILMS = {ComputedRadiographyImageStorage, DigitalXRayImageStorageForPresentation}
_CHEST = ("CHEST", "THORAX", "LUNG")


@dataclass(frozen=True)
class Sight:
    """The answer in short."""

    predicted: str
    probability: float


class ChestReader:
    """A model that reads films one after the other; it is loaded when the first one comes."""

    def __init__(self, model: Path, *, dicom: bool = False) -> None:
        if model.is_dir() or not model.exists():
            unseal(model)  # a run that is not whole is told before anything is asked for
        self.version = version_of(model)
        self._model, self._dicom = model, dicom
        self._decoder = Decoder()
        self._reader: Reader | None = None

    def close(self) -> None:
        """End what decodes."""
        self._decoder.close()

    def read(self, listed: ListedFilm, film: Path, into: Path) -> Sight:
        """Write the reading of a film into a folder, or say why the film is not read (``FilmError``)."""
        header = header_of(film)
        if header is None:
            raise FilmError("it is no DICOM file.")
        refuse_others(header)
        study = self._loaded().open(film, self._decoder)
        if study.film.facts.view not in (None, *FRONTAL_VIEWS):
            raise FilmError("it is no frontal view; models here read PA and AP.")
        told = {"instance": listed.uid, "series": listed.series, "study": listed.study, "model": self.version}
        told["read_at"] = datetime.now(UTC).isoformat(timespec="seconds")
        notes = list(untold(header, study.film.facts.view))
        into.mkdir()
        explained = json.dumps(told | {"notes": notes} | study.explain().to_json(), indent=1, allow_nan=False)
        (into / READING).write_text(explained + "\n", "utf-8")
        if self._dicom:
            from medgrape.hospital.objects import write_objects

            write_objects(study, film, into / OBJECTS, None, study.run.config.limits)
        predicted, probability = next(iter(study.prediction.items()))
        return Sight(predicted, probability)

    def _loaded(self) -> "Reader":
        if self._reader is None:
            self._decoder.start()  # while torch is being imported
            from medgrape.reader import load

            self._reader = load(self._model)
        return self._reader


def untold(header: Header, view: str | None) -> Iterator[str]:
    """What a person should check, because the header does not say it."""
    if not header.body_part:
        yield "The header does not say which part of the body this is."
    if view is None:
        yield "The header does not say which view this is."


def refuse_others(header: Header) -> None:
    """Neither reports, maps and raw exposures nor hands and knees; no word of the header is repeated."""
    if header.kind == DigitalXRayImageStorageForProcessing:
        raise FilmError("it is raw (for processing); the film made from it for presentation is read.")
    if header.kind not in _FILMS or header.modality not in CHEST_MODALITIES:
        raise FilmError("it is no CR or DX film.")
    if header.body_part and not (any(word in header.body_part for word in _CHEST) and "SPINE" not in header.body_part):
        raise FilmError("its header names another part of the body than the chest.")
    if any(edge.startswith(("A", "P")) for edge in header.edges):  # to the front or the back: seen from the side
        raise FilmError("its header says that it is seen from the side; models here read PA and AP.")
