"""One film from a PACS read without a person: only what is surely a frontal chest film, as far as its header tells."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydicom.uid import (
    ComputedRadiographyImageStorage,
    DigitalXRayImageStorageForPresentation,
    DigitalXRayImageStorageForProcessing,
)

from medgrape.data.decoder import Decoder
from medgrape.data.film import FRONTAL_VIEWS, FilmError
from medgrape.interchange.pacs.header import Header, header_of
from medgrape.interchange.pacs.query import CHEST_MODALITIES, ListedFilm
from medgrape.interchange.pacs.readings import OBJECTS, READING
from medgrape.model.manifest import unseal, version_of

if TYPE_CHECKING:  # torch is slow to import
    from medgrape.feedback.reader import Reader

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
            from medgrape.interchange.dicom_reading import write_objects

            write_objects(study, film, into / OBJECTS, None, study.run.config.limits)
        predicted, probability = next(iter(study.prediction.items()))
        return Sight(predicted, probability)

    def _loaded(self) -> "Reader":
        if self._reader is None:
            self._decoder.start()  # while torch is being imported
            from medgrape.feedback.reader import load

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
