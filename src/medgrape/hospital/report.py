"""A reading as a structured report: TID 1500, Measurement Report."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from highdicom.sr import (
    CodedConcept,
    ComprehensiveSR,
    GraphicTypeValues,
    ImageRegion,
    LanguageOfContentItemAndDescendants,
    Measurement,
    MeasurementReport,
    MeasurementsAndQualitativeEvaluations,
    PlanarROIMeasurementsAndQualitativeEvaluations,
    QualitativeEvaluation,
    ReferencedSegmentationFrame,
    RelationshipTypeValues,
    SourceImageForMeasurementGroup,
    SourceImageForRegion,
    SourceImageForSegmentation,
    TextContentItem,
    TrackingIdentifier,
)
from jaxtyping import Float
from pydicom import Dataset
from pydicom.sr.codedict import codes

from medgrape.concepts import ConceptSet
from medgrape.corrections.statements import BoxCorrection, Correction, Rejection
from medgrape.explain.explanation import ConceptEvidence, Explanation
from medgrape.explain.words import NOTICE
from medgrape.geometry import Box
from medgrape.hospital.codes import Makers, diagnosis, finding, ours
from medgrape.hospital.source import SourceFilm
from medgrape.safety.check import SafetyCheck
from medgrape.study import Study

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
    if found.is_informative:
        scores["strength"] = found.strength
    seen = QualitativeEvaluation(ours("seen"), ours(found.words.replace(" ", "_")))
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


def correction_groups(corrections: tuple[Correction, ...], concepts: ConceptSet, source: SourceFilm) -> list[Group]:
    """One group for each correction in force, the first one first."""
    return [
        _rejection(one, number, concepts, source) if isinstance(one, Rejection) else _box(one, number, concepts, source)
        for number, one in enumerate(corrections, start=1)
    ]


def outline(box: Box) -> Float[np.ndarray, "5 2"]:
    """A box as a closed line; DICOM counts as we do, with 0 at the outer corner of the first pixel."""
    corners = [(box.x1, box.y1), (box.x2, box.y1), (box.x2, box.y2), (box.x1, box.y2), (box.x1, box.y1)]
    return np.array(corners, dtype=np.float64)


def _box(drawn: BoxCorrection, number: int, concepts: ConceptSet, source: SourceFilm) -> Group:
    film = SourceImageForRegion(source.header.SOPClassUID, source.header.SOPInstanceUID)
    place = outline(source.as_stored(drawn.box))
    said = codes.SCT.Present if drawn.positive else codes.SCT.Absent
    check = drawn.check
    group = PlanarROIMeasurementsAndQualitativeEvaluations(
        tracking_identifier=TrackingIdentifier(identifier=f"correction {number}"),
        referenced_region=ImageRegion(GraphicTypeValues.POLYLINE, place, film),
        finding_type=finding(None if drawn.concept is None else concepts[drawn.concept]),
        measurements=None if check is None else figures({"gap": check.gap, "allowed_gap": check.allowed}),
        qualitative_evaluations=[
            made_by_person(),
            QualitativeEvaluation(ours("reader_says"), said),
            *_checked(drawn, concepts),
        ],
    )
    if check is not None:
        _write(group, "reason", check.reason)
        _write(group, "thresholds", check.origin)
    return group


def _checked(drawn: BoxCorrection, concepts: ConceptSet) -> list[QualitativeEvaluation]:
    """The check's result, and whether the person stood by the box."""
    if drawn.check is None:
        return [
            QualitativeEvaluation(ours("safety_check"), ours("not_checked")),
            QualitativeEvaluation(ours("confirmation"), ours("not_asked")),
        ]
    confirmed = ours("confirmed" if drawn.confirmed else "not_confirmed")
    return [
        QualitativeEvaluation(ours("safety_check"), ours(_result(drawn.check))),
        QualitativeEvaluation(ours("claimed"), finding(concepts[drawn.check.claimed])),
        QualitativeEvaluation(ours("dominant"), finding(concepts[drawn.check.dominant])),
        QualitativeEvaluation(ours("confirmation"), confirmed),
    ]


def _result(check: SafetyCheck) -> str:
    if check.mismatch:
        return "mismatch"
    return "silenced" if check.silenced else "agrees"


def _rejection(said: Rejection, number: int, concepts: ConceptSet, source: SourceFilm) -> Group:
    return MeasurementsAndQualitativeEvaluations(
        tracking_identifier=TrackingIdentifier(identifier=f"correction {number}"),
        finding_type=finding(None if said.concept is None else concepts[said.concept]),
        qualitative_evaluations=[
            made_by_person(), QualitativeEvaluation(ours("on_this_film"), codes.SCT.Absent),
        ],
        source_images=[SourceImageForMeasurementGroup.from_source_image(source.header)],
    )  # fmt: skip


def _write(group: Group, code: str, text: str) -> None:
    group[0].ContentSequence.append(TextContentItem(ours(code), text, RelationshipTypeValues.CONTAINS))


SERIES = 9901
_PROCEDURE = CodedConcept("399208008", "SCT", "Plain chest X-ray")
_ENGLISH = CodedConcept("en", "RFC5646", "English")


def report(
    study: Study,
    explanation: Explanation,
    source: SourceFilm,
    makers: Makers,
    maps: Dataset | None,
    mapped: Sequence[str],
) -> Dataset:
    """Classes, findings and corrections; preliminary and verified by nobody, whatever a person confirmed."""
    film = source.header
    first = replace(study, corrections=(), before=None, change=None).prediction if study.corrections else None
    content = MeasurementReport(
        observation_context=makers.observed(),
        procedure_reported=_PROCEDURE,
        imaging_measurements=[
            *class_groups(explanation, first, makers, film),
            *finding_groups(explanation, makers, film, maps, mapped),
            *correction_groups(study.corrections, study.original.concepts, source),
        ],
        title=codes.DCM.ImagingMeasurementReport,
        language_of_content_item_and_descendants=LanguageOfContentItemAndDescendants(_ENGLISH),
    )
    for code, text in [("notice", NOTICE), *(("warning", warning) for warning in explanation.warnings)]:
        content[0].ContentSequence.append(TextContentItem(ours(code), text, RelationshipTypeValues.CONTAINS))
    evidence = [film] if maps is None else [film, maps]
    return ComprehensiveSR(
        evidence, content[0], is_complete=True, is_final=False, is_verified=False,
        **makers.object_of(SERIES, "Reading by medgrape"),
    )  # fmt: skip
