"""A reading as a DICOM structured report: TID 1500, Measurement Report."""

import math
from collections.abc import Mapping
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
from pydicom.sr.coding import Code

from medgrape.concepts import ConceptSet
from medgrape.corrections.statements import BoxCorrection, Correction
from medgrape.explain.explanation import Explanation
from medgrape.explain.film_evidence import ConceptEvidence
from medgrape.explain.words import NOTICE
from medgrape.geometry import Box
from medgrape.hospital.codes import Provenance, class_code, finding_code, private_code
from medgrape.hospital.segmentation import mapped_concepts
from medgrape.hospital.source import SourceFilm
from medgrape.study import Study

Group = MeasurementsAndQualitativeEvaluations | PlanarROIMeasurementsAndQualitativeEvaluations
_SERIES_NUMBER = 9901
_PROCEDURE = CodedConcept("399208008", "SCT", "Plain chest X-ray")
_ENGLISH = CodedConcept("en", "RFC5646", "English")


def build_report(
    study: Study, explanation: Explanation, source: SourceFilm, provenance: Provenance, maps: Dataset | None
) -> Dataset:
    """Return classes, findings and corrections as a preliminary, unverified report, also after a confirmation."""
    film, concepts = source.header, study.original.concepts
    first = replace(study, corrections=(), before=None, change=None).prediction if study.corrections else {}
    segments = {evidence.concept.name: number for number, evidence in enumerate(mapped_concepts(explanation), start=1)}
    content = MeasurementReport(
        observation_context=provenance.observation_context(),
        procedure_reported=_PROCEDURE,
        imaging_measurements=[
            *_class_groups(explanation, first, provenance, film),
            *(
                _finding_group(
                    evidence, provenance, film, _reference_map(segments.get(evidence.concept.name), maps, film)
                )
                for evidence in explanation.concepts
            ),
            *(
                _correction_group(correction, f"correction {number}", concepts, source)
                for number, correction in enumerate(study.corrections, start=1)
            ),
        ],
        title=codes.DCM.ImagingMeasurementReport,
        language_of_content_item_and_descendants=LanguageOfContentItemAndDescendants(_ENGLISH),
    )
    for code, text in [("notice", NOTICE), *(("warning", warning) for warning in explanation.warnings)]:
        _append_text(content, code, text)
    evidence = [film] if maps is None else [film, maps]
    return ComprehensiveSR(
        evidence, content[0], is_complete=True, is_final=False, is_verified=False,
        **provenance.object_attributes(_SERIES_NUMBER, "Reading by medgrape"),
    )  # fmt: skip


def _class_groups(
    explanation: Explanation, first: Mapping[str, float], provenance: Provenance, film: Dataset
) -> list[Group]:
    """Return a group per class, the likeliest first; ``first`` has the probabilities before any correction."""
    return [
        MeasurementsAndQualitativeEvaluations(
            tracking_identifier=TrackingIdentifier(identifier=f"class {rank}"),
            finding_type=class_code(name),
            algorithm_id=provenance.measuring_algorithm(),
            measurements=_measurements({"class_prob": probability, "first_prob": first.get(name, math.nan)}),
            qualitative_evaluations=[_observer(codes.DCM.Device)],
            source_images=[SourceImageForMeasurementGroup.from_source_image(film)],
        )
        for rank, (name, probability) in enumerate(explanation.probabilities.items(), start=1)
    ]


def _finding_group(
    evidence: ConceptEvidence, provenance: Provenance, film: Dataset, segment: ReferencedSegmentationFrame | None
) -> Group:
    """Return the group of a finding, with a reference to its map if it has one."""
    scores = {"score": evidence.score, "score_without": evidence.absent_score, "score_with": evidence.present_score}
    if evidence.is_informative:
        scores["strength"] = evidence.strength
    seen = QualitativeEvaluation(private_code("seen"), private_code(evidence.words.replace(" ", "_")))
    content: dict[str, Any] = {
        "tracking_identifier": TrackingIdentifier(identifier=f"finding {evidence.concept.name}"),
        "finding_type": finding_code(evidence.concept),
        "algorithm_id": provenance.measuring_algorithm(),
        "measurements": _measurements(scores),
        "qualitative_evaluations": [seen, _observer(codes.DCM.Device)],
    }
    if segment is not None:
        return PlanarROIMeasurementsAndQualitativeEvaluations(**content, referenced_segment=segment)
    image = SourceImageForMeasurementGroup.from_source_image(film)
    return MeasurementsAndQualitativeEvaluations(**content, source_images=[image])


def _reference_map(number: int | None, maps: Dataset | None, film: Dataset) -> ReferencedSegmentationFrame | None:
    """Return a reference to a segment of the maps, without a frame number: DICOM allows only one of the two."""
    if number is None or maps is None:
        return None
    source = SourceImageForSegmentation(film.SOPClassUID, film.SOPInstanceUID)
    reference = ReferencedSegmentationFrame(maps.SOPClassUID, maps.SOPInstanceUID, number, number, source)
    del reference[0].ReferencedSOPSequence[0].ReferencedFrameNumber
    return reference


def _correction_group(correction: Correction, identifier: str, concepts: ConceptSet, source: SourceFilm) -> Group:
    """Return the group of a box or a rejection."""
    content: dict[str, Any] = {
        "tracking_identifier": TrackingIdentifier(identifier=identifier),
        "finding_type": finding_code(None if correction.concept is None else concepts[correction.concept]),
    }
    person = _observer(codes.DCM.Person)
    if not isinstance(correction, BoxCorrection):
        return MeasurementsAndQualitativeEvaluations(
            **content,
            qualitative_evaluations=[person, QualitativeEvaluation(private_code("on_this_film"), codes.SCT.Absent)],
            source_images=[SourceImageForMeasurementGroup.from_source_image(source.header)],
        )
    film = SourceImageForRegion(source.header.SOPClassUID, source.header.SOPInstanceUID)
    statement = codes.SCT.Present if correction.positive else codes.SCT.Absent
    check = correction.check
    group = PlanarROIMeasurementsAndQualitativeEvaluations(
        **content,
        referenced_region=ImageRegion(GraphicTypeValues.POLYLINE, outline(source.as_stored(correction.box)), film),
        measurements=None if check is None else _measurements({"gap": check.gap, "allowed_gap": check.allowed}),
        qualitative_evaluations=[
            person,
            QualitativeEvaluation(private_code("reader_says"), statement),
            *_check_evaluations(correction, concepts),
        ],
    )
    if check is not None:
        _append_text(group, "reason", check.reason)
        _append_text(group, "thresholds", check.origin)
    return group


def _check_evaluations(box: BoxCorrection, concepts: ConceptSet) -> list[QualitativeEvaluation]:
    """Return the result of the safety check, and whether the person confirmed the box."""
    check = box.check
    if check is None:
        answers = {"safety_check": private_code("not_checked"), "confirmation": private_code("not_asked")}
    else:
        answers = {
            "safety_check": private_code("mismatch" if check.mismatch else "silenced" if check.silenced else "agrees"),
            "claimed": finding_code(concepts[check.claimed]),
            "dominant": finding_code(concepts[check.dominant]),
            "confirmation": private_code("confirmed" if box.confirmed else "not_confirmed"),
        }
    return [QualitativeEvaluation(private_code(question), answer) for question, answer in answers.items()]


def outline(box: Box) -> Float[np.ndarray, "5 2"]:
    """Return the box as a closed line. DICOM, too, has 0 at the outer corner of the first pixel."""
    corners = [(box.x1, box.y1), (box.x2, box.y1), (box.x2, box.y2), (box.x1, box.y2), (box.x1, box.y1)]
    return np.array(corners, dtype=np.float64)


def _measurements(values: Mapping[str, float]) -> list[Measurement]:
    """Return numbers without a unit; those that are not finite are left out."""
    return [
        Measurement(private_code(code), round(float(value), 6), codes.UCUM.NoUnits)
        for code, value in values.items()
        if math.isfinite(value)
    ]


def _observer(kind: Code) -> QualitativeEvaluation:
    """Return who stated the content of a group: the device or a person, named or not."""
    return QualitativeEvaluation(codes.DCM.ObserverType, kind)


def _append_text(root: Group | MeasurementReport, code: str, text: str) -> None:
    root[0].ContentSequence.append(TextContentItem(private_code(code), text, RelationshipTypeValues.CONTAINS))
