"""Turning a stored radiograph upright: head up, the patient's left on the viewer's right."""

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from pydicom import Dataset, FileDataset, dcmread
from pydicom.encaps import generate_frames
from pydicom.multival import MultiValue
from pydicom.pixels.decoders.base import get_decoder
from pydicom.uid import UID, ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

from medgrape.config import FilmLimits
from medgrape.films.dicom.grey_levels import whole_number
from medgrape.films.film import FRONTAL_VIEWS, FilmError, FilmFacts, check_cost
from medgrape.geometry import FilmSize, Turn

_START_OF_IMAGE = b"\xff\xd8"
_JPEG_2000_START = b"\xff\x4f\xff\x51"
_WITHOUT_LENGTH = {0x01, *range(0xD0, 0xDA)}
_FRAME_HEADERS = (set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}) | {0xF7}  # 0xF7: JPEG-LS


def declared_size(frame: bytes) -> FilmSize | None:
    """What the frame will unpack to, or None where the header is none that we know (RLE has no size)."""
    if frame.startswith(_START_OF_IMAGE):
        return _jpeg_size(frame)
    start = frame.find(_JPEG_2000_START, 0, 4096)
    return None if start < 0 else _jpeg_2000_size(frame[start:])


def _jpeg_size(frame: bytes) -> FilmSize | None:
    position = 2
    while position + 9 <= len(frame):
        if frame[position] != 0xFF:
            return None
        marker = frame[position + 1]
        if marker in _FRAME_HEADERS:
            height, width = struct.unpack_from(">HH", frame, position + 5)
            return FilmSize(width, height)
        if marker == 0xFF:  # fill byte before a marker
            position += 1
        elif marker in _WITHOUT_LENGTH:
            position += 2
        else:
            position += 2 + struct.unpack_from(">H", frame, position + 2)[0]
    return None


def _jpeg_2000_size(codestream: bytes) -> FilmSize | None:
    if len(codestream) < 24:
        return None
    right, bottom, left, top = struct.unpack_from(">IIII", codestream, 8)
    return FilmSize(right - left, bottom - top)


PROJECTIONS = {"CR", "DX", "RG", "DR", "SC", "OT"}
"""Modalities that a chest film may carry; secondary captures say OT, or at times SC."""
_OTHERS = {
    "MR",
    "US",
    "NM",
    "PT",
    "PET",
    "MG",
    "XA",
    "RF",
    "SR",
    "PR",
    "SEG",
    "KO",
    "ECG",
    "IO",
    "PX",
    "OP",
    "ES",
    "REG",
}
"""Modalities that a refusal names; other words in their place may be anything, a name too."""
_PIXEL_KEYWORDS = ("PixelData", "FloatPixelData", "DoubleFloatPixelData")
_GREY = {"MONOCHROME1", "MONOCHROME2"}
_COLOUR = {"RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT", "PALETTE COLOR"}


@dataclass(frozen=True)
class PixelLayout:
    """How the stored pixels lie in the file."""

    stored: FilmSize
    samples: int
    allocated: int
    photometric: str
    keyword: str

    @property
    def unpacked_bytes(self) -> int:
        """What the frame needs in memory."""
        return self.stored.pixels * self.samples * self.allocated // 8

    @property
    def native_bytes(self) -> int:
        """What the frame needs in the file when it is not compressed; YBR_FULL_422 stores colour at half width."""
        return self.unpacked_bytes * 2 // 3 if self.photometric == "YBR_FULL_422" else self.unpacked_bytes


def refuse_other_examinations(dataset: Dataset) -> None:
    """Only a single projection radiograph is a film."""
    modality = _text(dataset, "Modality") or _modality_by_class(dataset)
    if modality and modality not in PROJECTIONS:
        kind = (
            "a CT slice"
            if modality == "CT"
            else f"of modality {modality}"
            if modality in _OTHERS
            else "of another kind"
        )
        raise FilmError(f"it is {kind}; only chest radiographs are read ({', '.join(sorted(PROJECTIONS))}).")
    frames = whole_number(dataset, "NumberOfFrames", 1)
    if frames > 1:
        raise FilmError(f"it has {frames} frames; a film has one.")


def _modality_by_class(dataset: Dataset) -> str | None:
    """What the object's class says where the modality is left out: ``CT Image Storage`` is CT."""
    kind = UID(str(dataset.get("SOPClassUID", ""))).name
    first_word = kind.split(" ")[0]
    return first_word if first_word in {"CT", "MR", "US", "PET"} else None


def read_layout(dataset: Dataset) -> PixelLayout:
    """How the pixels lie, or why they cannot be read."""
    present = [keyword for keyword in _PIXEL_KEYWORDS if dataset.get(keyword)]
    if not present:
        raise FilmError("it has no pixel data; it may be a report or a header alone.")
    photometric = str(dataset.get("PhotometricInterpretation", "MONOCHROME2"))
    if photometric not in _GREY | _COLOUR:
        raise FilmError("its photometric interpretation is none that a film has.")
    layout = PixelLayout(
        FilmSize(int(dataset.Columns), int(dataset.Rows)),
        whole_number(dataset, "SamplesPerPixel", 1),
        int(dataset.BitsAllocated),
        photometric,
        present[0],
    )
    if layout.allocated not in (8, 16, 32, 64):
        raise FilmError(f"it has {layout.allocated} bits per pixel; a film has 8 to 16.")
    return layout


def check_pixels(dataset: Dataset, layout: PixelLayout, limits: FilmLimits) -> None:
    """Refuse bombs and stubs: the sizes that header, frame and file declare must agree and stay within the limits."""
    packed = len(dataset[layout.keyword].value)
    syntax = transfer_syntax(dataset)
    if not syntax.is_encapsulated:
        check_cost(layout.stored, packed, packed, limits)
        if packed < layout.native_bytes:
            raise FilmError(f"it is truncated: {packed:,} of {layout.native_bytes:,} bytes of pixels are there.")
        return
    check_cost(layout.stored, layout.unpacked_bytes, packed, limits)
    if not _can_decode(syntax):
        raise FilmError(f"its transfer syntax {syntax.name} ({syntax}) is none that the installed plugins decode.")
    inside = declared_size(next(generate_frames(dataset.PixelData, number_of_frames=1)))
    if inside is not None and inside != layout.stored:
        raise FilmError(f"its header says {layout.stored} pixels, its compressed frame {inside}.")


def transfer_syntax(dataset: Dataset) -> UID:
    """How the file is encoded."""
    return UID(str(dataset.file_meta.TransferSyntaxUID))


def name_transfer_syntax(dataset: FileDataset) -> None:
    """The oldest files do not say how they are encoded; pydicom has found out while reading, and wants to be told."""
    if "TransferSyntaxUID" not in dataset.file_meta:
        implicit, little = dataset.original_encoding
        explicit = ExplicitVRLittleEndian if little else ExplicitVRBigEndian
        dataset.file_meta.TransferSyntaxUID = ImplicitVRLittleEndian if implicit else explicit


def _can_decode(syntax: UID) -> bool:
    try:
        return bool(get_decoder(syntax).is_available)
    except NotImplementedError:  # pydicom's word for a syntax it has no decoder for at all
        return False


def facts_from(dataset: Dataset, layout: PixelLayout) -> FilmFacts:
    """What the header tells about the film, and no word about the patient."""
    facts = FilmFacts(
        format="DICOM",
        size=layout.stored,
        bits=whole_number(dataset, "BitsStored", layout.allocated),
        photometric=layout.photometric,
        transfer_syntax=transfer_syntax(dataset).name,
        modality=_text(dataset, "Modality"),
        view=view_of(dataset),
        laterality=_text(dataset, "ImageLaterality") or _text(dataset, "Laterality"),
        spacing=_spacing(dataset),
    )
    return _with_warnings(dataset, facts)


def _with_warnings(dataset: Dataset, facts: FilmFacts) -> FilmFacts:
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
    """How the person stood to the beam, by word or by code."""
    said = _text(dataset, "ViewPosition")
    codes = dataset.get("ViewCodeSequence") or []
    if said is None and len(codes) > 0:
        meaning = str(codes[0].get("CodeMeaning", "")).lower()
        known = {"postero-anterior": "PA", "antero-posterior": "AP", "lateral": "LL"}
        said = next((view for words, view in known.items() if words in meaning), None)
    return said


def _spacing(dataset: Dataset) -> tuple[float, float] | None:
    stored = dataset.get("PixelSpacing") or dataset.get("ImagerPixelSpacing")
    if stored is None or len(stored) != 2:
        return None
    rows, columns = float(stored[0]), float(stored[1])
    return (rows, columns) if rows > 0 and columns > 0 else None


def read_person(file: Path | BinaryIO) -> tuple[str, int | None, str]:
    """Sex, age in years and view from a header: what subgroup figures need, and nothing that names anybody."""
    wanted = ["PatientSex", "PatientAge", "ViewPosition", "ViewCodeSequence"]
    dataset = dcmread(file, force=True, stop_before_pixels=True, specific_tags=wanted)
    age = str(dataset.get("PatientAge", "") or "")
    years = int(age[:3]) if age.endswith("Y") and age[:3].isdecimal() else None
    sex = str(dataset.get("PatientSex", "") or "")
    return (sex if sex in ("M", "F", "O") else ""), years, view_of(dataset) or ""


def _by_edges(rows_lead_to: str, columns_lead_to: str) -> Turn | None:
    """The turn after which rows lead to the patient's left and columns to the feet.

    None where the film is not frontal (rows that lead to front or back have no such turn).
    """
    turns = {
        ("L", "F"): Turn(0), ("R", "F"): Turn(0, True), ("R", "H"): Turn(2), ("L", "H"): Turn(2, True),
        ("F", "R"): Turn(1), ("F", "L"): Turn(1, True), ("H", "L"): Turn(3), ("H", "R"): Turn(3, True),
    }  # fmt: skip
    return turns.get((rows_lead_to[:1], columns_lead_to[:1]))


def _from_presentation(dataset: Dataset) -> Turn | None:
    """Image Rotation and Image Horizontal Flip: how the film asks to be shown."""
    if "ImageRotation" not in dataset and "ImageHorizontalFlip" not in dataset:
        return None
    degrees = int(dataset.get("ImageRotation", 0) or 0)
    if degrees % 90:
        return None  # a film on a slant is no film that was stored on its side
    return Turn(degrees // 90 % 4, str(dataset.get("ImageHorizontalFlip", "N")).upper() == "Y")


def _from_patient(dataset: Dataset) -> Turn | None:
    """Patient Orientation: where rows and columns of the stored pixels lead."""
    edges = [str(edge).upper() for edge in (dataset.get("PatientOrientation") or [])]
    return _by_edges(*edges) if len(edges) == 2 and all(edges) else None


ORIENTATION_KEYWORDS = ("ImageRotation", "ImageHorizontalFlip", "PatientOrientation")
# Field of View Rotation and Flip are not here: they tell what the detector already did to the stored pixels.
_SOURCES: tuple[tuple[str, Callable[[Dataset], Turn | None]], ...] = (
    ("its rotation and flip flags", _from_presentation),
    ("its patient orientation", _from_patient),
)


def turn_of(dataset: Dataset) -> Turn:
    """The turn that the first header entry with a say asks for."""
    return _asked(dataset)[0]


def turn_upright(dataset: Dataset, facts: FilmFacts, stored: np.ndarray) -> tuple[FilmFacts, np.ndarray]:
    """The film as it should stand."""
    turn, reason = _asked(dataset)
    return (_turned(facts, turn, reason), turn.pixels(stored)) if turn else (facts, stored)


def _asked(dataset: Dataset) -> tuple[Turn, str]:
    """The turn, and which header entry asks for it."""
    for reason, turn_from in _SOURCES:
        turn = turn_from(dataset)
        if turn is not None:
            return turn, reason
    return Turn(), ""


def _turned(stored: FilmFacts, turn: Turn, reason: str) -> FilmFacts:
    """The facts about the film once it is turned."""
    spacing = stored.spacing
    if turn.quarters % 2 and spacing is not None:
        spacing = spacing[1], spacing[0]
    turned = stored.noting(applied=f"{turn} (by {reason})")
    return replace(turned, size=turn.size(stored.size), spacing=spacing)
