"""``medgrape evaluate``: measure a run on the films of a split."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from medgrape.cli.console import note, print_result, print_warnings, table, track
from medgrape.cli.options import Json, ModelArgument, outside_runs

if TYPE_CHECKING:
    from medgrape.evaluation.report import Evaluation, ReportFiles


def evaluate(
    run: ModelArgument,
    data: Annotated[Path, Option(help="Prepared data set with the classes and concepts of the run.")],
    out: Annotated[Path | None, Option(help="Folder for report.json and report.html. (default: RUN-SPLIT)")] = None,
    split: Annotated[str, Option(help="Split to read: train, val or test.")] = "test",
    as_json: Json = False,
) -> None:
    """Measure a run on the films of a split, with a trivial baseline beside every figure.

    Example: medgrape evaluate runs/demo --data demo/data
    """
    from medgrape.baselines.methods import load_any
    from medgrape.evaluation.evaluate import evaluate_run
    from medgrape.runs.manifest import report_folder

    loaded = load_any(run)
    folder = outside_runs(out or report_folder(run, split))
    evaluation, files = evaluate_run(loaded, data, folder, split=split, track=track)
    print_result(evaluation, lambda evaluation: print_evaluation(evaluation, files), as_json=as_json)


def print_evaluation(evaluation: "Evaluation", files: "ReportFiles") -> None:
    """Print the main figures; the report has all of them."""
    report = evaluation.to_json()
    for sentence in report["headline"]:
        note(sentence)
    table(
        f"Classes, {report['films']['read']:,} {report['split']} films",
        ("class", "films", "precision", "recall", "F1", "AUC"),
        [
            (row["name"], row["support"], row["precision"], row["recall"], row["f1"], row["auc"])
            for row in report["classification"]["classes"]
        ],
    )
    detection_auc = {row["name"]: row["auc"] for row in report["detection"]["concepts"]}
    table(
        "Concepts: detection, and share of film-concept pairs whose highest point lies in a box",
        ("concept", "AUC", "pairs", "mean map", "max map", "CAM", "fixed point", "random point"),
        [
            (row["name"], detection_auc[row["name"]], *_pointing_cells(row["pointing"]))
            for row in report["localisation"]["concepts"]
        ],
    )
    if report["interaction"] is not None:
        _print_interaction(report["interaction"])
    error, dispersion = report["calibration"]["expected_error"], report["dispersion"]
    note(
        f"Calibration error {_format(error)}; mean cosine between prototypes of one concept "
        f"{_format(dispersion['within'])} (the paper's: {dispersion['paper_collapse']:.2f})."
    )
    print_warnings(report["warnings"])
    note(f"report: {files.html}")


def _pointing_cells(pointing: dict[str, Any] | None) -> tuple[object, ...]:
    if pointing is None:
        return 0, *[None] * 5
    shares = (_share(pointing[name]) for name in ("mean", "maximum", "cam"))
    return pointing["count"], *shares, pointing["fixed"], pointing["chance"]


def _print_interaction(interaction: dict[str, Any]) -> None:
    table(
        f"Safety checks on {interaction['boxes']:,} boxes: warnings at wrong claims (caught) and at right ones (false "
        "alarms)",
        ("check", "caught", "false alarms", "balanced over claimed concepts"),
        [
            (check["title"], *(_share(check[name]) for name in ("caught", "false_alarms", "balanced")))
            for check in interaction["checks"]
        ],
    )
    telling_apart = interaction["telling_apart"]
    if telling_apart["pairs"]:
        table(
            "Do the maps inside a box show which finding it is? (AUC of the difference between the mean maps)",
            ("finding", "against", "its boxes", "other boxes", "AUC", "95 %", "chance"),
            [
                (
                    pair["title"], pair["against_title"], pair["boxes"], pair["other_boxes"], pair["auc"],
                    pair["interval"] and "{low:.3f} to {high:.3f}".format(**pair["interval"]), telling_apart["chance"],
                )
                for pair in telling_apart["pairs"]
            ],
        )  # fmt: skip


def _share(rate: dict[str, Any] | None) -> float | None:
    return None if rate is None else rate["share"]


def _format(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
