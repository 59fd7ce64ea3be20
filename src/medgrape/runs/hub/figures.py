"""What medgrape evaluate and medgrape audit wrote beside a run, if it is about exactly this model."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medgrape.runs.manifest import audit_folder, report_folder, version_of

_SPLITS = ("test", "val")
"""In this order: what was found on test films counts more."""
_CHECKS = ("calibrated", "settings", "paper")
"""The check that a run uses is the first of these that was measured."""


@dataclass(frozen=True)
class Row:
    """One figure, with what costs nothing to get beside it."""

    name: str
    kind: str
    """As a model hub calls such figures."""
    value: float
    interval: str
    trivial: str
    trivial_value: float | None


@dataclass(frozen=True)
class Measured:
    """What there is, and what is not."""

    report: Mapping[str, Any] | None
    audit: Mapping[str, Any] | None

    @property
    def tested(self) -> bool:
        """Whether the report is of test films alone, none of which it learnt from or was chosen by."""
        return self.report is not None and self.report["split"] == _SPLITS[0] and not self.report["known_films"]

    @property
    def rows(self) -> list[Row]:
        """The main figures of the report."""
        return [] if self.report is None else [*_answers(self.report), *_pointing(self.report), *_safety(self.report)]


def measured_beside(run: Path) -> Measured:
    """Report and audit beside a run, each from test films if there is one, else from validation films."""
    version = version_of(run)
    report = _first(version, [report_folder(run, split) / "report.json" for split in _SPLITS], _version_of_report)
    audit = _first(
        version, [audit_folder(run, split) / "audit.json" for split in _SPLITS], lambda told: told["version"]
    )
    return Measured(report, audit)


def _version_of_report(told: Mapping[str, Any]) -> object:
    return told["facts"]["version"]


def _first(
    version: str, paths: list[Path], version_in: Callable[[Mapping[str, Any]], object]
) -> Mapping[str, Any] | None:
    for path in paths:
        try:
            told = json.loads(path.read_text("utf-8"))
            if version_in(told) == version:
                return dict(told)
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _answers(told: Mapping[str, Any]) -> list[Row]:
    known = told["classification"]
    trivial, answer = known["majority"], f"always “{known['majority']['answer']}”"
    rows = [
        Row(
            "Macro-F1 of the classes", "f1", known["macro_f1"], _between(known["interval"]), answer, trivial["macro_f1"]
        ),
        Row("Right answers", "accuracy", known["accuracy"], "", answer, trivial["accuracy"]),
        Row("Macro-AUC of the classes", "roc_auc", known["macro_auc"], "", "any fixed answer", 0.5),
        Row("Is a finding there? Mean AUC", "roc_auc", told["detection"]["mean_auc"], "", "any fixed answer", 0.5),
    ]
    return [row for row in rows if row.value is not None]


def _pointing(told: Mapping[str, Any]) -> list[Row]:
    found = told["localisation"]["per_pair"]
    if found is None:
        return []
    name, mean = f"Maps point into the finding ({found['count']} pairs)", found["mean"]
    return [
        Row(
            name, "pointing_game", mean["share"], _between(mean["interval"]), "one fixed point for each", found["fixed"]
        ),
        Row(name, "pointing_game", mean["share"], _between(mean["interval"]), "a random point", found["chance"]),
    ]


def _safety(told: Mapping[str, Any]) -> list[Row]:
    if told["interaction"] is None:
        return []
    checks = {one["name"]: one for one in told["interaction"]["checks"]}
    own = next(checks[name] for name in _CHECKS if name in checks)
    boxes, majority = told["interaction"]["boxes"], checks.get("majority")
    return [
        Row(
            f"Safety check: {title} ({boxes} boxes)", kind, own[key]["share"], _between(own[key]["interval"]),
            "not known" if majority is None else majority["title"],
            None if majority is None or majority[key] is None else majority[key]["share"],
        )
        for key, title, kind in (
            ("caught", "wrong claims doubted", "recall"),
            ("false_alarms", "right claims doubted", "false_positive_rate"),
        )
        if own[key] is not None
    ]  # fmt: skip


def _between(interval: Mapping[str, float] | None) -> str:
    return "" if interval is None else f"{interval['low']:.3f} to {interval['high']:.3f}"
