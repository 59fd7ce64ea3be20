"""The film that a DICOM reading is about: its patient, its study, and how its pixels are stored.

The header is read again only when a reading is written; it is neither kept nor logged.
"""

import hashlib
import re
import warnings
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

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

UTF8 = "ISO_IR 192"
_UIDS = ("SOPClassUID", "SOPInstanceUID", "SeriesInstanceUID", "StudyInstanceUID")
_TYPE_2 = (
    "PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyDate", "StudyTime", "StudyID",
    "AccessionNumber", "ReferringPhysicianName",
)  # fmt: skip
"""Elements that DICOM requires in every object, empty if unknown (type 2)."""
_COPIED = (
    *_UIDS, *_TYPE_2, "IssuerOfPatientID", "PatientAge", "PatientSize", "PatientWeight", "PatientIdentityRemoved",
    "DeidentificationMethod", "DeidentificationMethodCodeSequence", "StudyDescription", "Modality", "Rows", "Columns",
    "PatientOrientation",
)  # fmt: skip
_PATTERNS = {
    "PatientSex": "[MFO]",
    "PatientAge": r"\d{3}[DWMY]",
    "PatientIdentityRemoved": "YES|NO",
    "PatientOrientation": r"[LRAPHF]{1,3}\\[LRAPHF]{1,3}",
    "StudyDate": r"\d{8}",  # pydicom also takes dates with dots, from before DICOM
    "PatientBirthDate": r"\d{8}",
}
"""Values that identify nobody and are left out unless they match."""
_MAX_DESCRIPTION = 64
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\\]")  # control characters, and the separator of values


@dataclass(frozen=True)
class SourceFilm:
    """What the objects about a film need."""

    header: Dataset  # UIDs, patient, study and size only
    greys: Dataset  # how stored numbers become greys, as in a presentation state
    turn: Turn  # from stored pixels to the upright film
    has_new_uids: bool  # whether the file lacks UIDs, so that those in ``header`` were generated

    @property
    def upright(self) -> FilmSize:
        """Size of the upright film."""
        return self.turn.size(FilmSize(int(self.header.Columns), int(self.header.Rows)))

    @property
    def in_colour(self) -> bool:
        """Whether the pixels are colours; these need another kind of presentation state."""
        return not str(self.header.PhotometricInterpretation).startswith("MONOCHROME")

    def as_stored(self, box: Box) -> Box:
        """Clip a box on the upright film to the film, and return it in stored pixels."""
        on_film = box.clipped(self.upright)
        if on_film is None:
            raise FilmError("a box of the study lies outside it, so it is another film.")
        return self.turn.back.box(on_film, self.upright)


def read_source(path: Path, limits: FilmLimits) -> SourceFilm:
    """Read a film's header; refuse pictures and objects that a report cannot refer to."""
    with (
        film_file(path, limits) as file,
        errors_as_damage(),
        warnings.catch_warnings(action="ignore"),  # warnings repeat header values
    ):
        if file_kind(file) == "picture":
            raise FilmError(
                "it is a picture without patient or study, and a DICOM reading needs both: give the film as DICOM."
            )
        return _parse_source(file, limits)


def _parse_source(file: BinaryIO, limits: FilmLimits) -> SourceFilm:
    check_deflated(file, limits)
    dataset = dcmread(file, force=True, stop_before_pixels=True)
    refuse_other_examinations(dataset)
    sop_class = UID(str(dataset.get("SOPClassUID") or ComputedRadiographyImageStorage))
    if "Image Storage" not in sop_class.name or sop_class.is_retired:
        raise FilmError(
            "its SOP class is none that DICOM has for images, so that no report can refer to it: export it as CR or "
            "DX, or read it without DICOM objects."
        )
    with config.disable_value_validation():  # a patient's number is copied even if it breaks DICOM's rules
        header = _copy_header(dataset)
    file.seek(0)
    seed = str(header.get("SOPInstanceUID") or hashlib.sha256(file.read()).hexdigest())
    missing = [keyword for keyword in _UIDS if not header.get(keyword)]
    for keyword in missing:  # the same UIDs each time
        uid = generate_uid(entropy_srcs=[f"medgrape {keyword}", seed])
        setattr(header, keyword, ComputedRadiographyImageStorage if keyword == "SOPClassUID" else uid)
    return SourceFilm(header, _copy_greys(dataset), turn_of(dataset), bool(missing))


def _copy_header(dataset: FileDataset) -> Dataset:
    """Copy names and numbers exactly, and other values if they keep DICOM's rules."""
    header = Dataset()
    header.SpecificCharacterSet = UTF8
    for keyword in _COPIED:
        value = dataset.get(keyword)
        if value is None or value == "":
            continue
        if dictionary_VR(keyword) == "SQ":
            setattr(header, keyword, [_decoded(item) for item in value])
            continue
        text = "\\".join(map(str, value)) if isinstance(value, MultiValue) else str(value)
        if not _is_valid(keyword, text):
            continue
        if keyword == "StudyDescription":
            value = _CONTROL.sub(" ", text)[:_MAX_DESCRIPTION]
        # As a string, pydicom would split a name at a backslash.
        setattr(header, keyword, PersonName(text) if dictionary_VR(keyword) == "PN" else value)
    for keyword in _TYPE_2:
        if keyword not in header:
            setattr(header, keyword, "")
    header.SamplesPerPixel = int(dataset.get("SamplesPerPixel") or 1)
    header.PhotometricInterpretation = str(dataset.get("PhotometricInterpretation") or "MONOCHROME2")
    return header


def _is_valid(keyword: str, text: str) -> bool:
    kind = dictionary_VR(keyword)
    try:
        if kind == "DA":
            DA(text)
        elif kind == "TM":
            TM(text)
    except (ValueError, TypeError, NotImplementedError):
        return False
    return re.fullmatch(_PATTERNS.get(keyword, "(?s).*"), text) is not None


def _decoded(item: Dataset) -> Dataset:
    """Return a copy as Unicode, which can be written in another character set."""
    copy = deepcopy(item)
    copy.decode()
    return copy


def _copy_greys(dataset: Dataset) -> Dataset:
    """Copy the rescale or modality table, then the first table or window: the greys that the model saw.

    A film without any of these is shown from its lowest possible value to its highest, as DICOM requires.
    """
    greys = Dataset()
    if dataset.get("ModalityLUTSequence"):
        table = deepcopy(dataset.ModalityLUTSequence[0])
        table.ModalityLUTType = table.get("ModalityLUTType") or "US"  # unspecified
        greys.ModalityLUTSequence = Sequence([table])
    else:
        slope, intercept = first_number(dataset, "RescaleSlope"), first_number(dataset, "RescaleIntercept")
        if slope is not None or intercept is not None:
            greys.RescaleSlope = _decimal(1.0 if slope is None else slope)
            greys.RescaleIntercept = _decimal(intercept or 0.0)
            greys.RescaleType = dataset.get("RescaleType") or "US"
    voi = Dataset()
    if dataset.get("VOILUTSequence"):
        voi.VOILUTSequence = Sequence([deepcopy(dataset.VOILUTSequence[0])])
    elif (window := window_of(dataset)) is not None and window.black < window.white:
        voi.WindowCenter = _decimal(first_number(dataset, "WindowCenter") or 0.0)
        voi.WindowWidth = _decimal(first_number(dataset, "WindowWidth") or 0.0)
        if window_function(dataset) in ("LINEAR", "LINEAR_EXACT", "SIGMOID"):
            voi.VOILUTFunction = window_function(dataset)
    if voi:
        greys.SoftcopyVOILUTSequence = Sequence([voi])
    return greys


def _decimal(value: float) -> DSfloat:
    """Return a number in at most 16 characters, as DICOM requires."""
    return DSfloat(value, auto_format=True)


def write_with_uids(path: Path, source: SourceFilm, out: Path) -> None:
    """Write a copy of the film with the UIDs that were generated for it, so that objects can refer to it."""
    dataset = dcmread(path, force=True)
    name_transfer_syntax(dataset)
    for keyword in (*_UIDS, *_TYPE_2):
        if not dataset.get(keyword):
            setattr(dataset, keyword, source.header[keyword].value)
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    dataset.save_as(out, enforce_file_format=True)
