"""``medgrape audit``: compare the figures of a run between groups of patients."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from medgrape.cli.console import note, print_result, print_warnings, table, track
from medgrape.cli.options import Json, ModelArgument, outside_runs

if TYPE_CHECKING:
    from medgrape.evaluation.audit.audit import Audit
    from medgrape.evaluation.report import ReportFiles

_CLASS_COLUMNS = {
    "macro_f1": "macro-F1", "accuracy": "accuracy", "auc": "AUC", "overconfidence": "overconfidence", "brier": "Brier",
}  # fmt: skip
_MAP_COLUMNS = {
    "pointing": "pointing", "energy": "box energy", "deletion": "deletion", "insertion": "insertion",
    "caught": "caught", "false_alarms": "false alarms", "balance": "balance",
}  # fmt: skip


def audit(
    run: ModelArgument,
    data: Annotated[Path, Option(help="Prepared data set that states sex, age or view of its films.")],
    by: Annotated[str, Option(help="Attributes to group by: sex, age, view; sex+age: by both.")] = "sex,age,view",
    out: Annotated[Path | None, Option(help="Folder for audit.json and audit.html. (default: RUN-audit-SPLIT)")] = None,
    split: Annotated[str, Option(help="Split to read: train, val or test.")] = "test",
    faithfulness: Annotated[
        bool, Option("--faithfulness", help="Also measure insertion and deletion (slow: 115 readings per film).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare all figures of a run by sex, age and view, and flag groups that are significantly worse than the rest.

    Example: medgrape audit runs/demo --data demo/data --by sex,age,view,sex+age
    """
    from medgrape.baselines.methods import load_any
    from medgrape.evaluation.audit.audit import audit_run
    from medgrape.evaluation.audit.groups import attributes
    from medgrape.runs.manifest import audit_folder

    groups_by, loaded = attributes(by), load_any(run)
    folder = outside_runs(out or audit_folder(run, split))
    audited, files = audit_run(loaded, data, folder, groups_by, split=split, faithful=faithfulness, track=track)
    print_result(audited, lambda audited: _print_audit(audited, files), as_json=as_json)


def _print_audit(audited: "Audit", files: "ReportFiles") -> None:
    report = audited.to_json()
    for grouping in report["tables"]:
        groups = [*grouping["groups"], report["whole"]]
        films = f"{report['whole']['films']:,} {report['split']} films (* flagged, see below)"
        for title, columns in ((f"classes, {films}", _CLASS_COLUMNS), ("maps", _MAP_COLUMNS)):
            shown = [measure["name"] for measure in report["measures"] if measure["name"] in columns]
            if shown:
                rows = [_format_group(group, shown) for group in groups]
                header = ("group", "films", "patients", *(columns[name] for name in shown))
                table(f"By {grouping['title']}: {title}", header, rows)
    for sentence in (*report["headline"], *report["flagged"]):
        note(sentence)
    print_warnings(report["warnings"])
    note(f"audit: {files.html}")


def _format_group(group: dict[str, Any], measures: list[str]) -> list[object]:
    """Return the row of a group; flagged figures get a star."""
    row = [group["name"], group["films"], group["patients"]]
    figures = {figure["measure"]: figure for figure in group["figures"]}
    for figure in map(figures.__getitem__, measures):
        flagged = figure["gap"] is not None and figure["gap"]["flagged"]
        row.append("too few" if figure["too_few"] else f"{figure['value']:.3f}{'*' if flagged else ''}")
    return row
