"""What a model cannot be trusted with, written from what its run and its report say."""

from collections.abc import Mapping
from typing import Any

from medgrape.hub.changes import changed
from medgrape.hub.measured import Measured
from medgrape.model.checkpoint import LoadedRun, Run
from medgrape.model.own_record import Records

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
