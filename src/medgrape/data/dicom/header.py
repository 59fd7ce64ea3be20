"""What is read from a DICOM header, and what is refused because of it, before a pixel is unpacked."""

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydicom import Dataset, FileDataset, dcmread
from pydicom.encaps import generate_frames
from pydicom.multival import MultiValue
from pydicom.pixels.decoders.base import get_decoder
from pydicom.uid import UID, ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

from medgrape.config import FilmLimits
from medgrape.data.dicom.codestream import declared_size
from medgrape.data.dicom.values import whole_number
from medgrape.data.film import FRONTAL_VIEWS, FilmError, FilmFacts, check_cost
from medgrape.geometry import FilmSize

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
