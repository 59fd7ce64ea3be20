"""DICOM files that we write: a received film without the person, and a drawn film with an invented one.

Anonymising goes by an allow-list: an element is kept only if it is named here, a coded string only if DICOM defines it,
a number only as a number. So no free text survives, wherever it was stored. Pixels are written uncompressed: comments
hidden in a compressed frame, or behind the last pixel, are dropped as well.
"""

import hashlib
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from jaxtyping import UInt8
from pydicom import Dataset
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import ComputedRadiographyImageStorage, ExplicitVRLittleEndian, generate_uid
from pydicom.valuerep import VR, DSfloat

from medgrape.config import FilmLimits
from medgrape.films.dicom.grey_levels import whole_number
from medgrape.films.dicom.reader import PROJECTIONS, open_radiograph, transfer_syntax, view_of

OLDEST = 89  # greatest age in years that is kept; higher ages may identify a person and become one year more
_VIEWS = {"PA", "AP", "LL", "RL", "LLO", "RLO", "LLD", "RLD", "LAT", "LATERAL", "LPO", "RPO", "LAO", "RAO"}
_CODED_STRINGS = {
    "Modality": PROJECTIONS,
    "PhotometricInterpretation": {
        "MONOCHROME1", "MONOCHROME2", "RGB", "PALETTE COLOR", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT",
    },
    "PresentationIntentType": {"FOR PRESENTATION", "FOR PROCESSING"},
    "PresentationLUTShape": {"IDENTITY", "INVERSE"},
    "VOILUTFunction": {"LINEAR", "LINEAR_EXACT", "SIGMOID"},
    "BurnedInAnnotation": {"YES", "NO"},
    "ImageHorizontalFlip": {"Y", "N"},
    "ImageLaterality": {"R", "L", "U", "B"},
    "Laterality": {"R", "L"},
    "PatientSex": {"M", "F", "O"},
}  # fmt: skip
_NUMBERS = (
    "Rows", "Columns", "SamplesPerPixel", "PlanarConfiguration", "BitsAllocated", "BitsStored", "HighBit",
    "PixelRepresentation", "PixelPaddingValue", "PixelPaddingRangeLimit", "PixelSpacing", "ImagerPixelSpacing",
    "WindowCenter", "WindowWidth", "RescaleSlope", "RescaleIntercept", "ImageRotation",
)  # fmt: skip
_PALETTES = tuple(f"{colour}PaletteColorLookupTable" for colour in ("Red", "Green", "Blue"))
_TABLE_KINDS = (VR.OW, VR.OB, VR.US, VR.SS, VR.US_SS_OW, VR.US_OW)
_TABLE_SEQUENCES = ("ModalityLUTSequence", "VOILUTSequence")
_EDGE, _AGE = re.compile(r"[APRLHF]{1,3}"), re.compile(r"\d{3}[DWMY]")
CHEST_WIDTH = 350.0  # millimetres across a drawn film
_DATE, _TIME = "20000101", "120000"
_BITS = 12


def anonymised_dicom(file: BinaryIO, limits: FilmLimits) -> bytes:
    """Return the bytes of the anonymised file."""
    dataset, layout = open_radiograph(file, limits)
    if transfer_syntax(dataset).is_encapsulated:
        dataset.decompress(as_rgb=True, generate_instance_uid=False)
    elif not transfer_syntax(dataset).is_little_endian:
        pixels = dataset.pixel_array
        dataset.PixelData = pixels.astype(pixels.dtype.newbyteorder("<")).tobytes()
    kept, length = _allowed(dataset), layout.native_bytes
    stored = bytes(dataset[layout.keyword].value)
    if layout.keyword == "PixelData":
        if dataset.PhotometricInterpretation != "YBR_FULL_422":  # decompressed to RGB, which takes more room
            samples = int(dataset.get("SamplesPerPixel", 1))
            length = int(dataset.Rows) * int(dataset.Columns) * samples * int(dataset.BitsAllocated) // 8
        stored = _greys_alone(dataset, stored[:length])
        kept.add_new("PixelData", VR.OB if dataset.BitsAllocated == 8 else VR.OW, stored + b"\0" * (len(stored) % 2))
    else:
        kept.add_new(layout.keyword, dataset[layout.keyword].VR, stored[:length])
    return _written(kept, dataset, layout.keyword)


def _allowed(dataset: Dataset) -> Dataset:
    """The elements that are kept, besides the pixels."""
    kept = Dataset()
    for keyword, known in _CODED_STRINGS.items():
        value = str(dataset.get(keyword) or "").strip().upper()
        if value in known:
            setattr(kept, keyword, value)
    for keyword in _NUMBERS:
        _copy_numbers(kept, dataset, keyword)
    for palette in _PALETTES if kept.get("PhotometricInterpretation") == "PALETTE COLOR" else ():
        _copy_numbers(kept, dataset, f"{palette}Descriptor")
        _copy_table(kept, dataset, f"{palette}Data", f"{palette}Descriptor")
    for keyword in _TABLE_SEQUENCES:
        if dataset.get(keyword):
            tables = [Dataset() for _ in dataset[keyword].value]
            for table, item in zip(tables, dataset[keyword].value, strict=True):
                _copy_numbers(table, item, "LUTDescriptor")
                _copy_table(table, item, "LUTData", "LUTDescriptor")
            setattr(kept, keyword, tables)
    _copy_patient(kept, dataset)
    return kept


def _copy_numbers(kept: Dataset, dataset: Dataset, keyword: str) -> None:
    """Copy numbers by value: the text that a decimal string was read from is not kept."""
    value = dataset.get(keyword)
    if value is None or value == "":
        return
    several = not isinstance(value, str) and hasattr(value, "__len__")
    numbers = [float(number) for number in (value if several else [value])]
    if not numbers or not np.isfinite(numbers).all():
        return
    decimal = dataset[keyword].VR == VR.DS
    written = [DSfloat(number, auto_format=True) if decimal else int(number) for number in numbers]
    kept.add_new(keyword, dataset[keyword].VR, written if several else written[0])


def _copy_table(kept: Dataset, dataset: Dataset, keyword: str, descriptor: str) -> None:
    """Copy as many entries of a lookup table as its descriptor declares."""
    element = dataset.get(keyword) and dataset[keyword]
    if not element or element.VR not in _TABLE_KINDS or descriptor not in kept:
        return
    entries = int(kept[descriptor].value[0]) or 65536
    cut = element.value[: 2 * entries] if isinstance(element.value, bytes) else list(element.value)[:entries]
    kept.add_new(keyword, element.VR, cut)


def _copy_patient(kept: Dataset, dataset: Dataset) -> None:
    """Copy the view, the patient's orientation and the age; the sex is among the coded strings."""
    view = (view_of(dataset) or "").upper()
    if view in _VIEWS:
        kept.ViewPosition = view
    edges = [str(edge).upper() for edge in (dataset.get("PatientOrientation") or [])]
    if len(edges) == 2 and all(_EDGE.fullmatch(edge) for edge in edges):
        kept.PatientOrientation = edges
    age = str(dataset.get("PatientAge", "") or "")
    if _AGE.fullmatch(age):
        kept.PatientAge = f"{OLDEST + 1:03d}Y" if age.endswith("Y") and int(age[:3]) > OLDEST else age


def _greys_alone(dataset: Dataset, stored: bytes) -> bytes:
    """The stored bytes with only the bits that are greys: old films hide overlays in the others, perhaps with text."""
    allocated = int(dataset.BitsAllocated)
    bits = whole_number(dataset, "BitsStored", allocated)
    low = whole_number(dataset, "HighBit", bits - 1) - (bits - 1)
    if allocated not in (8, 16) or not 0 < bits < allocated or not 0 <= low <= allocated - bits:
        return stored
    numbers = np.frombuffer(stored[: len(stored) // (allocated // 8) * (allocated // 8)], f"<u{allocated // 8}")
    greys = numbers & numbers.dtype.type(((1 << bits) - 1) << low)
    if whole_number(dataset, "PixelRepresentation", 0) == 1 and low == 0:  # the sign fills the upper bits
        negative = (greys >> (bits - 1)) & 1
        greys = greys | (negative * numbers.dtype.type(((1 << allocated) - 1) ^ ((1 << bits) - 1)))
    return bytes(greys.astype(numbers.dtype).tobytes())


def _written(kept: Dataset, dataset: Dataset, keyword: str) -> bytes:
    """The bytes of the new file, named by a hash of its pixels."""
    sop_class = dataset.get("SOPClassUID")
    is_known = sop_class is not None and sop_class.name != sop_class
    pixels = hashlib.sha256(bytes(kept[keyword].value)).hexdigest()
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = sop_class if is_known else ComputedRadiographyImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=["medgrape clean film", pixels])
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    kept.SOPClassUID, kept.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    kept.PatientIdentityRemoved, kept.DeidentificationMethod = "YES", "medgrape allow-list"
    kept.file_meta = meta
    out = io.BytesIO()
    kept.save_as(out, enforce_file_format=True)
    return out.getvalue()


@dataclass(frozen=True)
class Person:
    """An invented patient, as a header describes one."""

    id: str
    sex: str
    age: int


def write_dicom(path: Path, pixels: UInt8[np.ndarray, "height width"], person: Person, film: str, view: str) -> None:
    """Write a computed radiograph of 12 bits; the same arguments give the same bytes."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = ComputedRadiographyImageStorage
    entropy = [person.id, film, hashlib.sha256(pixels.tobytes()).hexdigest()]  # other pixels are another film
    meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=["medgrape film", *entropy])
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset = FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128)
    dataset.SOPClassUID = meta.MediaStorageSOPClassUID
    dataset.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
    dataset.StudyInstanceUID = generate_uid(entropy_srcs=["medgrape study", *entropy])
    dataset.SeriesInstanceUID = generate_uid(entropy_srcs=["medgrape series", *entropy])
    dataset.PatientName, dataset.PatientID = f"Phantom^{person.id}", person.id
    dataset.PatientBirthDate, dataset.PatientSex, dataset.PatientAge = "", person.sex, f"{person.age:03d}Y"
    dataset.StudyDate = dataset.SeriesDate = dataset.ContentDate = _DATE
    dataset.StudyTime = dataset.SeriesTime = dataset.ContentTime = _TIME
    dataset.StudyID, dataset.AccessionNumber, dataset.ReferringPhysicianName = "1", "", ""
    dataset.SeriesNumber, dataset.InstanceNumber = 1, 1
    dataset.Modality, dataset.Manufacturer = "CR", "medgrape (drawn, no patient)"
    dataset.BodyPartExamined, dataset.ViewPosition = "CHEST", view
    dataset.PatientOrientation = ["L", "F"]
    dataset.ImageType = ["DERIVED", "PRIMARY"]
    top = 2**_BITS - 1
    stored = (pixels.astype(np.uint32) * top + 127) // 255
    dataset.Rows, dataset.Columns = pixels.shape
    spacing = round(CHEST_WIDTH / pixels.shape[1], 4)
    dataset.ImagerPixelSpacing = [spacing, spacing]
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation = 16, _BITS, _BITS - 1, 0
    dataset.RescaleIntercept, dataset.RescaleSlope, dataset.RescaleType = 0, 1, "US"
    # A LINEAR window of this centre and width maps 0 to black and the top value to white, exactly.
    dataset.WindowCenter, dataset.WindowWidth = (top + 1) / 2, top + 1
    dataset.PixelData = stored.astype("<u2").tobytes()
    dataset.save_as(path, enforce_file_format=True)
