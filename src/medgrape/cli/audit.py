"""``medgrape audit``: is a run worth the same to everybody?"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medgrape.cli.console import note, print_json, table, track
from medgrape.cli.options import Json, RunArgument, outside_runs

if TYPE_CHECKING:
    from medgrape.evaluation.audit.audit import Audit
    from medgrape.evaluation.report import ReportFiles

_CLASSES = {
    "macro_f1": "macro-F1",
    "accuracy": "right answers",
    "auc": "AUC",
    "overconfidence": "overconfidence",
    "brier": "Brier",
}
_MAPS = {
    "pointing": "pointing",
    "energy": "box energy",
    "deletion": "deletion",
    "insertion": "insertion",
    "caught": "caught",
    "false_alarms": "false alarms",
    "balance": "balance",
}
"""What fits on a line, and on a second one; the page has all."""


def audit(
    run: RunArgument,
    data: Annotated[Path, typer.Option(help="A prepared data set that tells sex, age or view of its films.")],
    by: Annotated[
        str, typer.Option(help="A table for each of sex, age and view; sex+age crosses them.")
    ] = "sex,age,view",
    out: Annotated[
        Path | None, typer.Option(help="Folder for audit.json and audit.html. [default: RUN-audit-SPLIT]")
    ] = None,
    split: Annotated[str, typer.Option(help="Which films: train, val or test.")] = "test",
    faithfulness: Annotated[
        bool,
        typer.Option(
            "--faithfulness",
            help="Also insertion and deletion: do answers rest on what the maps call important? Slow, as every film is "
            "read about 115 times: 57 in the order of its map, and as often in a random one.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Report every figure for every group of patients, and flag where one is surely worse than the rest.

    Example: medgrape audit runs/demo --data demo/data --by sex,age,view,sex+age
    """
    from medgrape.baselines.methods import load_any
    from medgrape.evaluation.audit.audit import audit_run
    from medgrape.evaluation.audit.groups import attributes
    from medgrape.runs.manifest import audit_folder

    asked, loaded = attributes(by), load_any(run)
    folder = outside_runs(out or audit_folder(run, split))
    found, files = audit_run(loaded, data, folder, asked, split=split, faithful=faithfulness, track=track)
    if as_json:
        print_json(found.to_json())
    else:
        _print_audit(found, files)


def _print_audit(found: "Audit", files: "ReportFiles") -> None:
    told = found.to_json()
    for one in told["tables"]:
        groups = (*one["groups"], told["whole"])
        title = f"By {one['title']}, {told['whole']['films']:,} {told['split']} films (* flagged, see below)"
        _print_table(title, told["measures"], groups, _CLASSES)
        _print_table(f"By {one['title']}, what its maps are worth", told["measures"], groups, _MAPS)
    for sentence in (*told["headline"], *told["flagged"]):
        note(sentence)
    for warning in told["warnings"]:
        note(f"warning: {warning}")
    note(f"audit: {files.html}")


def _print_table(
    title: str, measures: Sequence[dict[str, Any]], groups: Sequence[dict[str, Any]], shown: dict[str, str]
) -> None:
    """Those of the figures that there are; no table where there are none."""
    names = [one["name"] for one in measures if one["name"] in shown]
    if names:
        rows = [_row(group, names) for group in groups]
        table(title, ("group", "films", "patients", *(shown[name] for name in names)), rows)


def _row(group: dict[str, Any], names: list[str]) -> tuple[object, ...]:
    figures = {one["measure"]: one for one in group["figures"]}
    return group["name"], group["films"], group["patients"], *(_cell(figures[name]) for name in names)


def _cell(figure: dict[str, Any]) -> str:
    """The figure; a flagged one has a star, and a sentence below."""
    if figure["too_few"]:
        return "too few"
    flagged = figure["gap"] is not None and figure["gap"]["flagged"]
    return f"{figure['value']:.3f}{'*' if flagged else ''}"
