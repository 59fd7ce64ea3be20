"""What medgrape evaluate and medgrape audit wrote beside a run, told if it is about exactly this model."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BeforeValidator, Field, ValidationError

from medgrape.server.api.common import Number, Told
from medgrape.server.models import folder_of, model_row
from medgrape.server.room import Room

Figure = Annotated[
    Annotated[float, Field(allow_inf_nan=False)] | None,
    BeforeValidator(lambda value: None if isinstance(value, str) else value),  # "nan", where a figure is not defined
    Field(description="null where it is not defined.", examples=[0.81]),
]
Lower = Annotated[Figure, Field(description="Where its 95 % interval begins; null: there is none.", examples=[0.74])]
Upper = Annotated[Figure, Field(description="Where it ends.", examples=[0.87])]


class Share(Told):
    """A share with its 95 % interval, patients drawn again."""

    value: Number = Field(examples=[0.62])
    low: Lower
    high: Upper


class FilmsCounted(Told):
    """What the figures rest on."""

    read: int = Field(examples=[593])
    refused: int = Field(examples=[0])
    patients: int = Field(examples=[446])
    with_boxes: int = Field(examples=[120])


class ClassTold(Told):
    """One class against all others."""

    name: str = Field(examples=["active_tb"])
    support: int = Field(description="Films that are of this class.", examples=[120])
    precision: Figure
    recall: Figure
    f1: Figure
    auc: Figure


class MajorityTold(Told):
    """Always naming the class that is most frequent in training."""

    answer: str = Field(examples=["healthy"])
    macro_f1: Number = Field(examples=[0.21])
    accuracy: Number = Field(examples=[0.46])


class ClassificationTold(Told):
    """Whether the class is right."""

    macro_f1: Share
    accuracy: Number = Field(examples=[0.84])
    macro_auc: Figure
    majority: MajorityTold | None = Field(description="null where the data set has no training films.")
    classes: tuple[ClassTold, ...]


class PointingTold(Told):
    """How often the highest point of a finding's mean map lies in a box of it, by film and finding."""

    pairs: int = Field(examples=[160])
    mean: Share
    chance: Number = Field(description="What a random point gets.", examples=[0.06])
    fixed: Figure = Field(
        description="What one fixed point for each finding gets; null where training films have no box.", examples=[0.3]
    )


class ConceptPointingTold(Told):
    """The same for one finding."""

    name: str = Field(examples=["active_tb"])
    title: str = Field(examples=["Active tuberculosis"])
    pointing: PointingTold | None = Field(description="null where no film that was read has a box of it.")


class WarningsTold(Told):
    """How often a safety check warns."""

    title: str = Field(examples=["calibrated to 0.1 false alarms"])
    caught: Share | None = Field(description="Of wrong claims.")
    false_alarms: Share | None = Field(description="Of right claims.")
    balanced: Share | None = Field(description="A check that looks at no film gets 0.5.")


class SafetyTold(Told):
    """What the model's safety check is worth, with boxes that are mistaken on purpose."""

    boxes: int = Field(examples=[160])
    own: WarningsTold
    majority: WarningsTold | None = Field(description="One that always gives the commonest finding of training boxes.")


class ReportTold(Told):
    """What medgrape evaluate found."""

    split: str = Field(examples=["test"])
    data_set: str = Field(examples=["tbx11k"])
    its_own: bool = Field(description="Whether the model was trained on that very data set.")
    films: FilmsCounted
    known_films: int = Field(description="How many of them the model has learnt from or was chosen on.", examples=[0])
    headline: tuple[str, ...] = Field(examples=[("Macro-F1 0.81; always healthy would get 0.21.",)])
    warnings: tuple[str, ...] = Field(examples=[()])
    classification: ClassificationTold
    pointing: PointingTold | None = Field(description="null where no film that was read has a box.")
    concepts: tuple[ConceptPointingTold, ...]
    safety: SafetyTold | None = Field(description="null where no film that was read has a box.")


class MeasureTold(Told):
    """What is measured in every group."""

    name: str = Field(examples=["macro_f1"])
    title: str = Field(examples=["macro-F1"])
    best: Literal["high", "low", "zero"]
    compared: bool = Field(description="Whether a small group may be laid beside a large one.")


class BlindTold(Told):
    """What somebody gets on the same films who does not look at them."""

    name: str = Field(examples=["majority"])
    title: str = Field(examples=["always “healthy”"])
    value: Figure


class GroupFigureTold(Told):
    """One figure in one group."""

    measure: str = Field(examples=["macro_f1"])
    patients: int = Field(description="On how many it rests.", examples=[84])
    too_few: bool = Field(description="Whether those are too few: then nothing below is told.")
    value: Figure
    low: Lower
    high: Upper
    trivial: tuple[BlindTold, ...]
    rest: Figure = Field(description="The same figure in all other films; null: not compared.", examples=[0.79])
    flagged: bool = Field(description="Whether the interval of the gap to all other films excludes zero.")
    still_flagged: bool = Field(description="Also after Holm's correction for all gaps.")


class GroupTold(Told):
    """All figures in one group."""

    name: str = Field(examples=["PA"])
    films: int = Field(examples=[508])
    patients: int = Field(examples=[389])
    figures: tuple[GroupFigureTold, ...]


class AuditTableTold(Told):
    """The groups of one attribute, or of several crossed."""

    title: str = Field(examples=["view"])
    groups: tuple[GroupTold, ...]


class AuditTold(Told):
    """What medgrape audit found."""

    split: str = Field(examples=["test"])
    data_set: str = Field(examples=["tbx11k"])
    fewest_patients: int = Field(description="Fewer are too few.", examples=[10])
    headline: tuple[str, ...] = Field(examples=[("13 gaps were judged: 1 has an interval that excludes zero.",)])
    measures: tuple[MeasureTold, ...]
    whole: GroupTold
    tables: tuple[AuditTableTold, ...]
    flagged: tuple[str, ...] = Field(description="Each flagged gap as a sentence.", examples=[()])
    warnings: tuple[str, ...] = Field(examples=[()])


class EvaluationTold(Told):
    """What lies beside a run; null where nothing of this very model does."""

    report: ReportTold | None
    audit: AuditTold | None
    how: str | None = Field(
        description="How to make what is missing; null: nothing is.",
        examples=["No audit of this model lies beside its run: medgrape audit RUN --data DIR."],
    )


T = TypeVar("T", ReportTold, AuditTold)
SPLITS = ("test", "val")
"""In this order: what was found on test films counts more."""
MADE_HERE = (
    "This model was made in the room, where no report is kept: have it measured on validation films (its worth), or "
    "copy it out of the room's models and give the copy to medgrape evaluate and medgrape audit."
)
_BROKEN = (KeyError, TypeError, ValueError, AttributeError, RecursionError, StopIteration, ValidationError)
_CHECKS = ("calibrated", "settings", "paper")
"""The check that a run uses is the first of these that was measured."""


@dataclass(frozen=True)
class _Found(Generic[T]):
    """What lies there, or what is wrong with it."""

    told: T | None
    wrong: str = ""


def evaluation_of(room: Room, model: str) -> EvaluationTold:
    """Report and audit of a model, and how to make what is missing."""
    from medgrape.runs.manifest import (
        audit_folder,  # slow to import
        report_folder,
    )

    with room.database.reading() as session:
        row = model_row(session, model)
    if row.made_here:
        return EvaluationTold(report=None, audit=None, how=MADE_HERE)
    run = folder_of(room, row)
    report = _first("report", model, [report_folder(run, split) / "report.json" for split in SPLITS], _report)
    audit = _first("audit", model, [audit_folder(run, split) / "audit.json" for split in SPLITS], _audit)
    hints = [
        _hint(report, "report", "medgrape evaluate RUN --data DIR"),
        _hint(audit, "audit", "medgrape audit RUN --data DIR"),
    ]
    return EvaluationTold(report=report.told, audit=audit.told, how=" ".join(filter(None, hints)) or None)


def _hint(found: _Found[T], what: str, command: str) -> str:
    if found.told is not None:
        return ""
    return f"{found.wrong or f'No {what} of this model lies beside its run.'} To make one: {command}."


def _first(what: str, model: str, paths: list[Path], read: Callable[[Mapping[str, Any]], T]) -> _Found[T]:
    """The first that is about this model; else what is wrong with the first that is there."""
    found = [_at(what, model, path, read) for path in paths]
    there = [one for one in found if one.told is not None] or [one for one in found if one.wrong]
    return there[0] if there else _Found(None)


def _at(what: str, model: str, path: Path, read: Callable[[Mapping[str, Any]], T]) -> _Found[T]:
    try:
        status = path.stat()
        told: _Found[T] = _read(what, model, path, read, (status.st_mtime_ns, status.st_size, status.st_ino))
    except (FileNotFoundError, NotADirectoryError):
        return _Found(None)
    except OSError:
        return _Found(None, f"The {what} beside the run cannot be read.")
    return told


@lru_cache(maxsize=64)
def _read(
    what: str, model: str, path: Path, read: Callable[[Mapping[str, Any]], T], _seen: tuple[int, ...]
) -> _Found[T]:
    """Read once for each state of the file: a report of many films is large."""
    try:
        content = json.loads(path.read_text("utf-8"))
        version = content["version"] if what == "audit" else content["facts"]["version"]
        told = read(content)
    except _BROKEN:
        return _Found(None, f"The {what} beside the run is damaged, or of an older medgrape.")
    if version != model:
        return _Found(None, f"The {what} beside the run is about another model, or the run before it was changed.")
    return _Found(told)


def _report(told: Mapping[str, Any]) -> ReportTold:
    known, checks = told["classification"], told["interaction"]
    facts: Mapping[str, Any] = told["facts"]
    same = {name: told[name] for name in ("split", "data_set", "films", "known_films", "headline", "warnings")}
    return ReportTold.model_validate(
        same
        | {
            "its_own": facts["trained on this data set"],
            "classification": known | {"macro_f1": _share(known["macro_f1"], known["interval"])},
            "pointing": _pointing(told["localisation"]["per_pair"]),
            "concepts": [
                {"name": one["name"], "title": one["title"], "pointing": _pointing(one["pointing"])}
                for one in told["localisation"]["concepts"]
            ],
            "safety": None if checks is None else _safety(checks),
        }
    )


def _share(value: object, interval: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"value": value, **({"low": None, "high": None} if interval is None else interval)}


def _rate(rate: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if rate is None else _share(rate["share"], rate["interval"])


def _pointing(told: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if told is None:
        return None
    return {"pairs": told["count"], "mean": _rate(told["mean"]), "chance": told["chance"], "fixed": told["fixed"]}


def _safety(told: Mapping[str, Any]) -> dict[str, Any]:
    checks = {
        one["name"]: {"title": one["title"]}
        | {name: _rate(one[name]) for name in ("caught", "false_alarms", "balanced")}
        for one in told["checks"]
    }
    own = next(checks[name] for name in _CHECKS if name in checks)
    return {"boxes": told["boxes"], "own": own, "majority": checks.get("majority")}


def _audit(told: Mapping[str, Any]) -> AuditTold:
    tables = [{"title": one["title"], "groups": [_group(group) for group in one["groups"]]} for one in told["tables"]]
    return AuditTold.model_validate({**told, "whole": _group(told["whole"]), "tables": tables})


def _group(told: Mapping[str, Any]) -> dict[str, Any]:
    return {**told, "figures": [_figure(one) for one in told["figures"]]}


def _figure(told: Mapping[str, Any]) -> dict[str, Any]:
    gap = told["gap"] or {"rest": None, "flagged": False, "still_flagged": False}
    marks = {name: gap[name] for name in ("rest", "flagged", "still_flagged")}
    return {**told, **_share(told["value"], told["interval"]), **marks}
