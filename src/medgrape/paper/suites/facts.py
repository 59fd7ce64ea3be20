"""Tables of facts: how long a prediction takes, what others published, which settings were used."""

import tomllib
from pathlib import Path
from typing import Any

from medgrape.model.heads.base import ATTENTION_HEADS, HIDDEN
from medgrape.paper.jobs import PaperJob, Role
from medgrape.paper.measures import BATCHES
from medgrape.paper.results import Results
from medgrape.paper.suites.base import NOT_MEASURED, films, published, suite
from medgrape.paper.tables import Cell, Column, Line, Table


def latency_job(results: Results) -> PaperJob:
    """Return the job that times the models of the first seed."""
    return results.single_job("latency", "grape", "csr")


@suite("latency", "tab:speed", needs=lambda r: (latency_job(r),))
def latency(results: Results) -> Table:
    """Time of a prediction with the graph head and with the linear head."""
    columns = (
        Column("mean", "Mean, ms", "lower"), Column("sd", "SD, ms"), Column("p95", "P95, ms", "lower"),
        Column("film", "µs a film", "lower"), Column("overhead", "Overhead", "lower"),
    )  # fmt: skip
    result = latency_job(results).load_result()
    lines, reading, where = [], NOT_MEASURED, "a CPU"
    if result is not None:
        figures = result["figures"]
        for batch in BATCHES:
            for head in ("linear", "graph"):
                cells: dict[str, Cell] = {
                    key: f"{figures[f'{batch}.{head}.{key}']:.2f}" for key in ("mean", "sd", "p95")
                }
                cells["film"] = f"{figures[f'{batch}.{head}.film']:,.0f}"
                cells["overhead"] = f"{figures[f'{batch}.overhead']:+.1%}" if head == "graph" else "–"
                lines.append(Line(f"batch {batch}, {head} head", cells, f"{batch}-{head}"))
        costs = ", ".join(f"{figures[f'{batch}.overhead']:+.1%} at batch {batch}" for batch in BATCHES)
        reading = f"The graph head costs {costs}, of medians; the paper's cost +17 %, +101 % and +161 %."
        where = f"{figures['backbone']}, {figures['side']} pixels, {figures['threads']} threads of a CPU"
    notes = (
        f"Ours: {where}, both heads timed in turns. The paper's: one A100 in BF16. Only the ratio can be compared.",
    )
    return Table("How long a prediction takes", columns, tuple(lines), reading, notes=notes)


@suite("context", "tab:sota", needs=films("csr", "grape", "cbm", "pip-net"))
def context(results: Results) -> Table:
    """Published results of other methods, and whether they can be compared."""
    columns = (
        Column("data", "Data"), Column("figure", "Figure"), Column("value", "Published"),
        Column("ours", "Ours, on our films"), Column("comparable", "Comparable?"),
    )  # fmt: skip
    text = Path(__file__).parents[1].joinpath("context.toml").read_text("utf-8")
    lines = []
    for row in tomllib.loads(text)["published"]:
        cells: dict[str, Cell] = {key: row[key] for key in ("data", "figure", "value", "comparable")}
        role: Role = row.get("role", "first")
        cells["ours"] = results.value(row["ours"], "macro_f1", role) if "ours" in row and role in results.data else None
        lines.append(Line(row["method"], cells))
    reading = "None of these figures was measured here; films, splits and tasks differ."
    return Table("What others published", columns, tuple(lines), reading)


@suite("settings", "tab:hparams_fixed", "tab:hparams_dataset", needs=lambda _: ())
def settings(results: Results) -> Table:
    """The paper's settings, and those of these runs."""
    lines, differing = [], 0
    for key, paper in published()["settings"].items():
        value: Any = results.workspace.base.model_dump(mode="json")
        for part in key.split("."):
            value = value[part]
        lines.append(Line(key, {"value": str(value)}, key))
        differing += not _same(str(value), paper["value"])
    built = f"{HIDDEN} wide, {ATTENTION_HEADS} attention heads"
    lines.append(Line("graph head", {"value": built}, paper={"value": "64 wide, 4 attention heads"}))
    reading = f"{differing} of {len(lines)} settings differ from the paper's on TBX11K."
    return Table("Settings", (Column("value", "Value"),), tuple(lines), reading)


def _same(ours: str, paper: str) -> bool:
    """Whether two settings are equal, as numbers or as text; of several in the paper, the first counts."""
    theirs = paper.split(";")[0]
    try:
        return float(ours) == float(theirs)
    except ValueError:
        return ours == theirs
