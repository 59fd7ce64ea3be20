"""What medgrape evaluate and medgrape audit wrote beside a run, told if it is about exactly this model."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from medgrape.server.model_rows import model_row
from medgrape.server.models import folder_of
from medgrape.server.room import Room
from medgrape.server.schemas.evaluations import AuditTold, EvaluationTold, ReportTold

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
    from medgrape.evaluation.audit import audit_folder  # slow to import
    from medgrape.evaluation.reading import report_folder

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
