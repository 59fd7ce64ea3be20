"""The model card of a run, with the figures of its evaluation report and audit if they are of exactly this model."""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medgrape.errors import UserError, first_line
from medgrape.runs.checkpoint import LoadedRun, Run, load_run
from medgrape.runs.exported import NOTICE
from medgrape.runs.hub.download import NEEDED, refuse_unnameable
from medgrape.runs.manifest import RunError, audit_folder, needed_parts, report_folder, version_of

_SPLITS = ("test", "val")  # In order of preference
_CHECKS = ("calibrated", "settings", "paper")  # The check that a run uses is the first of these in the report
CARD = "README.md"  # The file name that hubs display
TAKEN_OUT = "Pictures and names of training films were taken out to publish it."
UNNAMED = "Names of films or patients that are never shown were taken out of its settings to publish it."
TAGS = (
    "chest-x-ray", "concept-based", "explainability", "medical", "not-a-medical-device", "prototypes", "research-only",
)  # fmt: skip
TASK = "image-classification"
FEW = 100  # Test patients below which figures are called rough: intervals are then 20 points wide
_EXTRAS = {"efficientnet-lite0": "lite", "transformers": "text"}  # The extra that each kind of backbone needs


@dataclass(frozen=True)
class Row:
    """One figure, and that of a trivial baseline."""

    name: str
    kind: str  # Name of the metric on a model hub
    value: float
    interval: str
    trivial: str
    trivial_value: float | None


@dataclass(frozen=True)
class Reports:
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

    @property
    def poorly_located(self) -> list[str]:
        """Titles of the concepts whose maps point no better than one fixed point."""
        concepts = [] if self.report is None else self.report["localisation"]["concepts"]
        located = [(concept["title"], concept["pointing"]) for concept in concepts if concept["pointing"] is not None]
        return [title for title, pointing in located if pointing["mean"]["share"] <= pointing["fixed"]]


def reports_beside(run: Path) -> Reports:
    """Read report and audit beside a run, each of test films if possible, otherwise of validation films."""
    version = version_of(run)
    report = _first(version, [report_folder(run, split) / "report.json" for split in _SPLITS], "facts", "version")
    audit = _first(version, [audit_folder(run, split) / "audit.json" for split in _SPLITS], "version")
    return Reports(report, audit)


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
    figures = (name, "pointing_game", mean["share"], _interval(mean["interval"]))
    return [
        Row(*figures, "one fixed point for each", pairs["fixed"]),
        Row(*figures, "a random point", pairs["chance"]),
    ]


def _safety(report: Mapping[str, Any]) -> Iterator[Row]:
    if report["interaction"] is None:
        return
    checks = {check["name"]: check for check in report["interaction"]["checks"]}
    used = next(checks[name] for name in _CHECKS if name in checks)
    majority = checks.get("majority", {"title": "not known"})
    for key, title, kind in (
        ("caught", "wrong claims doubted", "recall"),
        ("false_alarms", "right claims doubted", "false_positive_rate"),
    ):
        if used[key] is not None:
            name = f"Safety check: {title} ({report['interaction']['boxes']} boxes)"
            share, interval = used[key]["share"], _interval(used[key]["interval"])
            trivial_share = (majority.get(key) or {}).get("share")
            yield Row(name, kind, share, interval, majority["title"], trivial_share)


def _interval(interval: Mapping[str, float] | None) -> str:
    return "" if interval is None else f"{interval['low']:.3f} to {interval['high']:.3f}"


def card_of(run: Path, *, repository: str = "", licence: str = "other", removed: bool = False) -> str:
    """Return the card of the run in a folder; ``removed``: without its pictures of training films."""
    return render_card(load_run(run), reports_beside(run), repository=repository, licence=licence, removed=removed)


def render_card(
    loaded: LoadedRun, reports: Reports, *, repository: str, licence: str, removed: bool, unnamed: bool = False
) -> str:
    """Return front matter and text; ``unnamed``: without the names of patients who must not be shown."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, UndefinedError  # slow to import

    if repository:
        refuse_unnameable(repository)
    run = loaded.run
    environment = Environment(  # Markdown, which hubs sanitise
        loader=PackageLoader("medgrape.runs.hub"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,  # noqa: S701
    )  # fmt: skip
    environment.filters["cell"] = lambda text: " ".join(str(text).split()).replace("|", "\\|")
    name = repository.rpartition("/")[2] or loaded.folder.name
    extras = ",".join(filter(None, ("hub", _EXTRAS.get(run.grape.backbone.blueprint.kind))))
    plugins = {f"{part['distribution']}=={part['version']}" for part in needed_parts(run.plugins)}
    try:
        return environment.get_template("card.md").render(
            head=front_matter(loaded, reports, name, licence).strip(),
            name=name, repository=repository, licence=licence, notice=NOTICE, few=FEW,
            run=run, manifest=loaded.manifest, version=version_of(loaded.folder), parts=run.plugins,
            data=run.metrics.get("data"), stages=_stages(run), reports=reports,
            changed=changed(run), removed=removed, unnamed=unnamed,
            pictures=0 if removed else len(run.exemplars.films),
            installed=" ".join([f'"medgrape[{extras}]"', *map(shlex.quote, sorted(plugins))]),
        )  # fmt: skip
    except UserError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, UndefinedError) as error:
        raise RunError(
            f"No card can be written of {loaded.folder}: its metrics.json, or the report beside it, lacks something or "
            f"has it in another form ({type(error).__name__}: {first_line(error)}); train or evaluate it again."
        ) from error


def changed(run: Run) -> bool:
    """Whether the run was changed after training in a way that may change its validation figures."""
    return any(change.what not in (TAKEN_OUT, UNNAMED) for change in run.changes)


def front_matter(loaded: LoadedRun, reports: Reports, name: str, licence: str) -> str:
    """Return the YAML of the card; each figure is followed by that of the trivial baseline."""
    try:
        from huggingface_hub import EvalResult, ModelCardData
    except ModuleNotFoundError as missing:
        raise RunError(f"A model card for a hub needs one more package: {NEEDED}.") from missing
    results = []
    if reports.report is not None and reports.tested:  # hubs rank models by these, without any caveat
        figures = [(row.kind, row.name, row.value) for row in reports.rows]
        for row in reports.rows:
            if row.trivial_value is not None:
                figures.append((row.kind, f"{row.name}, by the trivial answer: {row.trivial}", row.trivial_value))
        results = [
            EvalResult(
                task_type=TASK, dataset_type="private", dataset_name=reports.report["data_set"],
                dataset_split=reports.report["split"], metric_type=kind, metric_name=title,
                metric_value=round(value, 4), verified=False,
            )
            for kind, title, value in dict.fromkeys(figures)
        ]  # fmt: skip
    data = ModelCardData(
        library_name="medgrape", license=licence, pipeline_tag=TASK, tags=[*TAGS, *loaded.run.concepts.names],
        model_name=name if results else None, eval_results=results or None,
    )  # fmt: skip
    return str(data.to_yaml())


def _stages(run: Run) -> list[dict[str, Any]]:
    """Return the validation figure of each stage, and that of the trivial baseline if there is one."""
    metrics, trivial = run.metrics, {"mean AUC": "0.500"}
    if "data" in metrics:
        majority = metrics["data"]["trivial"]
        trivial["macro-F1"] = f"{majority['macro_f1']:.3f} (always “{majority['answer']}”)"
        present = sum(count > 0 for count in metrics["data"]["splits"]["val"]["concepts"].values())
        kinds = present + run.config.stages.prototypes.background  # normal tissue is one more kind
        trivial["balanced accuracy"] = f"{1 / max(kinds, 1):.3f} (one answer for {kinds} kinds of tissue)"
    return [
        {"stage": stage, "trivial": trivial.get(result["figure"], "not known"), **result}
        for stage, result in metrics["validation"].items()
    ]
