"""A reading as a structured report: TID 1500, Measurement Report."""

from collections.abc import Sequence
from dataclasses import replace

from highdicom.sr import (
    CodedConcept,
    ComprehensiveSR,
    LanguageOfContentItemAndDescendants,
    MeasurementReport,
    RelationshipTypeValues,
    TextContentItem,
)
from pydicom import Dataset
from pydicom.sr.codedict import codes

from medgrape.explain.explanation import Explanation
from medgrape.explain.words import NOTICE
from medgrape.feedback.study import Study
from medgrape.interchange.dicom_codes import ours
from medgrape.interchange.dicom_corrections import correction_groups
from medgrape.interchange.dicom_equipment import Makers
from medgrape.interchange.dicom_findings import class_groups, finding_groups
from medgrape.interchange.dicom_source import SourceFilm

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
