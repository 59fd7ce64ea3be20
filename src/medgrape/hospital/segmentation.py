"""Where the model sees each finding, as one segmentation object with a segment for each finding."""

from collections.abc import Sequence
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

from medgrape.explain.explanation import ConceptEvidence, Explanation
from medgrape.explain.words import NOTICE, strength
from medgrape.geometry import PatchGrid
from medgrape.hospital.codes import Makers, finding, meaning
from medgrape.hospital.source import SourceFilm

SERIES = 9902
TOP = 255
"""What a strength of 1 is written as."""
_MEANS = (
    "Strength of the finding at each patch: 0 as on training films without it, 1 as with it, cut off beyond; "
    "not a calibrated probability."
)


def mapped(explanation: Explanation) -> tuple[ConceptEvidence, ...]:
    """The findings that have a map; where the score parts no films, there is no scale to draw one on."""
    return tuple(found for found in explanation.concepts if found.is_informative)


def segmentation(found: Sequence[ConceptEvidence], grid: PatchGrid, source: SourceFilm, makers: Makers) -> Dataset:
    """The maps in the film's stored pixels, each pixel with the value of its patch: nothing is made finer than it is.

    DICOM knows fractions of two kinds, probability and occupancy, and strength is neither; it says how likely, not how
    much of a pixel, so it is filed under the first and the description says what it is.
    """
    patches = [source.turn.back.pixels(_strengths(one)) for one in found]
    coarse = deepcopy(source.header)
    coarse.Rows, coarse.Columns = patches[0].shape
    maps = Segmentation(
        [coarse],
        np.stack(patches, axis=-1)[np.newaxis],
        SegmentationTypeValues.FRACTIONAL,
        [_segment(one, number, makers) for number, one in enumerate(found, start=1)],
        fractional_type=SegmentationFractionalTypeValues.PROBABILITY,
        max_fractional_value=TOP,
        content_label="EVIDENCE_MAPS",
        content_description=NOTICE,
        omit_empty_frames=False,
        **makers.object_of(SERIES, "Maps by medgrape"),
    )
    maps.PatientOrientation = source.header.get("PatientOrientation", "")
    _enlarge(maps, [source.turn.back.pixels(grid.spread(_eight_bit(one))) for one in found])
    return maps


def _enlarge(maps: Dataset, frames: Sequence[UInt8[np.ndarray, "rows columns"]]) -> None:
    """Put the film-sized frames in place of the patches, packed.

    highdicom would take a whole stack of films in floating point, most of a gigabyte for 14 maps of a large film.
    """
    maps.Rows, maps.Columns = frames[0].shape
    packed = [encode_frame(frame, RLELossless, 8, 8, "MONOCHROME2") for frame in frames]
    maps.file_meta.TransferSyntaxUID = RLELossless
    maps.PixelData = encapsulate(packed)
    maps["PixelData"].is_undefined_length = True


def _strengths(found: ConceptEvidence) -> Float32[np.ndarray, "h w"]:
    scaled = np.vectorize(strength)(found.mean, found.absent_score, found.present_score)
    return np.asarray(np.clip(scaled, 0.0, 1.0), dtype=np.float32)


def _eight_bit(found: ConceptEvidence) -> UInt8[np.ndarray, "h w"]:
    return np.asarray(np.rint(_strengths(found) * TOP), dtype=np.uint8)


def _segment(found: ConceptEvidence, number: int, makers: Makers) -> SegmentDescription:
    rejected = " (rejected)" if found.rejected else ""
    kinds = SegmentAlgorithmTypeValues
    segment = SegmentDescription(
        number,
        meaning(f"{found.concept.title}{rejected}"),
        codes.SCT.MorphologicallyAbnormalStructure,
        finding(found.concept),
        kinds.SEMIAUTOMATIC if makers.corrected else kinds.AUTOMATIC,
        makers.segmenting(),
    )
    segment.SegmentDescription = f"{_MEANS} {NOTICE}"
    return segment
