"""A DICOM film written anew with its pixels and what is needed to show them, and nothing that names anybody.

An allow-list, not a list of what to remove: an element survives because it stands here, its words because they are
among those that DICOM defines, its numbers as numbers. So no free text survives, whatever it was filed under. Pixels
are written as plain numbers: comments that hide in a compressed frame, or behind the last pixel, stay behind as well.
"""

import hashlib
import io
import re
from typing import BinaryIO

import numpy as np
from pydicom import Dataset, FileDataset
from pydicom.dataset import FileMetaDataset
from pydicom.uid import ComputedRadiographyImageStorage, ExplicitVRLittleEndian, generate_uid
from pydicom.valuerep import VR, DSfloat

from medgrape.config import FilmLimits
from medgrape.films.dicom.grey_levels import whole_number
from medgrape.films.dicom.header import PROJECTIONS, transfer_syntax, view_of
from medgrape.films.dicom.reader import open_radiograph

OLDEST = 89
"""Age in years from which on all are written as one year more: few people are older, so an age may name one."""
_VIEWS = {"PA", "AP", "LL", "RL", "LLO", "RLO", "LLD", "RLD", "LAT", "LATERAL", "LPO", "RPO", "LAO", "RAO"}
_WORDS = {
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
_SEQUENCES = ("ModalityLUTSequence", "VOILUTSequence")
_EDGE, _AGE = re.compile(r"[APRLHF]{1,3}"), re.compile(r"\d{3}[DWMY]")


def cleaned_dicom(file: BinaryIO, limits: FilmLimits) -> bytes:
    """The file that is kept."""
    dataset, layout = open_radiograph(file, limits)
    kept = _allowed(_unpacked(dataset))
    _put_pixels(kept, dataset, layout.keyword, layout.native_bytes)
    return _written(kept, dataset, layout.keyword)


def _unpacked(dataset: FileDataset) -> FileDataset:
    """The same with a plain frame, as pydicom would decode it."""
    if transfer_syntax(dataset).is_encapsulated:
        dataset.decompress(as_rgb=True, generate_instance_uid=False)
    elif not transfer_syntax(dataset).is_little_endian:
        pixels = dataset.pixel_array
        dataset.PixelData = pixels.astype(pixels.dtype.newbyteorder("<")).tobytes()
    return dataset


def _allowed(dataset: Dataset) -> Dataset:
    kept = Dataset()
    for keyword, words in _WORDS.items():
        _copy_word(kept, dataset, keyword, words)
    for keyword in _NUMBERS:
        _copy_numbers(kept, dataset, keyword)
    for palette in _PALETTES if kept.get("PhotometricInterpretation") == "PALETTE COLOR" else ():
        _copy_numbers(kept, dataset, f"{palette}Descriptor")
        _copy_table(kept, dataset, f"{palette}Data", f"{palette}Descriptor")
    for keyword in _SEQUENCES:
        if dataset.get(keyword):
            setattr(kept, keyword, [_table_of(item) for item in dataset[keyword].value])
    _copy_patient(kept, dataset)
    return kept


def _copy_word(kept: Dataset, dataset: Dataset, keyword: str, known: set[str]) -> None:
    said = str(dataset.get(keyword) or "").strip().upper()
    if said in known:
        setattr(kept, keyword, said)


def _copy_numbers(kept: Dataset, dataset: Dataset, keyword: str) -> None:
    """Numbers are worked out and written again: the text that a decimal string was read from is not kept."""
    value = dataset.get(keyword)
    if value is None or value == "":
        return
    several = not isinstance(value, str) and hasattr(value, "__len__")
    numbers = [float(one) for one in (value if several else [value])]
    if not numbers or not np.isfinite(numbers).all():
        return
    decimal = dataset[keyword].VR == VR.DS
    written = [DSfloat(one, auto_format=True) if decimal else int(one) for one in numbers]
    kept.add_new(keyword, dataset[keyword].VR, written if several else written[0])


def _copy_table(kept: Dataset, dataset: Dataset, keyword: str, descriptor: str) -> None:
    """A look-up table's numbers, as many as its descriptor says."""
    element = dataset.get(keyword) and dataset[keyword]
    if not element or element.VR not in _TABLE_KINDS or descriptor not in kept:
        return
    entries = int(kept[descriptor].value[0]) or 65536
    cut = element.value[: 2 * entries] if isinstance(element.value, bytes) else list(element.value)[:entries]
    kept.add_new(keyword, element.VR, cut)


def _table_of(item: Dataset) -> Dataset:
    kept = Dataset()
    _copy_numbers(kept, item, "LUTDescriptor")
    _copy_table(kept, item, "LUTData", "LUTDescriptor")
    return kept


def _copy_patient(kept: Dataset, dataset: Dataset) -> None:
    """How the person lay, and the two things that subgroup figures need."""
    view = (view_of(dataset) or "").upper()
    if view in _VIEWS:
        kept.ViewPosition = view
    edges = [str(edge).upper() for edge in (dataset.get("PatientOrientation") or [])]
    if len(edges) == 2 and all(_EDGE.fullmatch(edge) for edge in edges):
        kept.PatientOrientation = edges
    age = str(dataset.get("PatientAge", "") or "")
    if _AGE.fullmatch(age):
        kept.PatientAge = f"{OLDEST + 1:03d}Y" if age.endswith("Y") and int(age[:3]) > OLDEST else age


def _put_pixels(kept: Dataset, dataset: Dataset, keyword: str, length: int) -> None:
    stored = bytes(dataset[keyword].value)
    if keyword == "PixelData":
        stored = _greys_alone(dataset, stored[: _native_length(dataset, length)])
        kept.add_new(keyword, VR.OB if dataset.BitsAllocated == 8 else VR.OW, stored + b"\0" * (len(stored) % 2))
    else:
        kept.add_new(keyword, dataset[keyword].VR, stored[:length])


def _greys_alone(dataset: Dataset, stored: bytes) -> bytes:
    """The bits that are greys: in the others old films hide overlays, and these may be writing."""
    allocated = int(dataset.BitsAllocated)
    bits = whole_number(dataset, "BitsStored", allocated)
    low = whole_number(dataset, "HighBit", bits - 1) - (bits - 1)
    if allocated not in (8, 16) or not 0 < bits < allocated or not 0 <= low <= allocated - bits:
        return stored
    numbers = np.frombuffer(stored[: len(stored) // (allocated // 8) * (allocated // 8)], f"<u{allocated // 8}")
    greys = numbers & numbers.dtype.type(((1 << bits) - 1) << low)
    if whole_number(dataset, "PixelRepresentation", 0) == 1 and low == 0:  # the sign goes on through the upper bits
        negative = (greys >> (bits - 1)) & 1
        greys = greys | (negative * numbers.dtype.type(((1 << allocated) - 1) ^ ((1 << bits) - 1)))
    return bytes(greys.astype(numbers.dtype).tobytes())


def _native_length(dataset: Dataset, declared: int) -> int:
    """A decompressed frame may have been turned from YBR_FULL_422 to RGB, which takes more room."""
    if dataset.PhotometricInterpretation == "YBR_FULL_422":
        return declared
    return (
        int(dataset.Rows)
        * int(dataset.Columns)
        * int(dataset.get("SamplesPerPixel", 1))
        * int(dataset.BitsAllocated)
        // 8
    )


def _written(kept: Dataset, dataset: Dataset, keyword: str) -> bytes:
    meta = FileMetaDataset()
    known = dataset.get("SOPClassUID")
    meta.MediaStorageSOPClassUID = (
        known if known is not None and known.name != known else ComputedRadiographyImageStorage
    )
    pixels = hashlib.sha256(bytes(kept[keyword].value)).hexdigest()
    meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=["medgrape clean film", pixels])
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    kept.SOPClassUID, kept.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    kept.PatientIdentityRemoved, kept.DeidentificationMethod = "YES", "medgrape allow-list"
    out = io.BytesIO()
    kept.file_meta = meta
    kept.save_as(out, enforce_file_format=True)
    return out.getvalue()
