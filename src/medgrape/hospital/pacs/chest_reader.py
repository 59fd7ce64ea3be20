"""Read a film from a PACS unattended, if its header says that it is a frontal chest film or does not say otherwise."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydicom.uid import (
    ComputedRadiographyImageStorage,
    DigitalXRayImageStorageForPresentation,
    DigitalXRayImageStorageForProcessing,
)

from medgrape.films.decoder import Decoder
from medgrape.films.film import FRONTAL_VIEWS, FilmError
from medgrape.hospital.pacs.header import Header, read_header
from medgrape.hospital.pacs.query import CHEST_MODALITIES, ListedFilm
from medgrape.hospital.pacs.readings_folder import OBJECTS, READING
from medgrape.runs.manifest import unseal, version_of

if TYPE_CHECKING:
    from medgrape.reader import Reader

_FILM_CLASSES = (ComputedRadiographyImageStorage, DigitalXRayImageStorageForPresentation)
_CHEST = ("CHEST", "THORAX", "LUNG")


class ChestReader:
    """A model that reads films one after the other; it is loaded for the first film."""

    def __init__(self, model: Path, *, dicom: bool = False) -> None:
        if model.is_dir() or not model.exists():
            unseal(model)  # report an incomplete run before the server is asked for anything
        self.version = version_of(model)
        self._model, self._dicom = model, dicom
        self._decoder = Decoder()
        self._reader: Reader | None = None

    def close(self) -> None:
        """Stop the decoder process."""
        self._decoder.close()

    def read(self, listed: ListedFilm, film: Path, out: Path) -> tuple[str, float]:
        """Write a film's reading to a new folder; return the likeliest class and its probability.

        Raise a ``FilmError`` with the reason if the film cannot be read.
        """
        header = read_header(film)
        if header is None:
            raise FilmError("it is not a DICOM file.")
        check_is_frontal_chest(header)
        if self._reader is None:
            self._decoder.start()  # while torch is imported
            from medgrape.reader import load

            self._reader = load(self._model)
        study = self._reader.open(film, self._decoder)
        view = study.film.facts.view
        if view not in (None, *FRONTAL_VIEWS):
            raise FilmError("it is not a frontal view; the model reads PA and AP.")
        reading = {
            "instance": listed.uid, "series": listed.series, "study": listed.study, "model": self.version,
            "read_at": datetime.now(UTC).isoformat(timespec="seconds"), "notes": list(_missing_values(header, view)),
        }  # fmt: skip
        out.mkdir()
        content = json.dumps(reading | study.explain().to_json(), indent=1, allow_nan=False)
        (out / READING).write_text(content + "\n", "utf-8")
        if self._dicom:
            from medgrape.hospital.objects import write_objects

            write_objects(study, film, out / OBJECTS, None, study.run.config.limits)
        return next(iter(study.prediction.items()))


def _missing_values(header: Header, view: str | None) -> Iterator[str]:
    """Yield what a person should check because the header does not say it."""
    if not header.body_part:
        yield "The header does not say which part of the body this is."
    if view is None:
        yield "The header does not say which view this is."


def check_is_frontal_chest(header: Header) -> None:
    """Refuse other objects, other parts of the body and lateral films. Messages never repeat header values."""
    if header.sop_class == DigitalXRayImageStorageForProcessing:
        raise FilmError("it is raw (for processing); only the film made from it for presentation is read.")
    if header.sop_class not in _FILM_CLASSES or header.modality not in CHEST_MODALITIES:
        raise FilmError("it is not a CR or DX film.")
    part = header.body_part
    if part and ("SPINE" in part or not any(word in part for word in _CHEST)):
        raise FilmError("its header names another part of the body than the chest.")
    if any(edge.startswith(("A", "P")) for edge in header.orientation):  # an edge points to the front or the back
        raise FilmError("its header says that it is a lateral film; the model reads PA and AP.")
