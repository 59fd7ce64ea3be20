"""Reading a DICOM file as a film: whether it is a radiograph, how its pixels are stored, and how it stands upright.

Upright means head up, with the patient's left on the viewer's right.
"""

import io
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from pydicom import Dataset, FileDataset, dcmread
from pydicom.encaps import generate_frames
from pydicom.filereader import read_dataset
from pydicom.multival import MultiValue
from pydicom.pixels.decoders.base import get_decoder
from pydicom.uid import (
    UID,
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
)

from medgrape.config import FilmLimits
from medgrape.films.dicom.grey_levels import colour_values, grey_levels, grey_values, whole_number
from medgrape.films.film import (
    FRONTAL_VIEWS,
    Film,
    FilmError,
    FilmFacts,
    UprightSize,
    check_limits,
    file_size,
    grey_from_colour,
    halved,
    refuse_constant,
)
from medgrape.films.jpeg import JPEG_START, jpeg_size
from medgrape.geometry import FilmSize, Turn

PROJECTIONS = {"CR", "DX", "RG", "DR", "SC", "OT"}  # chest radiographs; secondary captures say OT, sometimes SC
# Modalities that an error message names; any other string may be free text, even a patient's name
_OTHER_MODALITIES = {
    "MR", "US", "NM", "PT", "PET", "MG", "XA", "RF", "SR", "PR", "SEG", "KO", "ECG", "IO", "PX", "OP", "ES", "REG",
}  # fmt: skip
_PIXEL_KEYWORDS = ("PixelData", "FloatPixelData", "DoubleFloatPixelData")
_GREY = {"MONOCHROME1", "MONOCHROME2"}
_COLOUR = {"RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT", "PALETTE COLOR"}
_JPEG_2000_START = b"\xff\x4f\xff\x51"
# The turn that makes a film upright, by where its stored rows and columns lead; none where they lead front or back
_TURN_BY_EDGES = {
    ("L", "F"): Turn(0), ("R", "F"): Turn(0, True), ("R", "H"): Turn(2), ("L", "H"): Turn(2, True),
    ("F", "R"): Turn(1), ("F", "L"): Turn(1, True), ("H", "L"): Turn(3), ("H", "R"): Turn(3, True),
}  # fmt: skip
_PREAMBLE = 128
_MAX_META = 65536
ORIENTATION_KEYWORDS = ("ImageRotation", "ImageHorizontalFlip", "PatientOrientation")
# Field of View Rotation and Flip are not here: they tell what the detector already did to the stored pixels.


@dataclass(frozen=True)
class PixelLayout:
    """How the pixels are stored in the file."""

    stored: FilmSize
    samples: int
    allocated: int
    photometric: str
    keyword: str

    @property
    def unpacked_bytes(self) -> int:
        """Bytes of the frame in memory."""
        return self.stored.pixels * self.samples * self.allocated // 8

    @property
    def native_bytes(self) -> int:
        """Bytes of the frame in an uncompressed file; YBR_FULL_422 stores colour at half width."""
        return self.unpacked_bytes * 2 // 3 if self.photometric == "YBR_FULL_422" else self.unpacked_bytes


def refuse_other_examinations(dataset: Dataset) -> None:
    """Refuse anything but a single projection radiograph."""
    modality = _text(dataset, "Modality")
    if modality is None:  # the name of the object's class begins with it: "CT Image Storage"
        first_word = UID(str(dataset.get("SOPClassUID", ""))).name.split(" ")[0]
        modality = first_word if first_word in {"CT", "MR", "US", "PET"} else None
    if modality and modality not in PROJECTIONS:
        named = f"of modality {modality}" if modality in _OTHER_MODALITIES else "of another kind"
        kind = "a CT slice" if modality == "CT" else named
        raise FilmError(f"it is {kind}; only chest radiographs are read ({', '.join(sorted(PROJECTIONS))}).")
    frames = whole_number(dataset, "NumberOfFrames", 1)
    if frames > 1:
        raise FilmError(f"it has {frames} frames; a film has one.")


def read_layout(dataset: Dataset) -> PixelLayout:
    """Return how the pixels are stored, or raise a ``FilmError``."""
    present = [keyword for keyword in _PIXEL_KEYWORDS if dataset.get(keyword)]
    if not present:
        raise FilmError("it has no pixel data; it may be a report or a header alone.")
    photometric = str(dataset.get("PhotometricInterpretation", "MONOCHROME2"))
    if photometric not in _GREY | _COLOUR:
        raise FilmError("its photometric interpretation is none that a film has.")
    size = FilmSize(int(dataset.Columns), int(dataset.Rows))
    samples, allocated = whole_number(dataset, "SamplesPerPixel", 1), int(dataset.BitsAllocated)
    if allocated not in (8, 16, 32, 64):
        raise FilmError(f"it has {allocated} bits per pixel; a film has 8 to 16.")
    return PixelLayout(size, samples, allocated, photometric, present[0])


def check_pixels(dataset: Dataset, layout: PixelLayout, limits: FilmLimits) -> None:
    """Refuse bombs and stubs: the sizes that header, frame and file declare must agree and stay within the limits."""
    packed = len(dataset[layout.keyword].value)
    syntax = transfer_syntax(dataset)
    if not syntax.is_encapsulated:
        check_limits(layout.stored, packed, packed, limits)
        if packed < layout.native_bytes:
            raise FilmError(f"it is truncated: {packed:,} of {layout.native_bytes:,} bytes of pixels are there.")
        return
    check_limits(layout.stored, layout.unpacked_bytes, packed, limits)
    try:
        available = get_decoder(syntax).is_available
    except NotImplementedError:  # pydicom has no decoder for this syntax at all
        available = False
    if not available:
        raise FilmError(f"its transfer syntax {syntax.name} ({syntax}) is none that the installed plugins decode.")
    inside = declared_size(next(generate_frames(dataset.PixelData, number_of_frames=1)))
    if inside is not None and inside != layout.stored:
        raise FilmError(f"its header says {layout.stored} pixels, its compressed frame {inside}.")


def declared_size(frame: bytes) -> FilmSize | None:
    """Return the size that a compressed frame declares; None where its header is not known (RLE has no size)."""
    if frame.startswith(JPEG_START):
        return jpeg_size(frame)
    start = frame.find(_JPEG_2000_START, 0, 4096)
    if start < 0 or len(frame) < start + 24:
        return None
    right, bottom, left, top = struct.unpack_from(">IIII", frame, start + 8)
    return FilmSize(right - left, bottom - top)


def transfer_syntax(dataset: Dataset) -> UID:
    """Return how the file is encoded."""
    return UID(str(dataset.file_meta.TransferSyntaxUID))


def name_transfer_syntax(dataset: FileDataset) -> None:
    """Add the transfer syntax to the oldest files, which lack it; pydicom has detected it while reading."""
    if "TransferSyntaxUID" not in dataset.file_meta:
        implicit, little = dataset.original_encoding
        explicit = ExplicitVRLittleEndian if little else ExplicitVRBigEndian
        dataset.file_meta.TransferSyntaxUID = ImplicitVRLittleEndian if implicit else explicit


def facts_from(dataset: Dataset, layout: PixelLayout) -> FilmFacts:
    """Return what the header tells about the film, and nothing about the patient."""
    spacing = [float(length) for length in dataset.get("PixelSpacing") or dataset.get("ImagerPixelSpacing") or ()]
    facts = FilmFacts(
        format="DICOM",
        size=layout.stored,
        bits=whole_number(dataset, "BitsStored", layout.allocated),
        photometric=layout.photometric,
        transfer_syntax=transfer_syntax(dataset).name,
        modality=_text(dataset, "Modality"),
        view=view_of(dataset),
        laterality=_text(dataset, "ImageLaterality") or _text(dataset, "Laterality"),
        spacing=(spacing[0], spacing[1]) if len(spacing) == 2 and min(spacing) > 0 else None,
    )
    if facts.modality is None:
        facts = facts.noting(warning="the header does not say what kind of examination this is")
    if facts.view is not None and facts.view not in FRONTAL_VIEWS:
        facts = facts.noting(warning=f"view position {facts.view}: models here read frontal films")
    if _text(dataset, "PresentationIntentType") == "FOR PROCESSING":
        facts = facts.noting(warning="the film is raw (for processing), not as a radiologist would see it")
    if str(dataset.get("BurnedInAnnotation", "NO")).upper() == "YES":
        facts = facts.noting(warning="the pixels carry burned-in text, which may name the patient")
    return facts


def _text(dataset: Dataset, keyword: str) -> str | None:
    value = dataset.get(keyword) or ""
    first = value[0] if isinstance(value, MultiValue) and value else value
    return str(first).strip() or None


def view_of(dataset: Dataset) -> str | None:
    """Return the view position, by word or by code."""
    view = _text(dataset, "ViewPosition")
    codes = dataset.get("ViewCodeSequence") or []
    if view is None and len(codes) > 0:
        meaning = str(codes[0].get("CodeMeaning", "")).lower()
        known = {"postero-anterior": "PA", "antero-posterior": "AP", "lateral": "LL"}
        view = next((code for words, code in known.items() if words in meaning), None)
    return view


def read_person(file: Path | BinaryIO) -> tuple[str, int | None, str]:
    """Return sex, age in years and view from a header: what subgroup metrics need, and nothing that identifies."""
    tags = ["PatientSex", "PatientAge", "ViewPosition", "ViewCodeSequence"]
    dataset = dcmread(file, force=True, stop_before_pixels=True, specific_tags=tags)
    age = str(dataset.get("PatientAge", "") or "")
    years = int(age[:3]) if age.endswith("Y") and age[:3].isdecimal() else None
    sex = str(dataset.get("PatientSex", "") or "")
    return (sex if sex in ("M", "F", "O") else ""), years, view_of(dataset) or ""


def turn_of(dataset: Dataset) -> Turn:
    """Return the turn that makes the film upright."""
    return _turn_and_reason(dataset)[0]


def turn_upright(dataset: Dataset, facts: FilmFacts, stored: np.ndarray) -> tuple[FilmFacts, np.ndarray]:
    """Return the film upright, and its facts."""
    turn, reason = _turn_and_reason(dataset)
    if not turn:
        return facts, stored
    spacing = facts.spacing
    if turn.quarters % 2 and spacing is not None:
        spacing = spacing[1], spacing[0]
    turned = facts.noting(applied=f"{turn} (by {reason})")
    turned = turned.model_copy(update={"size": turn.size(facts.size), "spacing": spacing})
    return turned, turn.pixels(stored)


def _turn_and_reason(dataset: Dataset) -> tuple[Turn, str]:
    """The turn, and the header elements that ask for it: how to display the film, else how the patient stood."""
    if "ImageRotation" in dataset or "ImageHorizontalFlip" in dataset:
        degrees = int(dataset.get("ImageRotation", 0) or 0)
        if degrees % 90 == 0:  # a slanted film was not stored on its side
            flipped = str(dataset.get("ImageHorizontalFlip", "N")).upper() == "Y"
            return Turn(degrees // 90 % 4, flipped), "its rotation and flip flags"
    edges = [str(edge).upper()[:1] for edge in (dataset.get("PatientOrientation") or [])]
    turn = _TURN_BY_EDGES.get((edges[0], edges[1])) if len(edges) == 2 else None
    return (Turn(), "") if turn is None else (turn, "its patient orientation")


def read_dicom(file: BinaryIO, limits: FilmLimits, side: int | None = None) -> Film:
    """Return the film in a DICOM file, its stored pixels first ``halved`` down to ``side``."""
    dataset, layout = open_radiograph(file, limits)
    facts = facts_from(dataset, layout)
    if layout.samples == 3 or layout.photometric == "PALETTE COLOR":
        film = grey_from_colour(facts, halved(colour_values(dataset), side))
        facts, grey = film.facts, film.pixels
        refuse_constant(grey)
    else:
        facts, grey = grey_levels(dataset, facts, halved(grey_values(dataset), side))
    return Film(*turn_upright(dataset, facts, grey))


def open_radiograph(file: BinaryIO, limits: FilmLimits) -> tuple[FileDataset, PixelLayout]:
    """Open a single radiograph that is whole and within the limits; refuse anything else."""
    check_deflated(file, limits)
    dataset = dcmread(file, force=True)
    name_transfer_syntax(dataset)
    refuse_other_examinations(dataset)
    layout = read_layout(dataset)
    check_pixels(dataset, layout, limits)
    return dataset, layout


def dicom_upright_size(file: BinaryIO, limits: FilmLimits) -> UprightSize:
    """Return the size of a radiograph once it is upright, without reading its pixels."""
    check_deflated(file, limits)
    tags = ["Rows", "Columns", *ORIENTATION_KEYWORDS]
    dataset = dcmread(file, force=True, stop_before_pixels=True, specific_tags=tags)
    turn = turn_of(dataset)
    return UprightSize(turn.size(FilmSize(int(dataset.Columns), int(dataset.Rows))), bool(turn))


def check_deflated(file: BinaryIO, limits: FilmLimits) -> None:
    """Refuse a deflated file that inflates to more than the limits: pydicom inflates it whole while opening it."""
    size = file_size(file)
    start = file.read(_PREAMBLE + 4 + _MAX_META)
    file.seek(0)
    if DeflatedExplicitVRLittleEndian.encode() not in start:  # nearly every film
        return
    after_mark = io.BytesIO(start[_PREAMBLE + 4 :])
    meta = read_dataset(after_mark, False, True, stop_when=lambda tag, _vr, _length: tag.group != 2)
    if meta.get("TransferSyntaxUID") != DeflatedExplicitVRLittleEndian:
        return
    file.seek(_PREAMBLE + 4 + after_mark.tell())
    inflater, unpacked, packed = zlib.decompressobj(-zlib.MAX_WBITS), 0, file.read()
    file.seek(0)
    while packed and not inflater.eof:
        unpacked += len(inflater.decompress(packed, 2**20))
        packed = inflater.unconsumed_tail
        if unpacked > limits.max_bytes or unpacked > limits.max_ratio * size:
            raise FilmError("it unpacks to far more than its size; it looks like a bomb.")
