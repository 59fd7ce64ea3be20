"""A study as DICOM files: a structured report, the maps as a segmentation, the boxes as a presentation state."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from medgrape.config import FilmLimits
from medgrape.errors import UserError
from medgrape.explain.explanation import Explanation
from medgrape.files import whole_folder
from medgrape.films.decoder import Decoder, Request
from medgrape.films.film import FilmError
from medgrape.runs.manifest import refuse_inside_run
from medgrape.study import Study

if TYPE_CHECKING:
    from pydicom import Dataset

    from medgrape.hospital.source import SourceFilm

REPORT, MAPS, BOXES, FILM = "report.dcm", "maps.dcm", "boxes.dcm", "film.dcm"
LONGEST_NAME = 63
"""Of an observer, for DICOM has 64 characters for a name and may need one more."""
_MOST_PARTS = 5


class DicomOutError(UserError):
    """A study that cannot be written as DICOM."""


class UnwritableFilmError(DicomOutError, FilmError):
    """A film of which no objects can be made, for a reason that nobody foresaw."""


def write_dicom_reading(study: Study, film: Path, out: Path, *, observer: str | None = None) -> tuple[Path, ...]:
    """Report, maps and boxes of a study as DICOM files in the folder ``out`` (new or empty), whole or not there.

    ``film`` is the DICOM file that the study was opened from; patient and study are those of its header, so its pixels
    are compared with the study's first. UIDs are fresh each time: two readings of a film are two. ``observer`` is the
    person who corrected the reading, as ``Family^Given``.
    """
    check_place(out, observer)
    check_source(film, study.run.config.limits)
    _refuse_other_film(study, film)
    return write_objects(study, film, out, observer, study.run.config.limits)


def check_place(out: Path, observer: str | None = None) -> None:
    """Refuse what could not be written in the end: before a model is loaded, it costs nobody any time."""
    _check_parts()
    if observer is not None:
        person_name(observer)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DicomOutError(f"{out} is there already and not empty; choose another folder, or remove it first.")
    refuse_inside_run(out)


def check_source(film: Path, limits: FilmLimits) -> None:
    """The same for a file that no reading could be about, by the limits of the run that is to read it."""
    _check_parts()
    from medgrape.hospital.source import read_source

    read_source(film, limits)


def write_objects(study: Study, film: Path, out: Path, observer: str | None, limits: FilmLimits) -> tuple[Path, ...]:
    """The same for whoever knows that the study is of this very file."""
    _check_parts()
    from medgrape.hospital.source import read_source, write_named

    source, explanation = read_source(film, limits), study.explain()
    person = None if observer is None else person_name(observer)
    with _silent_about_patients(film), whole_folder(out) as draft:
        objects = _objects(study, explanation, source, person)
        for name, dataset in objects.items():
            dataset.save_as(draft / name, enforce_file_format=True)
        if source.unnamed:
            write_named(film, source, draft / FILM)
    return tuple(out / name for name in (*objects, *([FILM] if source.unnamed else [])))


@contextmanager
def _silent_about_patients(film: Path) -> Iterator[None]:
    """Libraries repeat the header's words in warnings and errors; of those, what kind they are has to do."""
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    except (UserError, MemoryError):
        raise
    except Exception as fault:
        if isinstance(fault, OSError) and fault.errno is not None:  # a full disk; pydicom's own have no number
            raise
        raise UnwritableFilmError(
            f"{film}: its reading cannot be written as DICOM ({type(fault).__name__}), for something in its header is "
            "in the way: read it without DICOM objects, or export it anew."
        ) from fault


def person_name(name: str) -> str:
    """A name as DICOM writes it; one in a single piece is a family name."""
    plain = " ".join(name.split())
    unwritable = set(plain) & set("\\=") or not plain.isprintable() or plain.count("^") >= _MOST_PARTS
    if not plain or len(plain) > LONGEST_NAME or unwritable:
        raise DicomOutError(
            f"An observer's name has 1 to {LONGEST_NAME} characters, none of them \\ or =, in up to {_MOST_PARTS} "
            "parts with a ^ between them, as in Curie^Marie."
        )
    return plain if "^" in plain else f"{plain}^"


def _refuse_other_film(study: Study, film: Path) -> None:
    """A reading filed under somebody else's name would be worse than none."""
    with Decoder() as decoder:
        pixels = decoder.read(Request(film, study.run.config.limits)).pixels
    if not np.array_equal(pixels, study.film.pixels):
        raise DicomOutError(f"{film} is not the film that was read: its pixels differ. Give the file of this study.")


def _objects(
    study: Study, explanation: Explanation, source: "SourceFilm", observer: str | None
) -> dict[str, "Dataset"]:
    """What there is to write: no maps where no score tells anything, no boxes where nobody drew any."""
    from medgrape.hospital.codes import Makers
    from medgrape.hospital.presentation import presentation
    from medgrape.hospital.report import report
    from medgrape.hospital.segmentation import mapped, segmentation

    makers, found = Makers(study.model, observer, bool(study.corrections)), mapped(explanation)
    maps = segmentation(found, explanation.grid, source, makers) if found else None
    names = tuple(one.concept.name for one in found)
    told = {
        REPORT: report(study, explanation, source, makers, maps, names),
        MAPS: maps,
        BOXES: presentation(study, source, makers),
    }
    return {name: dataset for name, dataset in told.items() if dataset is not None}


def _check_parts() -> None:
    try:
        import highdicom  # noqa: F401
    except ModuleNotFoundError as missing:
        raise DicomOutError("DICOM readings need more packages: pip install 'medgrape[dicom]'.") from missing
