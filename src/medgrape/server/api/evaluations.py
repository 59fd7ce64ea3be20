"""Reports of medgrape evaluate and medgrape audit that lie beside a run, if they are about exactly this model."""

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
    Annotated[float, Field(allow_inf_nan=False)] | None,
    BeforeValidator(lambda value: None if isinstance(value, str) else value),  # "nan", where a figure is not defined
    Field(description="null where it is not defined.", examples=[0.81]),
]
Lower = Annotated[Figure, Field(description="Where its 95 % interval begins; null: there is none.", examples=[0.74])]
Upper = Annotated[Figure, Field(description="Where it ends.", examples=[0.87])]


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
    support: int = Field(description="Films that are of this class.", examples=[120])
    precision: Figure
    recall: Figure
    f1: Figure
    auc: Figure


class MajorityFigures(ResponseModel):
    """Figures of an answer that always names the class most frequent in training."""

    answer: str = Field(examples=["healthy"])
    macro_f1: Number = Field(examples=[0.21])
    accuracy: Number = Field(examples=[0.46])


class ClassificationFigures(ResponseModel):
    """How often the class is right."""

    macro_f1: Estimate
    accuracy: Number = Field(examples=[0.84])
    macro_auc: Figure
    majority: MajorityFigures | None = Field(description="null where the data set has no training films.")
    classes: tuple[ClassFigures, ...]

    @model_validator(mode="before")
    @classmethod
    def _estimated(cls, payload: dict[str, Any]) -> dict[str, Any]:
        return payload | {"macro_f1": {"value": payload["macro_f1"], "interval": payload["interval"]}}


class PointingFigures(ResponseModel):
    """How often the highest point of a finding's mean map lies in a box of it, by film and finding."""

    pairs: int = Field(validation_alias="count", examples=[160])
    mean: Estimate
    chance: Number = Field(description="What a random point gets.", examples=[0.06])
    fixed: Figure = Field(description="What one fixed point gets; null without training boxes.", examples=[0.3])


class ConceptPointing(ResponseModel):
    """How often the highest point of one finding's mean map lies in a box of it."""

    name: str = Field(examples=["active_tb"])
    title: str = Field(examples=["Active tuberculosis"])
    pointing: PointingFigures | None = Field(description="null where no film that was read has a box of it.")


class WarningRates(ResponseModel):
    """How often a safety check warns."""

    title: str = Field(examples=["calibrated to 0.1 false alarms"])
    caught: Estimate | None = Field(description="Of wrong claims.")
    false_alarms: Estimate | None = Field(description="Of right claims.")
    balanced: Estimate | None = Field(description="A check that looks at no film gets 0.5.")


class SafetyFigures(ResponseModel):
    """How often the model's safety check warns about right boxes, and about boxes with a wrong finding."""

    boxes: int = Field(examples=[160])
    own: WarningRates
    majority: WarningRates | None = Field(description="One that always gives the commonest finding of training boxes.")

    @model_validator(mode="before")
    @classmethod
    def _used(cls, payload: dict[str, Any]) -> dict[str, Any]:
        """Pick the check that the run uses: the first of these three that was measured."""
        checks = {check["name"]: check for check in payload["checks"]}
        own = [checks[name] for name in ("calibrated", "settings", "paper") if name in checks]
        return {"boxes": payload["boxes"], "own": own[0] if own else None, "majority": checks.get("majority")}


class EvaluationReport(ResponseModel):
    """Result of medgrape evaluate."""

    version: str = Field(validation_alias=AliasPath("facts", "version"), exclude=True)
    split: str = Field(examples=["test"])
    data_set: str = Field(examples=["tbx11k"])
    its_own: bool = Field(
        validation_alias=AliasPath("facts", "trained on this data set"),
        description="Whether the model was trained on that very data set.",
    )
    films: FilmCounts
    known_films: int = Field(description="How many of them the model has learnt from or was chosen on.", examples=[0])
    headline: tuple[str, ...] = Field(examples=[("Macro-F1 0.81; always healthy would get 0.21.",)])
    warnings: tuple[str, ...] = Field(examples=[()])
    classification: ClassificationFigures
    pointing: PointingFigures | None = Field(
        validation_alias=AliasPath("localisation", "per_pair"),
        description="null where no film that was read has a box.",
    )
    concepts: tuple[ConceptPointing, ...] = Field(validation_alias=AliasPath("localisation", "concepts"))
    safety: SafetyFigures | None = Field(
        validation_alias="interaction", description="null where no film that was read has a box."
    )


class AuditMeasure(ResponseModel):
    """What is measured in every group."""

    name: str = Field(examples=["macro_f1"])
    title: str = Field(examples=["macro-F1"])
    best: Literal["high", "low", "zero"]
    compared: bool = Field(description="Whether a small group may be compared with a large one.")


class TrivialFigure(ResponseModel):
    """The figure of an answer that does not depend on the film, on the same films."""

    name: str = Field(examples=["majority"])
    title: str = Field(examples=["always “healthy”"])
    value: Figure


class AuditFigure(ResponseModel):
    """One figure in one group."""

    measure: str = Field(examples=["macro_f1"])
    patients: int = Field(description="Patients that were counted.", examples=[84])
    too_few: bool = Field(description="Whether those are too few: then there are no figures.")
    value: Figure
    low: Lower
    high: Upper
    trivial: tuple[TrivialFigure, ...]
    rest: Figure = Field(description="The same figure in all other films; null: not compared.", examples=[0.79])
    flagged: bool = Field(description="Whether the interval of the gap to all other films excludes zero.")
    still_flagged: bool = Field(description="Also after Holm's correction for all gaps.")

    @model_validator(mode="before")
    @classmethod
    def _flattened(cls, payload: dict[str, Any]) -> dict[str, Any]:
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
    fewest_patients: int = Field(description="Fewer are too few.", examples=[10])
    headline: tuple[str, ...] = Field(examples=[("13 gaps were judged: 1 has an interval that excludes zero.",)])
    measures: tuple[AuditMeasure, ...]
    whole: AuditGroup
    tables: tuple[AuditTable, ...]
    flagged: tuple[str, ...] = Field(description="Each flagged gap as a sentence.", examples=[()])
    warnings: tuple[str, ...] = Field(examples=[()])


class EvaluationResponse(ResponseModel):
    """Report and audit that lie beside a run; null where none is about this very model."""

    report: EvaluationReport | None
    audit: AuditReport | None
    how: str | None = Field(
        description="How to make what is missing; null: nothing is.",
        examples=["No audit of this model lies beside its run: medgrape audit RUN --data DIR."],
    )


T = TypeVar("T", EvaluationReport, AuditReport)
SPLITS = ("test", "val")
"""In this order: a report on test films is preferred."""
MADE_HERE = (
    "This model was made in the room, where no report is kept: measure it on validation films, or copy it out of the "
    "room's models and give the copy to medgrape evaluate and medgrape audit."
)


def _first(kind: type[T], model: str, paths: Sequence[Path], name: str, command: str) -> tuple[T | None, str]:
    """Return the first file that is about this model, or in words why there is none and how to make one."""
    problems = []
    for path in paths:
        try:
            status = path.stat()
            found: T | None = _read(kind, path, (status.st_mtime_ns, status.st_size, status.st_ino))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            problems.append(f"The {name} beside the run cannot be read.")
            continue
        if found is None:
            problems.append(f"The {name} beside the run is damaged, or of an older medgrape.")
        elif found.version != model:
            problems.append(f"The {name} beside the run is about another model, or the run before it was changed.")
        else:
            return found, ""
    problem = problems[0] if problems else f"No {name} of this model lies beside its run."
    return None, f"{problem} To make one: medgrape {command} RUN --data DIR."


@lru_cache(maxsize=64)
def _read(kind: type[T], path: Path, _state: tuple[int, ...]) -> T | None:
    """Read once for each state of the file, because a report of many films is large; None if it is damaged."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except (ValueError, KeyError, TypeError):
        return None


routes = router("models", Role.READER)


@routes.get("/models/{model}/evaluation")
def get_evaluation(model: ModelVersion, services: Services) -> EvaluationResponse:
    """Get what medgrape evaluate and medgrape audit found out about exactly this model, where it lies beside it."""
    from medgrape.runs.manifest import audit_folder, report_folder  # slow to import

    with services.room.database.reading() as session:
        row = model_row(session, model)
    if row.made_here:
        return EvaluationResponse(report=None, audit=None, how=MADE_HERE)
    run = folder_of(services.room, row)
    reports = [report_folder(run, split) / "report.json" for split in SPLITS]
    audits = [audit_folder(run, split) / "audit.json" for split in SPLITS]
    report, no_report = _first(EvaluationReport, model, reports, "report", "evaluate")
    audit, no_audit = _first(AuditReport, model, audits, "audit", "audit")
    return EvaluationResponse(report=report, audit=audit, how=" ".join(filter(None, (no_report, no_audit))) or None)
