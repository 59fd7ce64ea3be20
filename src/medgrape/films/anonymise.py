"""A film as it may be kept: the same pixels, and nothing in the file that names a person."""

import os
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import cv2
import numpy as np
from jaxtyping import UInt8

from medgrape.config import FilmLimits
from medgrape.films.film import Film, FilmError, FilmFacts, eight_bit
from medgrape.films.pictures import stripped
from medgrape.films.reading import film_file, kind_of, read_whole, whatever_goes_wrong_is_damage

PREVIEW = 256
"""Longest side of a preview, in pixels."""
SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "DICOM": ".dcm"}
"""What the name of a file of each format ends in."""


@dataclass(frozen=True)
class Arrival:
    """What is known of a film that arrived, besides its pixels."""

    facts: FilmFacts
    sex: str
    """M, F, O, or empty where nobody says."""
    age: int | None
    """In years, 90 for all who are older."""

    @property
    def suffix(self) -> str:
        """What the name of its file ends in."""
        return SUFFIXES[self.facts.format]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> "Arrival":
        """The inverse of ``to_json``."""
        return cls(**told | {"facts": FilmFacts.from_json(told["facts"])})


@dataclass(frozen=True)
class CleanFilm:
    """A film to be kept."""

    arrival: Arrival
    content: bytes
    """The file."""
    preview: UInt8[np.ndarray, "high wide"]


def clean_film(path: Path, limits: FilmLimits) -> CleanFilm:
    """The film in ``path``, cleaned; one that would not show the same pixels afterwards is refused."""
    with film_file(path, limits) as file, _scratch() as kept, whatever_goes_wrong_is_damage():
        arrived = read_whole(file, limits)
        file.seek(0)
        kept.write(_cleaned(file, limits))
        kept.seek(0)
        clean = read_whole(kept, limits)
        if not np.array_equal(clean.pixels, arrived.pixels):
            raise FilmError("it would not look the same without what names the patient; export it as PNG.")
        arrival = _arrival(arrived, clean, kept)
        kept.seek(0)
        return CleanFilm(arrival, kept.read(), preview(clean))


def _scratch() -> BinaryIO:
    """A file in memory, so that a full disk is not taken for a damaged film; on disk where there is none such."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("film"), "w+b")
    return cast(BinaryIO, tempfile.TemporaryFile())  # closed by whoever asked for it


def preview(film: Film) -> UInt8[np.ndarray, "high wide"]:
    """The film small, in its own proportions."""
    greys = eight_bit(film.pixels)
    scale = PREVIEW / max(greys.shape)
    size = (max(round(greys.shape[1] * scale), 1), max(round(greys.shape[0] * scale), 1))
    return np.asarray(cv2.resize(greys, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR))


def _cleaned(file: BinaryIO, limits: FilmLimits) -> bytes:
    if kind_of(file) == "picture":
        return stripped(file.read())
    from medgrape.films.dicom.anonymise import cleaned_dicom  # pydicom is an extra, and slow to import

    return cleaned_dicom(file, limits)


def _arrival(arrived: Film, clean: Film, kept: BinaryIO) -> Arrival:
    """A picture's facts are ours; a header's words count only as far as they were allowed to stay."""
    if arrived.facts.format != "DICOM":
        return Arrival(arrived.facts, "", None)
    from medgrape.films.dicom.header import read_person

    kept.seek(0)
    sex, age, _ = read_person(kept)
    return Arrival(replace(clean.facts, transfer_syntax=arrived.facts.transfer_syntax), sex, age)
