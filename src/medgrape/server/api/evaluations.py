"""Reports that medgrape evaluate and medgrape audit wrote beside the run of a model."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AliasChoices, AliasPath, BeforeValidator, Field, model_validator

from medgrape.server.accounts import Role
from medgrape.server.api.common import ModelVersion, Number, ResponseModel
from medgrape.server.models import folder_of, model_row
from medgrape.server.services import Services, router

Figure = Annotated[
    Number | None,
    BeforeValidator(lambda value: None if isinstance(value, str) else value),  # reports have "nan" as text
    Field(description="null: not defined.", examples=[0.81]),
]
Lower = Annotated[Figure, Field(description="Lower end of the 95 % interval, if there is one.", examples=[0.74])]
Upper = Annotated[Figure, Field(description="Upper end of the 95 % interval, if there is one.", examples=[0.87])]


class Estimate(ResponseModel):
    """A figure with its 95 % interval over resampled patients."""

    value: Number = Field(validation_alias=AliasChoices("value", "share"), examples=[0.62])
    low: Lower = Field(None, validation_alias=AliasPath("interval", "low"))
    high: Upper = Field(None, validation_alias=AliasPath("interval", "high"))


class FilmCounts(ResponseModel):
    """Films and patients that were evaluated."""

    read: int = Field(examples=[593])
    refused: int = Field(examples=[0])
    patients: int = Field(examples=[446])
    with_boxes: int = Field(examples=[120])


class ClassFigures(ResponseModel):
    """One class against all others."""

    name: str = Field(examples=["active_tb"])
    support: int = Field(description="Films of this class.", examples=[120])
    precision: Figure
    recall: Figure
    f1: Figure
    auc: Figure


class MajorityFigures(ResponseModel):
    """Figures of always predicting the most frequent class of the training films."""

    answer: str = Field(examples=["healthy"])
    macro_f1: Number = Field(examples=[0.21])
    accuracy: Number = Field(examples=[0.46])


class ClassificationFigures(ResponseModel):
    """Classification figures on the evaluated films."""

    macro_f1: Estimate
    accuracy: Number = Field(examples=[0.84])
    macro_auc: Figure
    majority: MajorityFigures | None = Field(description="null if the data set has no training films.")
    classes: tuple[ClassFigures, ...]

    @model_validator(mode="before")
    @classmethod
    def _add_interval(cls, payload: dict[str, Any]) -> dict[str, Any]:
        return payload | {"macro_f1": {"value": payload["macro_f1"], "interval": payload["interval"]}}


class PointingFigures(ResponseModel):
    """Fraction of (film, finding) pairs in which the highest point of the mean map lies in a box of the finding."""

    pairs: int = Field(validation_alias="count", examples=[160])
    mean: Estimate
    chance: Number = Field(description="Expected for a random point.", examples=[0.06])
    fixed: Figure = Field(description="For the best fixed point; null without training boxes.", examples=[0.3])


class ConceptPointing(ResponseModel):
    """The same for one finding."""

    name: str = Field(examples=["active_tb"])
    title: str = Field(examples=["Active tuberculosis"])
    pointing: PointingFigures | None = Field(description="null if no evaluated film has a box of it.")


class WarningRates(ResponseModel):
    """Rates of warnings of a safety check."""

    title: str = Field(examples=["calibrated to 0.1 false alarms"])
    caught: Estimate | None = Field(description="Fraction of wrong claims with a warning.")
    false_alarms: Estimate | None = Field(description="Fraction of right claims with a warning.")
    balanced: Estimate | None = Field(description="Balanced accuracy; 0.5 without looking at the film.")


class SafetyFigures(ResponseModel):
    """Rates of warnings about boxes with the right and with a wrong finding."""

    boxes: int = Field(examples=[160])
    own: WarningRates
    majority: WarningRates | None = Field(description="A check that always expects the most frequent finding.")

    @model_validator(mode="before")
    @classmethod
    def _choose_check(cls, payload: dict[str, Any]) -> dict[str, Any]:
        """Choose the check that the run uses: the first of these three in the report."""
        checks = {check["name"]: check for check in payload["checks"]}
        own = next((checks[name] for name in ("calibrated", "settings", "paper") if name in checks), None)
        return {"boxes": payload["boxes"], "own": own, "majority": checks.get("majority")}


class EvaluationReport(ResponseModel):
    """Result of medgrape evaluate."""

    version: str = Field(validation_alias=AliasPath("facts", "version"), exclude=True)
    split: str = Field(examples=["test"])
    data_set: str = Field(examples=["tbx11k"])
    its_own: bool = Field(
        validation_alias=AliasPath("facts", "trained on this data set"), description="Whether it trained the model."
    )
    films: FilmCounts
    known_films: int = Field(description="Of these, films that the model was trained or selected on.", examples=[0])
    headline: tuple[str, ...] = Field(examples=[("Macro-F1 0.81; always healthy would get 0.21.",)])
    warnings: tuple[str, ...] = Field(examples=[()])
    classification: ClassificationFigures
    pointing: PointingFigures | None = Field(
        validation_alias=AliasPath("localisation", "per_pair"), description="null if no evaluated film has a box."
    )
    concepts: tuple[ConceptPointing, ...] = Field(validation_alias=AliasPath("localisation", "concepts"))
    safety: SafetyFigures | None = Field(
        validation_alias="interaction", description="null if no evaluated film has a box."
    )


class AuditMeasure(ResponseModel):
    """A measure that is computed in every group."""

    name: str = Field(examples=["macro_f1"])
    title: str = Field(examples=["macro-F1"])
    best: Literal["high", "low", "zero"]
    compared: bool = Field(description="Whether a small group may be compared with a large one.")


class TrivialFigure(ResponseModel):
    """Figure of a constant prediction on the same films."""

    name: str = Field(examples=["majority"])
    title: str = Field(examples=["always “healthy”"])
    value: Figure


class AuditFigure(ResponseModel):
    """One figure in one group."""

    measure: str = Field(examples=["macro_f1"])
    patients: int = Field(description="Number of patients with a value.", examples=[84])
    too_few: bool = Field(description="Too few patients for figures.")
    value: Figure
    low: Lower
    high: Upper
    trivial: tuple[TrivialFigure, ...]
    rest: Figure = Field(description="The figure on all other films; null: not compared.", examples=[0.79])
    flagged: bool = Field(description="Whether the interval of the gap to the other films excludes 0.")
    still_flagged: bool = Field(description="Also after Holm's correction for all gaps.")

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, payload: dict[str, Any]) -> dict[str, Any]:
        gap = payload["gap"] or {"rest": None, "flagged": False, "still_flagged": False}
        return gap | payload | (payload["interval"] or {"low": None, "high": None})


class AuditGroup(ResponseModel):
    """All figures in one group."""

    name: str = Field(examples=["PA"])
    films: int = Field(examples=[508])
    patients: int = Field(examples=[389])
    figures: tuple[AuditFigure, ...]


class AuditTable(ResponseModel):
    """The groups of one attribute, or of several crossed."""

    title: str = Field(examples=["view"])
    groups: tuple[AuditGroup, ...]


class AuditReport(ResponseModel):
    """Result of medgrape audit."""

    version: str = Field(exclude=True)
    split: str = Field(examples=["test"])
    data_set: str = Field(examples=["tbx11k"])
    fewest_patients: int = Field(description="Groups with fewer patients have no figures.", examples=[10])
    headline: tuple[str, ...] = Field(examples=[("13 gaps were judged: 1 has an interval that excludes zero.",)])
    measures: tuple[AuditMeasure, ...]
    whole: AuditGroup
    tables: tuple[AuditTable, ...]
    flagged: tuple[str, ...] = Field(description="Each flagged gap as a sentence.", examples=[()])
    warnings: tuple[str, ...] = Field(examples=[()])


class EvaluationResponse(ResponseModel):
    """Report and audit beside the run; null if there is none about this version of the model."""

    report: EvaluationReport | None
    audit: AuditReport | None
    how: str | None = Field(description="How to make what is missing.", examples=["medgrape audit RUN --data DIR"])


T = TypeVar("T", EvaluationReport, AuditReport)


def _first(kind: type[T], model: str, paths: Sequence[Path], name: str, command: str) -> tuple[T | None, str]:
    """Return the first report about this model, or why there is none and how to make one."""
    problems = []
    for path in paths:
        try:
            status = path.stat()
            report: T | None = _read(kind, path, (status.st_mtime_ns, status.st_size, status.st_ino))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            report = None
        if report is None:
            problems.append(f"The {name} beside the run is damaged, unreadable, or of an older medgrape.")
        elif report.version != model:
            problems.append(f"The {name} beside the run is about another model, or the run before it was changed.")
        else:
            return report, ""
    problem = problems[0] if problems else f"No {name} of this model lies beside its run."
    return None, f"{problem} To make one: medgrape {command} RUN --data DIR."


@lru_cache(maxsize=64)
def _read(kind: type[T], path: Path, _state: tuple[int, ...]) -> T | None:
    """Return a report, cached while the file does not change; None if it is damaged."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except (ValueError, KeyError, TypeError):
        return None


routes = router("models", Role.READER)


@routes.get("/models/{model}/evaluation")
def get_evaluation(model: ModelVersion, services: Services) -> EvaluationResponse:
    """Get the reports that medgrape evaluate and medgrape audit wrote beside the run of a model."""
    from medgrape.runs.manifest import audit_folder, report_folder  # slow to import

    with services.room.database.reading() as session:
        row = model_row(session, model)
    if row.made_here:
        how = (
            "This model was made in the room, which has no reports: measure it on validation films, or copy its folder "
            "and give the copy to medgrape evaluate and medgrape audit."
        )
        return EvaluationResponse(report=None, audit=None, how=how)
    run = folder_of(services.room, row)
    reports = [report_folder(run, split) / "report.json" for split in ("test", "val")]  # test films are preferred
    audits = [audit_folder(run, split) / "audit.json" for split in ("test", "val")]
    report, no_report = _first(EvaluationReport, model, reports, "report", "evaluate")
    audit, no_audit = _first(AuditReport, model, audits, "audit", "audit")
    return EvaluationResponse(report=report, audit=audit, how=" ".join(filter(None, (no_report, no_audit))) or None)
