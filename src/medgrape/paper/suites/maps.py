"""Tables and pictures of where methods look: finding by finding, faithfulness, geometry of prototypes, films."""

from dataclasses import replace
from typing import Any

import numpy as np

from medgrape.evaluation.statistics import Comparison, compare
from medgrape.paper.jobs import PaperJob, Role
from medgrape.paper.results import Results, mean_of_sums, sums_by_patient
from medgrape.paper.suites.base import NOT_MEASURED, RecipeRow, corrected, number, published, suite
from medgrape.paper.suites.plots import curves_plot, histogram_plot
from medgrape.paper.tables import Cell, Column, Line, Table, Value

METHODS = ("black-box", "cbm", "pip-net", "csr", "grape", "ours")
PICTURED = ("black-box", "cbm", "pip-net", "csr", "end-to-end", "grape", "ours")


@suite("pointing", "tab:pg_perconcept", needs=lambda r: r.jobs("films", "grape", "ours"))
def pointing(results: Results) -> Table:
    """The pointing game, finding by finding."""
    columns = (
        Column("count", "Pairs"), Column("hits", "Hits"), Column("mean", "GRAPE, mean map", "higher"),
        Column("ours", "medgrape's recipe", "higher"), Column("chance", "a random point"),
        Column("fixed", "one fixed point"),
    )  # fmt: skip
    titles = {f"concept.{concept.name}": concept.title for concept in results.dataset("first").concepts}
    titles |= {"pair": "all, per film and finding", "film": "all, per film"}
    lines = []
    for key, title in titles.items():
        cells: dict[str, Cell] = {
            figure: results.value("grape", f"pointing.{key}.{figure}", whole=figure in ("count", "hits"))
            for figure in ("count", "hits", "mean", "chance", "fixed")
        }
        cells["ours"] = results.value("ours", f"pointing.{key}.mean")
        for figure in ("chance", "fixed"):  # these do not depend on the seed
            cell = cells[figure]
            cells[figure] = replace(cell, sd=None) if isinstance(cell, Value) else cell
        if cells["count"] is not None:
            lines.append(Line(title, cells, published()["pointing"].get(key.removeprefix("concept."), {})))
    mean, fixed, ours = (number(lines[-2], key) if lines else None for key in ("mean", "fixed", "ours"))
    reading = "Not measured: no test film has a box, or the job is not done yet."
    if mean is not None:
        reading = (
            f"The paper's recipe points at {mean:.3f} of the pairs, medgrape's at {_share(ours)}; one fixed point for "
            f"each finding at {_share(fixed)}."
        )
    notes = ("Random and fixed points look at no film; hits are means over the seeds.",)
    return Table("Pointing, finding by finding", columns, tuple(lines), reading, notes=notes)


def _share(value: float | None) -> str:
    return "no known share" if value is None else f"{value:.3f}"


@suite("faithfulness", "tab:faithfulness", needs=lambda r: r.jobs("faithfulness", *METHODS))
def faithfulness(results: Results) -> Table:
    """Insertion and deletion AUC of every method."""
    columns = (
        Column("own.deletion", "Deletion AUC", "lower"), Column("random.deletion", "in random order"),
        Column("own.insertion", "Insertion AUC", "higher"), Column("random.insertion", "in random order"),
    )  # fmt: skip
    lines = corrected(
        [
            Line(
                RecipeRow(name).title,
                {column.key: results.value(name, column.key, kind="faithfulness") for column in columns},
                published()["faithfulness"].get(name, {}),
                compared=_against_random(results, name),
            )
            for name in METHODS
        ]
    )
    compared = {line.title: line.compared["own.deletion"] for line in lines if "own.deletion" in line.compared}
    better = [title for title, found in compared.items() if found.interval is not None and found.interval.high < 0]
    reading = NOT_MEASURED
    if compared:
        reading = f"Deletion surely below that of a random order of patches: {', '.join(better) or 'no method'}."
    by_method = [
        (RecipeRow(name).title, found[0]) for name in METHODS if (found := results.found("faithfulness", name))
    ]
    films = by_method[0][1]["films"] if by_method else 0
    notes = (
        f"{films} test films. A random order of patches stands beside each: what a map must beat.",
        "Curves: the first seed.",
    )
    plots = curves_plot(by_method)
    return Table("Insertion and deletion", columns, tuple(lines), reading, "a random order", notes, plots)


def _against_random(results: Results, name: str) -> dict[str, Comparison]:
    """A method's order of pixels against a random order, patient by patient."""
    found = [figures["by_film"] for figures in results.found("faithfulness", name)]
    if not found:
        return {}
    comparisons: dict[str, Comparison] = {}
    for kind in ("deletion", "insertion"):
        own, random = (
            np.stack([sums_by_patient(films[f"{order}.{kind}"], films["patients"]) for films in found])
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
    rows += [("grape-text", "second")] if results.has("second") else []
    lines, first_seeds = [], []
    for name, role in rows:
        title = f"{RecipeRow(name).title}, {role} set"
        cells = {column.key: results.value(name, column.key, role) for column in columns}
        lines.append(Line(title, cells, published()["dispersion"].get(f"{role}-{name}", {})))
        first_seeds += [(title, figures) for figures in results.found("films", name, role)[:1]]
    paper, ours = number(lines[0], "cosine.within"), number(lines[2], "cosine.within")
    reading = NOT_MEASURED
    if paper is not None and ours is not None:
        reading = (
            f"With the paper's alignment loss, prototypes of one finding have a mean cosine of {paper:.3f}; with "
            f"medgrape's recipe {ours:.3f}. 1: they are one vector."
        )
    notes = ("Histograms: the first seed.",)
    plots = histogram_plot(first_seeds)
    return Table("Geometry of prototypes", columns, tuple(lines), reading, notes=notes, plots=plots)


def picture_job(results: Results) -> PaperJob:
    """The models of the first seed, drawn once."""
    return results.single_job("pictures", "ours", *PICTURED)


@suite("pictures", "fig:simmaps_cmp_panel", "fig:pg_dots", "fig:interaction", needs=lambda r: (picture_job(r),))
def pictures(results: Results) -> Table:
    """Films: maps of all methods, points, a correction, a warning."""
    found = picture_job(results).found()
    figures: dict[str, Any] = {} if found is None else found["figures"]
    folder = results.workspace.out / "pictures"
    there = tuple(picture for picture in figures.get("pictures", []) if (folder / picture["file"]).is_file())
    rule = "Films evenly spaced over the test films with a box; the warning is the first that a wrong claim calls up."
    reading = figures.get("why") or (rule if there else "Not drawn yet, or the pictures were removed.")
    return Table("Films", (), (), reading, pictures=there)
