"""What the model found, as measurement groups of a structured report."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from highdicom.sr import (
    Measurement,
    MeasurementsAndQualitativeEvaluations,
    PlanarROIMeasurementsAndQualitativeEvaluations,
    QualitativeEvaluation,
    ReferencedSegmentationFrame,
    SourceImageForMeasurementGroup,
    SourceImageForSegmentation,
    TrackingIdentifier,
)
from pydicom import Dataset
from pydicom.sr.codedict import codes

from medgrape.explain.explanation import ConceptEvidence, Explanation
from medgrape.explain.listing import in_words, tells
from medgrape.interchange.dicom_codes import diagnosis, finding, ours
from medgrape.interchange.dicom_equipment import Makers

Group = MeasurementsAndQualitativeEvaluations | PlanarROIMeasurementsAndQualitativeEvaluations


def class_groups(
    explanation: Explanation, first: Mapping[str, float] | None, makers: Makers, film: Dataset
) -> list[Group]:
    """One group for each class, the likeliest first; ``first`` is what they were before any correction."""
    return [
        MeasurementsAndQualitativeEvaluations(
            tracking_identifier=TrackingIdentifier(identifier=f"class {place}"),
            finding_type=diagnosis(name),
            algorithm_id=makers.algorithm(),
            measurements=figures({"class_prob": share} | ({} if first is None else {"first_prob": first[name]})),
            qualitative_evaluations=[made_by_device()],
            source_images=[SourceImageForMeasurementGroup.from_source_image(film)],
        )
        for place, (name, share) in enumerate(explanation.probabilities.items(), start=1)
    ]


def finding_groups(
    explanation: Explanation, makers: Makers, film: Dataset, maps: Dataset | None, mapped: Sequence[str]
) -> list[Group]:
    """One group for each concept, the one that stands out most first; where it has a map, with a reference to it."""
    return [_finding(found, makers, film, maps, mapped) for found in explanation.concepts]


def _finding(
    found: ConceptEvidence, makers: Makers, film: Dataset, maps: Dataset | None, mapped: Sequence[str]
) -> Group:
    scores = {"score": found.score, "score_without": found.absent_score, "score_with": found.present_score}
    if tells(found):
        scores["strength"] = found.strength
    seen = QualitativeEvaluation(ours("seen"), ours(in_words(found).replace(" ", "_")))
    told: dict[str, Any] = {
        "tracking_identifier": TrackingIdentifier(identifier=f"finding {found.concept.name}"),
        "finding_type": finding(found.concept),
        "algorithm_id": makers.algorithm(),
        "measurements": figures(scores),
        "qualitative_evaluations": [seen, made_by_device()],
    }
    if maps is None or found.concept.name not in mapped:
        here = SourceImageForMeasurementGroup.from_source_image(film)
        return MeasurementsAndQualitativeEvaluations(**told, source_images=[here])
    shown = _segment(mapped.index(found.concept.name) + 1, maps, film)
    return PlanarROIMeasurementsAndQualitativeEvaluations(**told, referenced_segment=shown)


def _segment(number: int, maps: Dataset, film: Dataset) -> ReferencedSegmentationFrame:
    """A map among the maps: its segment's number alone, for DICOM allows no number of a frame beside it."""
    source = SourceImageForSegmentation(film.SOPClassUID, film.SOPInstanceUID)
    shown = ReferencedSegmentationFrame(maps.SOPClassUID, maps.SOPInstanceUID, number, number, source)
    del shown[0].ReferencedSOPSequence[0].ReferencedFrameNumber
    return shown


def figures(told: dict[str, float]) -> list[Measurement]:
    """Numbers without a unit; one that is none is left out, for a report has no word for it."""
    return [
        Measurement(ours(code), round(float(value), 6), codes.UCUM.NoUnits)
        for code, value in told.items()
        if math.isfinite(value)
    ]


def made_by_device() -> QualitativeEvaluation:
    """Found by the model."""
    return QualitativeEvaluation(codes.DCM.ObserverType, codes.DCM.Device)


def made_by_person() -> QualitativeEvaluation:
    """Said by a person, named or not."""
    return QualitativeEvaluation(codes.DCM.ObserverType, codes.DCM.Person)
