"""A model card, written from a run and from the report and audit beside it; no figure on it comes from elsewhere."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medgrape.errors import UserError, first_line
from medgrape.runs.checkpoint import LoadedRun, Run, load_run
from medgrape.runs.exported import NOTICE
from medgrape.runs.hub.download import NEEDED, refuse_unnameable
from medgrape.runs.hub.figures import Measured, measured_beside
from medgrape.runs.manifest import RunError, version_of
from medgrape.runs.plugin_record import Records, needed_parts

TAKEN_OUT = "Pictures and names of training films were taken out to publish it."
UNNAMED = "Names of films or patients that are never shown were taken out of its settings to publish it."


def changed(run: Run) -> bool:
    """Whether what its training found may be of another model than this one."""
    return any(change.what not in (TAKEN_OUT, UNNAMED) for change in run.changes)


TAGS = (
    "chest-x-ray",
    "concept-based",
    "explainability",
    "medical",
    "not-a-medical-device",
    "prototypes",
    "research-only",
)
TASK = "image-classification"


def front_matter(loaded: LoadedRun, measured: Measured, name: str, licence: str) -> str:
    """The lines between the dashes. Every figure of ours is followed by what the trivial answer gets."""
    try:
        from huggingface_hub import EvalResult, ModelCardData
    except ModuleNotFoundError as missing:
        raise RunError(f"A model card for a hub needs one more package: {NEEDED}.") from missing
    results = []
    if measured.report is not None and measured.tested:  # hubs rank models by these, and show no warning
        data_set, split = measured.report["data_set"], measured.report["split"]
        told = [(row.kind, row.name, row.value) for row in measured.rows]
        told += [
            (row.kind, f"{row.name}, by the trivial answer: {row.trivial}", row.trivial_value)
            for row in measured.rows
            if row.trivial_value is not None
        ]
        results = [
            EvalResult(
                task_type=TASK, dataset_type="private", dataset_name=data_set, dataset_split=split, metric_type=kind,
                metric_name=title, metric_value=round(value, 4), verified=False,
            )
            for kind, title, value in dict.fromkeys(told)
        ]  # fmt: skip
    data = ModelCardData(
        library_name="medgrape",
        license=licence,
        pipeline_tag=TASK,
        tags=[*TAGS, *loaded.run.concepts.names],
        model_name=name if results else None,
        eval_results=results or None,
    )
    return str(data.to_yaml())


FEW = 100
"""Test patients below which figures are called rough: an interval of a share is then about 20 points wide."""
_DRAWN = "phantom"
_WHEN = {"text encoder": "a concept is added to it (it can be loaded without)"}


def limits(loaded: LoadedRun, measured: Measured) -> list[str]:
    """One sentence for each."""
    told = [*_of_data(loaded), *_of_training(loaded), *_of_report(loaded.run, measured), *_of_audit(measured)]
    return [*told, *_of_parts(loaded.run.own_parts)]


def _of_data(loaded: LoadedRun) -> list[str]:
    data, name = loaded.run.metrics.get("data"), loaded.manifest.dataset["name"]
    learnt = "Before it was changed (see below), it learnt from" if changed(loaded.run) else "It learnt from"
    if data is None:
        return [
            f"{learnt} {loaded.run.metrics['films']:,} films of “{name}”; the run does not say whether these "
            "are real, nor how many patients they are of."
        ]
    films = data["splits"]["train"]
    size = f"{films['films']:,} films of {films['patients']:,} patients"
    if data["source"] == _DRAWN:
        return [
            f"{learnt} {size} that were **drawn by a program**: no real film was among them. It shows how the "
            "software works, and knows nothing about patients."
        ]
    whose = f"of the data set “{name}”" if changed(loaded.run) else f"all from one data set (“{name}”)"
    return [
        f"{learnt} {size}, {whose}. On films of other hospitals, machines, countries or "
        "ages it may do worse; measure that there before any use."
    ]


def _of_training(loaded: LoadedRun) -> list[str]:
    run, metrics = loaded.run, loaded.run.metrics
    told = [
        f"No training film shows {run.concepts[name].title}: its prototypes have learnt nothing."
        for name in metrics["untrained_concepts"]
    ]
    if run.safety is None:
        why = metrics.get("safety_not_calibrated", "Nobody asked for it.")
        told.append(f"The safety check is not calibrated, so it promises no rate of false alarms. {why}")
    if str(metrics["text_encoder"]).startswith("lexical"):
        told.append(
            "Descriptions are compared by their spelling (text encoder “lexical”), not by their meaning: a concept "
            "added by a sentence alone begins as little more than a name."
        )
    if metrics["films_refused"]:
        told.append(f"{metrics['films_refused']:,} films could not be read, and taught it nothing.")
    return told


def _of_parts(parts: Records) -> list[str]:
    """Whose code a reader would run."""
    return [
        f"Its {kind} “{part['name']}” is code of {part['distribution']} {part['version']}, a package of somebody else, "
        f"which is executed whenever {_WHEN.get(kind, 'it is loaded')}. Nobody of medgrape has looked at it: install "
        "it from where its makers say, as whatever goes by that name elsewhere may be another, and only if you trust "
        "them."
        for kind, part in parts.items()
    ]


def _of_report(run: Run, measured: Measured) -> list[str]:
    report = measured.report
    if report is None:
        which = "the model before it was changed, on " if changed(run) else ""
        return [
            "Nobody has tested exactly this model, or the report does not lie beside the run. The figures below are of "
            f"{which}the validation films that it was chosen by, and so flatter it."
        ]
    own = [] if report["interaction"] is None else report["interaction"]["warnings"]  # said above, from the run
    told = [str(warning) for warning in report["warnings"] if warning not in own]
    patients = report["films"]["patients"]
    if patients < FEW:
        told.append(f"It was tested on {patients} patients: every figure is rough, as its interval says.")
    if measured.tested and report["facts"]["trained on this data set"]:
        told.append("It was tested on other patients of the data set that it learnt from, not on another hospital's.")
    return [*told, *_weak(report)]


def _weak(report: Mapping[str, Any]) -> list[str]:
    """Concepts whose maps point no better than a point that looks at no film."""
    weak = [
        one["title"]
        for one in report["localisation"]["concepts"]
        if one["pointing"] is not None and one["pointing"]["mean"]["share"] <= one["pointing"]["fixed"]
    ]
    if not weak:
        return []
    return [f"Its maps point at {' and '.join(weak)} no better than one fixed point on every film."]


def _of_audit(measured: Measured) -> list[str]:
    if measured.audit is None:
        return ["How it does for women and men, young and old was not looked at (medgrape audit)."]
    return [str(sentence) for sentence in measured.audit["headline"]]


CARD = "README.md"
"""Where a hub looks for it."""
_EXTRAS = {"efficientnet-lite0": "lite", "transformers": "text"}
"""What else of medgrape a backbone of each kind takes."""


def card_of(run: Path, *, repository: str = "", licence: str = "other", removed: bool = False) -> str:
    """The card of the run in a folder; ``removed``: it is published without its pictures of training films."""
    return written(load_run(run), measured_beside(run), repository=repository, licence=licence, removed=removed)


def written(
    loaded: LoadedRun, measured: Measured, *, repository: str, licence: str, removed: bool, unnamed: bool = False
) -> str:
    """Head and text; ``unnamed``: it is published without the names of whom it never shows."""
    from jinja2 import UndefinedError  # slow to import

    if repository:
        refuse_unnameable(repository)
    try:
        return _rendered(loaded, measured, repository=repository, licence=licence, removed=removed, unnamed=unnamed)
    except UserError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, UndefinedError) as error:
        raise RunError(
            f"No card can be written of {loaded.folder}: its metrics.json, or the report beside it, lacks something or "
            f"has it in another form ({type(error).__name__}: {first_line(error)}); train or evaluate it again."
        ) from error


def _rendered(
    loaded: LoadedRun, measured: Measured, *, repository: str, licence: str, removed: bool, unnamed: bool
) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # slow to import

    environment = Environment(  # Markdown, which a hub cleans before it shows it
        loader=PackageLoader("medgrape.runs.hub"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,  # noqa: S701
    )  # fmt: skip
    environment.filters["cell"] = _cell
    name = repository.rpartition("/")[2] or loaded.folder.name
    return environment.get_template("card.md").render(
        head=front_matter(loaded, measured, name, licence).strip(),
        name=name,
        repository=repository,
        licence=licence,
        notice=NOTICE,
        run=loaded.run,
        manifest=loaded.manifest,
        version=version_of(loaded.folder),
        data=loaded.run.metrics.get("data"),
        stages=_stages(loaded.run),
        measured=measured,
        changed=changed(loaded.run),
        limits=limits(loaded, measured),
        pictures=0 if removed else len(loaded.run.exemplars.films),
        removed=removed,
        unnamed=unnamed,
        installed=_installed(loaded.run),
        parts=loaded.run.own_parts,
    )


def _installed(run: Run) -> str:
    """What pip is told to install: this package and, in their versions, the packages that reading needs."""
    extras = ",".join(filter(None, ("hub", _EXTRAS.get(run.grape.backbone.blueprint.kind))))
    others = {f"{part['distribution']}=={part['version']}" for part in needed_parts(run.own_parts)}
    return " ".join([f'"medgrape[{extras}]"', *(shlex.quote(one) for one in sorted(others))])


def _stages(run: Run) -> list[dict[str, Any]]:
    """What validation said of each stage, with the trivial answer's figure where there is one."""
    metrics, trivial = run.metrics, {"mean AUC": "0.500"}
    if "data" in metrics:
        known = metrics["data"]["trivial"]
        trivial["macro-F1"] = f"{known['macro_f1']:.3f} (always “{known['answer']}”)"
        shown = sum(count > 0 for count in metrics["data"]["splits"]["val"]["concepts"].values())
        kinds = shown + run.config.stages.prototypes.background  # ordinary tissue is one more to tell apart
        trivial["balanced accuracy"] = f"{1 / max(kinds, 1):.3f} (one answer for {kinds} kinds of tissue)"
    return [
        {"stage": stage, "trivial": trivial.get(told["figure"], "not known"), **told}
        for stage, told in metrics["validation"].items()
    ]


def _cell(text: object) -> str:
    """In a table's cell, on one line."""
    return " ".join(str(text).split()).replace("|", "\\|")
