"""A study as DICOM files: a structured report, the maps as a segmentation, the boxes as a presentation state."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from medgrape.config import FilmLimits
from medgrape.errors import UserError
from medgrape.files import whole_folder
from medgrape.films.decoder import Decoder, Request
from medgrape.films.film import FilmError
from medgrape.runs.manifest import refuse_inside_run
from medgrape.study import Study

if TYPE_CHECKING:
    from pydicom import Dataset

    from medgrape.hospital.source import SourceFilm

REPORT, MAPS, BOXES, FILM = "report.dcm", "maps.dcm", "boxes.dcm", "film.dcm"
_MAX_NAME = 63  # characters of an observer's name: DICOM allows 64, and a ^ may be added
_MAX_NAME_PARTS = 5


class DicomOutError(UserError):
    """A study cannot be written as DICOM."""


class UnwritableFilmError(DicomOutError, FilmError):
    """An unexpected error while objects for a film were made; also a FilmError, so that a watch refuses the film."""


def write_dicom_reading(study: Study, film: Path, out: Path, *, observer: str | None = None) -> tuple[Path, ...]:
    """Write report, maps and boxes of a study as DICOM files to ``out`` (new or empty), all of them or none.

    ``film`` is the DICOM file that the study was opened from. Patient and study are copied from its header, so its
    pixels are compared with the study's first. UIDs are new in each call. ``observer`` is the person who corrected the
    reading, as ``Family^Given``.
    """
    check_output_folder(out, observer)
    limits = study.run.config.limits
    check_source(film, limits)
    with Decoder() as decoder:
        pixels = decoder.read(Request(film, limits)).pixels
    if not np.array_equal(pixels, study.film.pixels):  # the reading would be filed under another patient
        raise DicomOutError(f"{film} is not the film that was read: its pixels differ. Give the file of this study.")
    return write_objects(study, film, out, observer, limits)


def check_output_folder(out: Path, observer: str | None = None) -> None:
    """Raise an error if the folder or the observer's name cannot be used; call it before a model is loaded."""
    _check_packages()
    if observer is not None:
        person_name(observer)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DicomOutError(f"{out} already exists and is not empty; choose another folder, or remove it first.")
    refuse_inside_run(out)


def check_source(film: Path, limits: FilmLimits) -> None:
    """Raise an error if the file has no header that objects can refer to; call it before the film is read."""
    _check_packages()
    from medgrape.hospital.source import read_source

    read_source(film, limits)


def write_objects(study: Study, film: Path, out: Path, observer: str | None, limits: FilmLimits) -> tuple[Path, ...]:
    """Do the same as ``write_dicom_reading`` without comparing pixels, for a film that is surely the study's."""
    _check_packages()
    from medgrape.hospital.source import read_source, write_with_uids

    source = read_source(film, limits)
    person = None if observer is None else person_name(observer)
    with _hide_header_values(film), whole_folder(out) as draft:
        objects = _build_objects(study, source, person)
        for name, dataset in objects.items():
            dataset.save_as(draft / name, enforce_file_format=True)
        if source.has_new_uids:
            write_with_uids(film, source, draft / FILM)
    return tuple(out / name for name in (*objects, *([FILM] if source.has_new_uids else [])))


@contextmanager
def _hide_header_values(film: Path) -> Iterator[None]:
    """Silence warnings and replace unexpected errors, because libraries repeat header values in both."""
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    except (UserError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:  # a full disk; pydicom's OSErrors have no errno
            raise
        raise UnwritableFilmError(
            f"{film}: its reading cannot be written as DICOM ({type(error).__name__}), because of a value in its "
            "header; read it without DICOM objects, or export it again."
        ) from error


def person_name(name: str) -> str:
    """Return the name as DICOM writes it; a name without ^ is a family name."""
    plain = " ".join(name.split())
    invalid = set(plain) & set("\\=") or not plain.isprintable() or plain.count("^") >= _MAX_NAME_PARTS
    if not plain or len(plain) > _MAX_NAME or invalid:
        raise DicomOutError(
            f"An observer's name has 1 to {_MAX_NAME} characters, none of them \\ or =, in up to {_MAX_NAME_PARTS} "
            "parts with a ^ between them, as in Curie^Marie."
        )
    return plain if "^" in plain else f"{plain}^"


def _build_objects(study: Study, source: "SourceFilm", observer: str | None) -> dict[str, "Dataset"]:
    """Return the objects by file name, without maps if no concept has one, and without boxes if nobody drew any."""
    from medgrape.hospital.codes import Provenance
    from medgrape.hospital.presentation import build_presentation_state
    from medgrape.hospital.report import build_report
    from medgrape.hospital.segmentation import build_segmentation

    explanation = study.explain()
    provenance = Provenance(study.model, observer, bool(study.corrections))
    maps = build_segmentation(explanation, source, provenance)
    objects = {
        REPORT: build_report(study, explanation, source, provenance, maps),
        MAPS: maps,
        BOXES: build_presentation_state(study, source, provenance),
    }
    return {name: dataset for name, dataset in objects.items() if dataset is not None}


def _check_packages() -> None:
    try:
        import highdicom  # noqa: F401
    except ModuleNotFoundError as missing:
        raise DicomOutError("DICOM readings need more packages: pip install 'medgrape[dicom]'.") from missing
