"""The file of a film that is stored: the same pixels, and nothing that identifies a person."""

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, cast

import cv2
import numpy as np
from jaxtyping import UInt8

from medgrape.config import FilmLimits
from medgrape.films.film import Film, FilmError, FilmFacts, eight_bit
from medgrape.films.pictures import strip_metadata
from medgrape.films.reading import errors_as_damage, file_kind, film_file, read_open_film
from medgrape.records import Record

PREVIEW = 256
"""Longest side of a preview, in pixels."""
SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "DICOM": ".dcm"}
"""File name suffix of each format."""


class Arrival(Record):
    """What is known about a film that was received, besides its pixels."""

    facts: FilmFacts
    sex: str
    """M, F, O, or empty where it is not known."""
    age: int | None
    """Age in years; 90 for everybody older."""

    @property
    def suffix(self) -> str:
        """Suffix of the film's file name."""
        return SUFFIXES[self.facts.format]


@dataclass(frozen=True)
class CleanFilm:
    """An anonymised film."""

    arrival: Arrival
    content: bytes
    """The bytes of the file."""
    preview: UInt8[np.ndarray, "height width"]


def clean_film(path: Path, limits: FilmLimits) -> CleanFilm:
    """Return the film in ``path`` anonymised; refuse one that would not show the same pixels afterwards."""
    with film_file(path, limits) as file, _memory_file() as cleaned, errors_as_damage():
        original = read_open_film(file, limits)
        file.seek(0)
        cleaned.write(_anonymised(file, limits))
        cleaned.seek(0)
        clean = read_open_film(cleaned, limits)
        if not np.array_equal(clean.pixels, original.pixels):
            raise FilmError("it would not look the same without what names the patient; export it as PNG.")
        arrival = _arrival(original, clean, cleaned)
        cleaned.seek(0)
        return CleanFilm(arrival, cleaned.read(), preview(clean))


def preview(film: Film) -> UInt8[np.ndarray, "height width"]:
    """Return the film resized so that its longest side has ``PREVIEW`` pixels."""
    greys = eight_bit(film.pixels)
    scale = PREVIEW / max(greys.shape)
    size = (max(round(greys.shape[1] * scale), 1), max(round(greys.shape[0] * scale), 1))
    return np.asarray(cv2.resize(greys, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR))


def _memory_file() -> BinaryIO:
    """A file in memory where there is such a thing, so that a full disk does not look like a damaged film."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("film"), "w+b")
    return cast(BinaryIO, tempfile.TemporaryFile())  # closed by the caller


def _anonymised(file: BinaryIO, limits: FilmLimits) -> bytes:
    if file_kind(file) == "picture":
        return strip_metadata(file.read())
    from medgrape.films.dicom.anonymise import anonymised_dicom  # pydicom is an extra, and slow to import

    return anonymised_dicom(file, limits)


def _arrival(original: Film, clean: Film, cleaned: BinaryIO) -> Arrival:
    """A picture's facts are our own words; of a DICOM header only what the anonymised file still says is kept."""
    if original.facts.format != "DICOM":
        return Arrival(facts=original.facts, sex="", age=None)
    from medgrape.films.dicom.header import read_person  # pydicom is an extra, and slow to import

    cleaned.seek(0)
    sex, age, _ = read_person(cleaned)
    facts = replace(clean.facts, transfer_syntax=original.facts.transfer_syntax)
    return Arrival(facts=facts, sex=sex, age=age)
