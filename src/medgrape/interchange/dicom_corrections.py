"""What a person said to it, and what the model said to that, as measurement groups of a structured report."""

import numpy as np
from highdicom.sr import (
    GraphicTypeValues,
    ImageRegion,
    MeasurementsAndQualitativeEvaluations,
    PlanarROIMeasurementsAndQualitativeEvaluations,
    QualitativeEvaluation,
    RelationshipTypeValues,
    SourceImageForMeasurementGroup,
    SourceImageForRegion,
    TextContentItem,
    TrackingIdentifier,
)
from jaxtyping import Float
from pydicom.sr.codedict import codes

from medgrape.concepts import ConceptSet
from medgrape.feedback.correction import BoxCorrection, Correction, Rejection
from medgrape.feedback.safety import SafetyCheck
from medgrape.geometry import Box
from medgrape.interchange.dicom_codes import finding, ours
from medgrape.interchange.dicom_findings import Group, figures, made_by_person
from medgrape.interchange.dicom_source import SourceFilm


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
