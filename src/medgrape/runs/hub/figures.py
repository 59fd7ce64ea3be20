"""The figures of the evaluation report and the audit beside a run, if they are of exactly this model."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medgrape.runs.manifest import audit_folder, report_folder, version_of

_SPLITS = ("test", "val")
"""In order of preference."""
_CHECKS = ("calibrated", "settings", "paper")
"""In order of preference: the safety check that a run uses is the first of these in the report."""


@dataclass(frozen=True)
class Row:
    """One figure, and that of a trivial baseline."""

    name: str
    kind: str
    """Name of the metric on a model hub."""
    value: float
    interval: str
    trivial: str
    trivial_value: float | None


@dataclass(frozen=True)
class Measured:
    """The report and the audit of a run, as far as they exist."""

    report: Mapping[str, Any] | None
    audit: Mapping[str, Any] | None

    @property
    def tested(self) -> bool:
        """Whether the report is of test films only, none of which was used for training or validation."""
        return self.report is not None and self.report["split"] == _SPLITS[0] and not self.report["known_films"]

    @property
    def rows(self) -> list[Row]:
        """The main figures of the report."""
        if self.report is None:
            return []
        return [*_classification(self.report), *_pointing(self.report), *_safety(self.report)]


def measured_beside(run: Path) -> Measured:
    """Read report and audit beside a run, each of test films if possible, otherwise of validation films."""
    version = version_of(run)
    report = _first(version, [report_folder(run, split) / "report.json" for split in _SPLITS], "facts", "version")
    audit = _first(version, [audit_folder(run, split) / "audit.json" for split in _SPLITS], "version")
    return Measured(report, audit)


def _first(version: str, paths: list[Path], *keys: str) -> Mapping[str, Any] | None:
    """Return the first file whose value under ``keys`` is the version of this model."""
    for path in paths:
        try:
            value = payload = json.loads(path.read_text("utf-8"))
            for key in keys:
                value = value[key]
            if value == version:
                return dict(payload)
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _classification(report: Mapping[str, Any]) -> list[Row]:
    figures = report["classification"]
    majority, always = figures["majority"], f"always “{figures['majority']['answer']}”"
    interval = _interval(figures["interval"])
    rows = [
        Row("Macro-F1 of the classes", "f1", figures["macro_f1"], interval, always, majority["macro_f1"]),
        Row("Right answers", "accuracy", figures["accuracy"], "", always, majority["accuracy"]),
        Row("Macro-AUC of the classes", "roc_auc", figures["macro_auc"], "", "any fixed answer", 0.5),
        Row("Is a finding there? Mean AUC", "roc_auc", report["detection"]["mean_auc"], "", "any fixed answer", 0.5),
    ]
    return [row for row in rows if row.value is not None]


def _pointing(report: Mapping[str, Any]) -> list[Row]:
    pairs = report["localisation"]["per_pair"]
    if pairs is None:
        return []
    name, mean = f"Maps point into the finding ({pairs['count']} pairs)", pairs["mean"]
    baselines = (("one fixed point for each", pairs["fixed"]), ("a random point", pairs["chance"]))
    return [
        Row(name, "pointing_game", mean["share"], _interval(mean["interval"]), trivial, value)
        for trivial, value in baselines
    ]


def _safety(report: Mapping[str, Any]) -> Iterator[Row]:
    if report["interaction"] is None:
        return
    checks = {check["name"]: check for check in report["interaction"]["checks"]}
    used = next(checks[name] for name in _CHECKS if name in checks)
    majority = checks.get("majority")
    for key, title, kind in (
        ("caught", "wrong claims doubted", "recall"),
        ("false_alarms", "right claims doubted", "false_positive_rate"),
    ):
        if used[key] is not None:
            yield Row(
                f"Safety check: {title} ({report['interaction']['boxes']} boxes)",
                kind,
                used[key]["share"],
                _interval(used[key]["interval"]),
                "not known" if majority is None else majority["title"],
                None if majority is None or majority[key] is None else majority[key]["share"],
            )


def _interval(interval: Mapping[str, float] | None) -> str:
    return "" if interval is None else f"{interval['low']:.3f} to {interval['high']:.3f}"
