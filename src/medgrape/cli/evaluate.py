"""``medgrape evaluate``: how good is a run, with the trivial answer beside every figure?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medgrape.cli.console import note, print_json, table, track
from medgrape.cli.options import Json, RunArgument, outside_runs

if TYPE_CHECKING:
    from medgrape.evaluation.report import Evaluation, ReportFiles


def evaluate(
    run: RunArgument,
    data: Annotated[Path, typer.Option(help="A prepared data set with its classes, and no concept that it lacks.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for report.json and report.html. [default: RUN-SPLIT, beside the run]")
    ] = None,
    split: Annotated[str, typer.Option(help="Which films: train, val or test.")] = "test",
    as_json: Json = False,
) -> None:
    """Read the films of a split and report what the model is worth.

    Example: medgrape evaluate runs/demo --data demo/data
    """
    from medgrape.baselines.methods import load_any
    from medgrape.evaluation.evaluate import evaluate_run
    from medgrape.runs.manifest import report_folder

    loaded = load_any(run)
    folder = outside_runs(out or report_folder(run, split))
    evaluation, files = evaluate_run(loaded, data, folder, split=split, track=track)
    if as_json:
        print_json(evaluation.to_json())
    else:
        print_evaluation(evaluation, files)


def print_evaluation(evaluation: "Evaluation", files: "ReportFiles") -> None:
    """The main figures; the report has all of them."""
    told = evaluation.to_json()
    for sentence in told["headline"]:
        note(sentence)
    table(
        f"Classes, {told['films']['read']:,} {told['split']} films",
        ("class", "films", "precision", "recall", "F1", "AUC"),
        [
            (c["name"], c["support"], *(_figure(c[name]) for name in ("precision", "recall", "f1", "auc")))
            for c in told["classification"]["classes"]
        ],
    )
    detected = {one["name"]: one for one in told["detection"]["concepts"]}
    table(
        "Concepts: is it there, and where? (share of film-concept pairs whose point lies in a box)",
        ("concept", "AUC", "pairs", "mean map", "max map", "CAM", "fixed point", "random point"),
        [_pointing(one, detected[one["name"]]) for one in told["localisation"]["concepts"]],
    )
    if told["interaction"] is not None:
        _print_interaction(told["interaction"])
        _print_telling_apart(told["interaction"]["telling_apart"])
    calibration = told["calibration"]
    note(
        f"Calibration error {_figure(calibration['expected_error'])}; mean cosine between prototypes of one concept "
        f"{_figure(told['dispersion']['within'])} (the paper's: {told['dispersion']['paper_collapse']:.2f})."
    )
    for warning in told["warnings"]:
        note(f"warning: {warning}")
    note(f"report: {files.html}")


def _pointing(told: dict[str, Any], detected: dict[str, Any]) -> tuple[object, ...]:
    pointing = told["pointing"]
    if pointing is None:
        return told["name"], _figure(detected["auc"]), 0, "-", "-", "-", "-", "-"
    hits = (_share(pointing[name]) for name in ("mean", "maximum", "cam"))
    blind = (_figure(pointing[name]) for name in ("fixed", "chance"))
    return told["name"], _figure(detected["auc"]), pointing["count"], *hits, *blind


def _print_interaction(told: dict[str, Any]) -> None:
    table(
        f"Safety checks on {told['boxes']:,} boxes: warnings at wrong claims (caught) and at right ones (false alarms)",
        ("check", "caught", "false alarms", "balanced over claimed concepts"),
        [
            (one["title"], *(_share(one[name]) for name in ("caught", "false_alarms", "balanced")))
            for one in told["checks"]
        ],
    )


def _print_telling_apart(told: dict[str, Any]) -> None:
    if told["pairs"]:
        table(
            "Inside a box, do the maps tell which finding it is? (AUC of the lead of its mean map)",
            ("finding", "against", "its boxes", "other boxes", "AUC", "95 %", "chance"),
            [
                (
                    one["title"], one["against_title"], one["boxes"], one["other_boxes"], _figure(one["auc"]),
                    _range(one["interval"]), _figure(told["chance"]),
                )
                for one in told["pairs"]
            ],
        )  # fmt: skip


def _range(bounds: dict[str, float] | None) -> str:
    return "-" if bounds is None else f"{bounds['low']:.3f} to {bounds['high']:.3f}"


def _share(rate: dict[str, Any] | None) -> str:
    return "-" if rate is None else _figure(rate["share"])


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
