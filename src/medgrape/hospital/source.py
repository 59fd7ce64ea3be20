"""The film that a DICOM reading is about: whose it is, which study it belongs to, and how its pixels were stored.

Its header is read again when a reading is written, and only then: no study keeps it, and nothing of it is logged.
"""

import hashlib
import re
import warnings
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pydicom import Dataset, FileDataset, Sequence, config, dcmread
from pydicom.datadict import dictionary_VR
from pydicom.multival import MultiValue
from pydicom.uid import UID, ComputedRadiographyImageStorage, generate_uid
from pydicom.valuerep import DA, TM, DSfloat, PersonName

from medgrape.config import FilmLimits
from medgrape.films.dicom.grey_levels import first_number, window_function, window_of
from medgrape.films.dicom.reader import check_deflated, name_transfer_syntax, refuse_other_examinations, turn_of
from medgrape.films.film import FilmError
from medgrape.films.reading import errors_as_damage, file_kind, film_file
from medgrape.geometry import Box, FilmSize, Turn

_UNSPECIFIED = "US"
_FUNCTIONS = ("LINEAR", "LINEAR_EXACT", "SIGMOID")


def shown_greys(film: Dataset) -> Dataset:
    """The film's own rescale or table, then its own table or window: what the model saw it through.

    A film without any is shown from its lowest possible value to its highest, as DICOM has it.
    """
    greys = Dataset()
    _put_modality(greys, film)
    voi = _voi(film)
    if voi is not None:
        greys.SoftcopyVOILUTSequence = Sequence([voi])
    return greys


def _put_modality(greys: Dataset, film: Dataset) -> None:
    if film.get("ModalityLUTSequence"):
        table = deepcopy(film.ModalityLUTSequence[0])
        table.ModalityLUTType = table.get("ModalityLUTType") or _UNSPECIFIED
        greys.ModalityLUTSequence = Sequence([table])
        return
    slope, intercept = first_number(film, "RescaleSlope"), first_number(film, "RescaleIntercept")
    if slope is not None or intercept is not None:
        greys.RescaleSlope = _decimal(1.0 if slope is None else slope)
        greys.RescaleIntercept = _decimal(intercept or 0.0)
        greys.RescaleType = film.get("RescaleType") or _UNSPECIFIED


def _voi(film: Dataset) -> Dataset | None:
    """Of several tables or windows the first, which is also the one that was read with."""
    voi = Dataset()
    if film.get("VOILUTSequence"):
        voi.VOILUTSequence = Sequence([deepcopy(film.VOILUTSequence[0])])
        return voi
    window = window_of(film)
    if window is None or not window.black < window.white:
        return None
    centre, width = first_number(film, "WindowCenter"), first_number(film, "WindowWidth")
    voi.WindowCenter, voi.WindowWidth = _decimal(centre or 0.0), _decimal(width or 0.0)
    if window_function(film) in _FUNCTIONS:
        voi.VOILUTFunction = window_function(film)
    return voi


def _decimal(value: float) -> DSfloat:
    """A number in the 16 characters that DICOM has for it."""
    return DSfloat(value, auto_format=True)


UTF8 = "ISO_IR 192"
_WHOSE = (
    "PatientName", "PatientID", "IssuerOfPatientID", "PatientBirthDate", "PatientSex", "PatientAge", "PatientSize",
    "PatientWeight", "PatientIdentityRemoved", "DeidentificationMethod", "DeidentificationMethodCodeSequence",
    "StudyInstanceUID", "StudyDate", "StudyTime", "StudyID", "StudyDescription", "AccessionNumber",
    "ReferringPhysicianName",
)  # fmt: skip
_ALWAYS_THERE = (
    "PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyDate", "StudyTime", "StudyID",
    "AccessionNumber", "ReferringPhysicianName",
)  # fmt: skip
"""What DICOM wants in every object, if need be empty (type 2)."""
_FILM = (
    "SOPClassUID", "SOPInstanceUID", "SeriesInstanceUID", "Modality", "Rows", "Columns", "PatientOrientation",
)  # fmt: skip
NAMES = ("SOPClassUID", "SOPInstanceUID", "SeriesInstanceUID", "StudyInstanceUID")
"""What a film is referred to by."""
_FITTING = {
    "PatientSex": "[MFO]",
    "PatientAge": r"\d{3}[DWMY]",
    "PatientIdentityRemoved": "YES|NO",
    "PatientOrientation": r"[LRAPHF]{1,3}\\[LRAPHF]{1,3}",
}
"""What DICOM wants of values by which nobody is found; any other is left out."""
_LONGEST_DESCRIPTION = 64
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\\]")
"""Control characters, and the one that parts values."""


@dataclass(frozen=True)
class SourceFilm:
    """What objects about a film must know of it."""

    header: Dataset
    """Patient, study and size; nothing else. Always with UIDs that it can be referred to by."""
    greys: Dataset
    """What makes greys of stored numbers, as a presentation state says it."""
    turn: Turn
    """What made the upright film of the stored pixels."""
    unnamed: bool
    """Whether the file has no study, series or instance of its own, so that those in ``header`` were made up."""

    @property
    def stored(self) -> FilmSize:
        """Size of the pixel matrix in the file."""
        return FilmSize(int(self.header.Columns), int(self.header.Rows))

    @property
    def upright(self) -> FilmSize:
        """Size of the film as people see it."""
        return self.turn.size(self.stored)

    @property
    def in_colour(self) -> bool:
        """Whether its pixels are colours, for which presentation states of another kind are made."""
        return not str(self.header.PhotometricInterpretation).startswith("MONOCHROME")

    def as_stored(self, box: Box) -> Box:
        """A box on the upright film in stored pixels, as much of it as lies on the film."""
        on_film = box.clipped(self.upright)
        if on_film is None:
            raise FilmError("a box of the study lies beside it, so it is another film.")
        return self.turn.back.box(on_film, self.upright)


def read_source(path: Path, limits: FilmLimits) -> SourceFilm:
    """What is needed of a film's header; a picture is refused, for it is nobody's."""
    with (
        film_file(path, limits) as file,
        errors_as_damage(),
        warnings.catch_warnings(action="ignore"),  # they repeat what the header says
    ):
        if file_kind(file) == "picture":
            raise FilmError(
                "it is a picture without patient or study, and a DICOM reading needs both: give the film as DICOM."
            )
        return _source(file, limits)


def _source(file: BinaryIO, limits: FilmLimits) -> SourceFilm:
    check_deflated(file, limits)
    dataset = dcmread(file, force=True, stop_before_pixels=True)
    refuse_other_examinations(dataset)
    _refuse_other_kinds(dataset)
    with config.disable_value_validation():  # an odd number of a patient is still the patient's
        header = _header(dataset)
    file.seek(0)
    unnamed = _name(header, seed=str(header.get("SOPInstanceUID") or hashlib.sha256(file.read()).hexdigest()))
    return SourceFilm(header, shown_greys(dataset), turn_of(dataset), unnamed)


def _refuse_other_kinds(dataset: Dataset) -> None:
    """Whatever refers to a film names its kind, which others have to know, too."""
    kind = UID(str(dataset.get("SOPClassUID") or ComputedRadiographyImageStorage))
    if "Image Storage" not in kind.name or kind.is_retired:
        raise FilmError(
            "its SOP class is none that DICOM has for images, so that no report can refer to it: export it as CR or "
            "DX, or read it without DICOM objects."
        )


def _header(dataset: FileDataset) -> Dataset:
    header = Dataset()
    header.SpecificCharacterSet = UTF8
    for keyword in (*_WHOSE, *_FILM):
        _copy(header, dataset, keyword)
    for keyword in _ALWAYS_THERE:
        if keyword not in header:
            setattr(header, keyword, "")
    header.SamplesPerPixel = int(dataset.get("SamplesPerPixel") or 1)
    header.PhotometricInterpretation = str(dataset.get("PhotometricInterpretation") or "MONOCHROME2")
    return header


def _copy(header: Dataset, dataset: Dataset, keyword: str) -> None:
    """Names and numbers word for word; of dates, times and what else DICOM has rules for only what keeps them."""
    value = dataset.get(keyword)
    if value is None or value == "":
        return
    kind = dictionary_VR(keyword)
    if kind == "SQ":
        setattr(header, keyword, [_decoded(item) for item in value])
    elif _fits(keyword, kind, _text(value)):
        setattr(header, keyword, _as_written(keyword, kind, value))


def _decoded(item: Dataset) -> Dataset:
    """An item by itself, in letters of whichever character set it will be written in."""
    copy = deepcopy(item)
    copy.decode()
    return copy


def _text(value: object) -> str:
    """As it stands in the file: several values with what parts them there."""
    return "\\".join(str(one) for one in value) if isinstance(value, MultiValue) else str(value)


def _fits(keyword: str, kind: str, text: str) -> bool:
    if kind in ("DA", "TM"):
        return _is_time(kind, text)
    return re.fullmatch(_FITTING.get(keyword, "(?s).*"), text) is not None


def _as_written(keyword: str, kind: str, value: Any) -> Any:  # noqa: ANN401 (pydicom's)
    if kind == "PN":
        return PersonName(_text(value))  # as a string it would come apart at a backslash
    if keyword == "StudyDescription":
        return _UNWRITABLE.sub(" ", _text(value))[:_LONGEST_DESCRIPTION]
    return value


def _is_time(kind: str, value: str) -> bool:
    if kind == "DA" and not re.fullmatch(r"\d{8}", value):  # dots between were allowed before DICOM
        return False
    try:
        (DA if kind == "DA" else TM)(value)
    except (ValueError, TypeError, NotImplementedError):
        return False
    return True


def _name(header: Dataset, seed: str) -> bool:
    """Make up what a film lacks to be referred to, the same each time; whether anything was lacking."""
    missing = [keyword for keyword in NAMES if not header.get(keyword)]
    for keyword in missing:
        made = generate_uid(entropy_srcs=[f"medgrape {keyword}", seed])
        setattr(header, keyword, ComputedRadiographyImageStorage if keyword == "SOPClassUID" else made)
    return bool(missing)


def write_named(path: Path, source: SourceFilm, out: Path) -> None:
    """The film once more, with the names that ``source`` made up for it, so that objects about it find it."""
    dataset = dcmread(path, force=True)
    name_transfer_syntax(dataset)
    for keyword in (*NAMES, *_ALWAYS_THERE):
        if not dataset.get(keyword):
            setattr(dataset, keyword, source.header[keyword].value)
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    dataset.save_as(out, enforce_file_format=True)
