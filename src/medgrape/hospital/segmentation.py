"""Where the model sees each finding, as one DICOM segmentation with a segment per finding."""

from copy import deepcopy

import numpy as np
from highdicom.frame import encode_frame
from highdicom.seg import (
    SegmentAlgorithmTypeValues,
    Segmentation,
    SegmentationFractionalTypeValues,
    SegmentationTypeValues,
    SegmentDescription,
)
from jaxtyping import Float32, UInt8
from pydicom import Dataset
from pydicom.encaps import encapsulate
from pydicom.sr.codedict import codes
from pydicom.uid import RLELossless

from medgrape.explain.explanation import Explanation
from medgrape.explain.film_evidence import ConceptEvidence
from medgrape.explain.words import NOTICE, strength
from medgrape.hospital.codes import Provenance, code_meaning, finding_code
from medgrape.hospital.source import SourceFilm

_SERIES_NUMBER = 9902
_MAX_VALUE = 255  # stored value of a strength of 1
_DESCRIPTION = (
    "Strength of the finding at each patch: 0 as on training films without it, 1 as with it, cut off beyond; "
    "not a calibrated probability."
)


def mapped_concepts(explanation: Explanation) -> tuple[ConceptEvidence, ...]:
    """Return the findings with a map; without a scale from training films a finding has none."""
    return tuple(evidence for evidence in explanation.concepts if evidence.is_informative)


def build_segmentation(explanation: Explanation, source: SourceFilm, provenance: Provenance) -> Dataset | None:
    """Return the maps in stored pixels, without interpolation between patches; None if no finding has a map.

    DICOM has two kinds of fractions, probability and occupancy. Strength is neither, but it says how likely a finding
    is, not how much of a pixel it covers. It is stored as probability, and each segment's description explains it.
    """
    concepts = mapped_concepts(explanation)
    if not concepts:
        return None
    to_stored = source.turn.back.pixels
    strengths = [_strengths(evidence) for evidence in concepts]
    patches = np.stack([to_stored(values) for values in strengths], axis=-1)
    patch_sized = deepcopy(source.header)
    patch_sized.Rows, patch_sized.Columns = patches.shape[:2]
    segmentation = Segmentation(
        [patch_sized],
        patches[np.newaxis],
        SegmentationTypeValues.FRACTIONAL,
        [_describe_segment(evidence, number, provenance) for number, evidence in enumerate(concepts, start=1)],
        fractional_type=SegmentationFractionalTypeValues.PROBABILITY,
        max_fractional_value=_MAX_VALUE,
        content_label="EVIDENCE_MAPS",
        content_description=NOTICE,
        omit_empty_frames=False,
        **provenance.object_attributes(_SERIES_NUMBER, "Maps by medgrape"),
    )
    segmentation.PatientOrientation = source.header.get("PatientOrientation", "")
    # Film-sized frames replace the patches here: highdicom would need nearly a gigabyte of floats for 14 maps.
    frames = [to_stored(explanation.grid.spread(_eight_bit(values))) for values in strengths]
    segmentation.Rows, segmentation.Columns = frames[0].shape
    segmentation.file_meta.TransferSyntaxUID = RLELossless
    segmentation.PixelData = encapsulate([encode_frame(frame, RLELossless, 8, 8, "MONOCHROME2") for frame in frames])
    segmentation["PixelData"].is_undefined_length = True
    return segmentation


def _strengths(evidence: ConceptEvidence) -> Float32[np.ndarray, "h w"]:
    scaled = np.vectorize(strength)(evidence.mean, evidence.absent_score, evidence.present_score)
    return np.asarray(np.clip(scaled, 0.0, 1.0), dtype=np.float32)


def _eight_bit(strengths: Float32[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w"]:
    return np.asarray(np.rint(strengths * _MAX_VALUE), dtype=np.uint8)


def _describe_segment(evidence: ConceptEvidence, number: int, provenance: Provenance) -> SegmentDescription:
    types = SegmentAlgorithmTypeValues
    segment = SegmentDescription(
        number,
        code_meaning(f"{evidence.concept.title}{' (rejected)' if evidence.rejected else ''}"),
        codes.SCT.MorphologicallyAbnormalStructure,
        finding_code(evidence.concept),
        types.SEMIAUTOMATIC if provenance.corrected else types.AUTOMATIC,
        provenance.segmenting_algorithm(),
    )
    segment.SegmentDescription = f"{_DESCRIPTION} {NOTICE}"
    return segment
