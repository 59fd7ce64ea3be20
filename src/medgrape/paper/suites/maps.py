"""Tables and pictures of where methods look: finding by finding, faithfulness, geometry of prototypes, films."""

from typing import Any

import numpy as np

from medgrape.evaluation.statistics import Comparison, compare
from medgrape.paper.jobs import PaperJob, Role
from medgrape.paper.recipes import fixed_recipes
from medgrape.paper.results import Results, mean_of_sums, sums_by_patient
from medgrape.paper.suites.base import NOT_MEASURED, number, suite
from medgrape.paper.suites.plots import curves_plot, histogram_plot
from medgrape.paper.tables import Cell, Column, Line, Table, without_sd

METHODS = ("black-box", "cbm", "pip-net", "csr", "grape", "ours")
PICTURED = ("black-box", "cbm", "pip-net", "csr", "end-to-end", "grape", "ours")


@suite("pointing", "tab:pg_perconcept", needs=lambda r: r.jobs("films", "grape", "ours"))
def pointing(results: Results) -> Table:
    """The pointing game for each finding."""
    columns = (
        Column("count", "Pairs"), Column("hits", "Hits"), Column("mean", "GRAPE, mean map", "higher"),
        Column("ours", "medgrape's recipe", "higher"), Column("chance", "a random point"),
        Column("fixed", "one fixed point"),
    )  # fmt: skip
    titles = {f"concept.{concept.name}": concept.title for concept in results.data["first"].concepts}
    titles |= {"pair": "all, per film and finding", "film": "all, per film"}
    lines = []
    for key, title in titles.items():
        cells: dict[str, Cell] = {
            figure: results.value("grape", f"pointing.{key}.{figure}", whole=figure in ("count", "hits"))
            for figure in ("count", "hits", "mean", "chance", "fixed")
        }
        cells["ours"] = results.value("ours", f"pointing.{key}.mean")
        cells |= {figure: without_sd(cells[figure]) for figure in ("chance", "fixed")}  # the same with every seed
        if cells["count"] is not None:
            lines.append(Line(title, cells, key.removeprefix("concept.")))
    mean, fixed, ours = (number(lines[-2], key) if lines else None for key in ("mean", "fixed", "ours"))
    reading = "Not measured: no test film has a box, or the job is not done yet."
    if mean is not None:
        others = ["no known share" if share is None else f"{share:.3f}" for share in (ours, fixed)]
        reading = f"The paper's recipe points at {mean:.3f} of the pairs, medgrape's at {others[0]}; "
        reading += f"one fixed point for each finding at {others[1]}."
    notes = ("Random and fixed points look at no film; hits are means over the seeds.",)
    return Table("Pointing, finding by finding", columns, tuple(lines), reading, notes=notes)


@suite("faithfulness", "tab:faithfulness", needs=lambda r: r.jobs("faithfulness", *METHODS))
def faithfulness(results: Results) -> Table:
    """Insertion and deletion AUC of every method."""
    columns = (
        Column("own.deletion", "Deletion AUC", "lower"), Column("random.deletion", "in random order"),
        Column("own.insertion", "Insertion AUC", "higher"), Column("random.insertion", "in random order"),
    )  # fmt: skip
    titles = {name: fixed_recipes()[name].title for name in METHODS}
    lines = []
    for name, title in titles.items():
        cells = {column.key: results.value(name, column.key, kind="faithfulness") for column in columns}
        lines.append(Line(title, cells, name, compared=_against_random(results, name)))
    compared = {line.title: line.compared["own.deletion"] for line in lines if "own.deletion" in line.compared}
    better = [title for title, against in compared.items() if against.interval and against.interval.high < 0]
    reading = NOT_MEASURED
    if compared:
        reading = f"Deletion surely below that of a random order of patches: {', '.join(better) or 'no method'}."
    by_method = [
        (title, figures) for name, title in titles.items() for figures in results.figures("faithfulness", name)[:1]
    ]
    films = by_method[0][1]["films"] if by_method else 0
    note = f"{films} test films. A random order of patches stands beside each: what a map must beat."
    notes, plots = (note, "Curves: the first seed."), curves_plot(by_method)
    return Table("Insertion and deletion", columns, tuple(lines), reading, "a random order", notes, plots)


def _against_random(results: Results, name: str) -> dict[str, Comparison]:
    """Compare a method's order of pixels with a random order, patient by patient."""
    by_seed = [figures["by_film"] for figures in results.figures("faithfulness", name)]
    comparisons: dict[str, Comparison] = {}
    for kind in ("deletion", "insertion") if by_seed else ():
        own, random = (
            np.stack([sums_by_patient(films[f"{order}.{kind}"], films["patients"]) for films in by_seed])
            for order in ("own", "random")
        )
        comparisons[f"own.{kind}"] = compare(own, random, mean_of_sums)
    return comparisons


@suite(
    "dispersion",
    "fig:proto_dispersion",
    needs=lambda r: (*r.jobs("films", "grape-text", "grape", "ours"), *r.jobs("films", "grape-text", role="second")),
)
def dispersion(results: Results) -> Table:
    """Cosines of prototypes with their text and with each other."""
    columns = (
        Column("cosine.anchor", "Prototype and its text"), Column("cosine.within", "Within a finding"),
        Column("cosine.between", "Between findings"),
    )  # fmt: skip
    rows: list[tuple[str, Role]] = [("grape-text", "first"), ("grape", "first"), ("ours", "first")]
    rows += [("grape-text", "second")] if "second" in results.data else []
    lines, first_seeds = [], []
    for name, role in rows:
        title = f"{fixed_recipes()[name].title}, {role} set"
        cells = {column.key: results.value(name, column.key, role) for column in columns}
        lines.append(Line(title, cells, f"{role}-{name}"))
        first_seeds += [(title, figures) for figures in results.figures("films", name, role)[:1]]
    paper, ours = number(lines[0], "cosine.within"), number(lines[2], "cosine.within")
    reading = NOT_MEASURED
    if paper is not None and ours is not None:
        reading = (
            f"With the paper's alignment loss, prototypes of one finding have a mean cosine of {paper:.3f}; with "
            f"medgrape's recipe {ours:.3f}. 1: they are one vector."
        )
    notes, plots = ("Histograms: the first seed.",), histogram_plot(first_seeds)
    return Table("Geometry of prototypes", columns, tuple(lines), reading, notes=notes, plots=plots)


def picture_job(results: Results) -> PaperJob:
    """Return the job that draws the models of the first seed."""
    return results.single_job("pictures", "ours", *PICTURED)


@suite("pictures", "fig:simmaps_cmp_panel", "fig:pg_dots", "fig:interaction", needs=lambda r: (picture_job(r),))
def pictures(results: Results) -> Table:
    """Example films: maps of all methods, highest points, a correction, a warning."""
    figures: dict[str, Any] = (picture_job(results).load_result() or {"figures": {}})["figures"]
    folder = results.workspace.out / "pictures"
    existing = tuple(picture for picture in figures.get("pictures", []) if (folder / picture["file"]).is_file())
    rule = "Films evenly spaced over the test films with a box; the warning is the first that a wrong claim calls up."
    reading = figures.get("why") or (rule if existing else "Not drawn yet, or the pictures were removed.")
    return Table("Films", (), (), reading, pictures=existing)
