"""What an object is, from its header; nothing of its patient."""

import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydicom import Dataset, dcmread

from medgrape.config import FilmLimits
from medgrape.films.dicom.reader import check_deflated
from medgrape.hospital.pacs.messages import is_uid

_PREAMBLE = 128
_WANTED = [
    "SOPClassUID",
    "SOPInstanceUID",
    "StudyInstanceUID",
    "Modality",
    "BodyPartExamined",
    "AnatomicRegionSequence",
    "PatientOrientation",
]


@dataclass(frozen=True)
class Header:
    """An object among others."""

    uid: str
    kind: str
    """Its SOP class."""
    study: str
    modality: str
    body_part: str
    """In capitals; empty where it does not say."""
    edges: tuple[str, ...] = ()
    """Towards where on the patient its rows and its columns run (PatientOrientation)."""


def header_of(path: Path) -> Header | None:
    """The header of a DICOM file; None for any other file."""
    try:
        with path.open("rb") as file, warnings.catch_warnings(action="ignore"):  # they repeat what it says
            return _header(_opened(file))
    except OSError:
        raise
    except Exception:  # broken headers raise almost anything
        return None


def _opened(file: BinaryIO) -> Dataset | None:
    start = file.read(_PREAMBLE + 4)
    file.seek(0, io.SEEK_SET)
    if start[_PREAMBLE:] != b"DICM":
        return None
    check_deflated(file, FilmLimits())
    return dcmread(file, stop_before_pixels=True, specific_tags=list(_WANTED))


def _header(dataset: Dataset | None) -> Header | None:
    if dataset is None or not is_uid(str(dataset.get("SOPInstanceUID", ""))):
        return None
    return Header(
        str(dataset.SOPInstanceUID), str(dataset.get("SOPClassUID", "")), str(dataset.get("StudyInstanceUID", "")),
        str(dataset.get("Modality", "")).strip(), _body_part(dataset), _edges(dataset),
    )  # fmt: skip


def _body_part(dataset: Dataset) -> str:
    said = str(dataset.get("BodyPartExamined", "") or "").strip()
    regions = dataset.get("AnatomicRegionSequence") or []
    if not said and len(regions) > 0:
        said = str(regions[0].get("CodeMeaning", "") or "").strip()
    return said.upper()


def _edges(dataset: Dataset) -> tuple[str, ...]:
    said = dataset.get("PatientOrientation") or []
    return tuple(str(edge).strip().upper() for edge in ([said] if isinstance(said, str) else said))
