"""Header values of a DICOM object that say what it is, without its patient."""

import warnings
from dataclasses import dataclass
from pathlib import Path

from pydicom import Dataset, dcmread

from medgrape.config import FilmLimits
from medgrape.films.dicom.reader import check_deflated
from medgrape.hospital.pacs.dicom_json import is_uid

_PREAMBLE = 128
_TAGS = [
    "SOPClassUID", "SOPInstanceUID", "StudyInstanceUID", "Modality", "BodyPartExamined", "AnatomicRegionSequence",
    "PatientOrientation",
]  # fmt: skip


@dataclass(frozen=True)
class Header:
    """UIDs of an object and what it shows; empty where the header does not say."""

    uid: str
    sop_class: str
    study: str
    modality: str
    body_part: str  # in capitals
    orientation: tuple[str, ...] = ()  # where on the patient its rows and its columns point (PatientOrientation)


def read_header(path: Path) -> Header | None:
    """Return the header of a DICOM file with a valid instance UID; None for any other file."""
    try:
        with path.open("rb") as file, warnings.catch_warnings(action="ignore"):  # warnings repeat header values
            if file.read(_PREAMBLE + 4)[_PREAMBLE:] != b"DICM":
                return None
            file.seek(0)
            check_deflated(file, FilmLimits())
            header = _parse_header(dcmread(file, stop_before_pixels=True, specific_tags=_TAGS))
    except OSError:
        raise
    except Exception:  # a broken header can raise almost anything
        return None
    return header if is_uid(header.uid) else None


def _parse_header(dataset: Dataset) -> Header:
    def text(source: Dataset, keyword: str) -> str:
        return str(source.get(keyword) or "").strip()

    regions = dataset.get("AnatomicRegionSequence") or [Dataset()]
    body_part = text(dataset, "BodyPartExamined") or text(regions[0], "CodeMeaning")
    orientation = dataset.get("PatientOrientation") or []
    return Header(
        text(dataset, "SOPInstanceUID"), text(dataset, "SOPClassUID"), text(dataset, "StudyInstanceUID"),
        text(dataset, "Modality"), body_part.upper(),
        tuple(str(edge).strip().upper() for edge in ([orientation] if isinstance(orientation, str) else orientation)),
    )  # fmt: skip
