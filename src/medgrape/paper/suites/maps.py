"""Tables and pictures of where methods look: finding by finding, faithfulness, geometry of prototypes, films."""

from dataclasses import replace
from typing import Any

import numpy as np

from medgrape.evaluation.statistics import Comparison, compare
from medgrape.paper.jobs import Job, Role
from medgrape.paper.recipes import fixed_recipes
from medgrape.paper.results import Results, mean_of_sums, sums_by_patient
from medgrape.paper.suites.base import Row, Suite, corrected, number, published
from medgrape.paper.suites.plots import curves_plot, histogram_plot
from medgrape.paper.tables import Cell, Column, Line, Table, Value

METHODS = ("black-box", "cbm", "pip-net", "csr", "grape", "ours")
PICTURED = ("black-box", "cbm", "pip-net", "csr", "end-to-end", "grape", "ours")


def pointing(results: Results) -> Table:
    """The pointing game, finding by finding."""
    columns = (
        Column("count", "Pairs"),
        Column("hits", "Hits"),
        Column("mean", "GRAPE, mean map", "higher"),
        Column("ours", "medgrape's recipe", "higher"),
        Column("chance", "a random point"),
        Column("fixed", "one fixed point"),
    )
    names = {one.name: one.title for one in results.dataset("first").concepts}
    names |= {"pair": "all, per film and finding", "film": "all, per film"}
    lines = []
    for name, title in names.items():
        cells: dict[str, Cell] = {
            key: results.value("grape", f"pointing.{key_of(name)}.{key}", whole=key in ("count", "hits"))
            for key in ("count", "hits", "mean", "chance", "fixed")
        }
        cells["ours"] = results.value("ours", f"pointing.{key_of(name)}.mean")
        for key in ("chance", "fixed"):  # no seed has a part in these
            cells[key] = _once(cells[key])
        if cells["count"] is not None:
            lines.append(Line(title, cells, published()["pointing"].get(name, {})))
    mean, fixed, best = (number(lines[-2], key) if lines else None for key in ("mean", "fixed", "ours"))
    reading = "Not measured: no test film has a box, or the job is not done yet."
    if mean is not None:
        reading = (
            f"The paper's recipe points at {mean:.3f} of the pairs, medgrape's at {_told(best)}; one fixed point for "
            f"each finding at {_told(fixed)}."
        )
    return Table(
        "pointing",
        "Pointing, finding by finding",
        ("tab:pg_perconcept",),
        columns,
        tuple(lines),
        reading,
        notes=("Random and fixed points look at no film; hits are means over the seeds.",),
    )


def _once(cell: Cell) -> Cell:
    return replace(cell, sd=None) if isinstance(cell, Value) else cell


def key_of(name: str) -> str:
    """Under which a film's or a finding's pointing is measured."""
    return name if name in ("pair", "film") else f"concept.{name}"


def _told(value: float | None) -> str:
    return "no known share" if value is None else f"{value:.3f}"


def faithfulness(results: Results) -> Table:
    """Insertion and deletion."""
    columns = (
        Column("own.deletion", "Deletion AUC", "lower"),
        Column("random.deletion", "in random order"),
        Column("own.insertion", "Insertion AUC", "higher"),
        Column("random.insertion", "in random order"),
    )
    lines = corrected(
        [
            Line(
                Row(name).told,
                {column.key: results.value(name, column.key, kind="faithfulness") for column in columns},
                published()["faithfulness"].get(name, {}),
                compared=_against_random(results, name),
            )
            for name in METHODS
        ]
    )
    measured = [line for line in lines if "own.deletion" in line.compared]
    better = [line.title for line in measured if _surely_below(line.compared["own.deletion"])]
    reading = "Not measured yet."
    if measured:
        reading = f"Deletion surely below that of a random order of patches: {', '.join(better) or 'no method'}."
    found = [(Row(name).told, told[0]) for name in METHODS if (told := results.found("faithfulness", name))]
    films = found[0][1]["films"] if found else 0
    notes = (
        f"{films} test films. A random order of patches stands beside each: what a map must beat.",
        "Curves: the first seed.",
    )
    return Table(
        "faithfulness",
        "Insertion and deletion",
        ("tab:faithfulness",),
        columns,
        tuple(lines),
        reading,
        "a random order",
        notes,
        curves_plot(found),
    )


def _against_random(results: Results, name: str) -> dict[str, Comparison]:
    """A method's own order of pixels against a random one, film by film."""
    found = results.found("faithfulness", name)
    if not found:
        return {}
    told: dict[str, Comparison] = {}
    for kind in ("deletion", "insertion"):
        own, blind = (
            np.stack([sums_by_patient(one["by_film"][f"{which}.{kind}"], one["by_film"]["patients"]) for one in found])
            for which in ("own", "random")
        )
        told[f"own.{kind}"] = compare(own, blind, mean_of_sums)
    return told


def _surely_below(found: Comparison) -> bool:
    return found.interval is not None and found.interval.high < 0


def dispersion(results: Results) -> Table:
    """Are a finding's prototypes still different from each other?"""
    columns = (
        Column("cosine.anchor", "Prototype and its text"),
        Column("cosine.within", "Within a finding"),
        Column("cosine.between", "Between findings"),
    )
    rows: list[tuple[str, Role]] = [("grape-text", "first"), ("grape", "first"), ("ours", "first")]
    rows += [("grape-text", "second")] if results.has("second") else []
    lines, found = [], []
    for name, role in rows:
        title = f"{Row(name).told}, {role} set"
        cells = {column.key: results.value(name, column.key, role) for column in columns}
        lines.append(Line(title, cells, published()["dispersion"].get(f"{role}-{name}", {})))
        found += [(title, told) for told in results.found("films", name, role)[:1]]
    paper, ours = number(lines[0], "cosine.within"), number(lines[2], "cosine.within")
    reading = "Not measured yet."
    if paper is not None and ours is not None:
        reading = (
            f"With the paper's alignment loss, prototypes of one finding have a mean cosine of {paper:.3f}; with "
            f"medgrape's recipe {ours:.3f}. 1: they are one vector."
        )
    return Table(
        "dispersion",
        "Geometry of prototypes",
        ("fig:proto_dispersion",),
        columns,
        tuple(lines),
        reading,
        notes=("Histograms: the first seed.",),
        plots=histogram_plot(found),
    )


def _dispersion_jobs(results: Results) -> tuple[Job, ...]:
    return (*results.jobs("films", "grape-text", "grape", "ours"), *results.jobs("films", "grape-text", role="second"))


def picture_job(results: Results) -> Job:
    """Drawn once, with the first seed."""
    known = fixed_recipes()
    return Job("pictures", known["ours"], results.seeds[0], others=tuple(known[name] for name in PICTURED))


def pictures(results: Results) -> Table:
    """Maps side by side, points, a correction, a warning."""
    told: dict[str, Any] = results.one(picture_job(results))
    shown = [one for one in told.get("pictures", []) if (results.place.out / "pictures" / one["file"]).is_file()]
    rule = "Films evenly spaced over the test films with a box; the warning is the first that a wrong claim calls up."
    reading = told.get("why") or (rule if shown else "Not drawn yet, or the pictures were removed.")
    return Table(
        "pictures",
        "Films",
        ("fig:simmaps_cmp_panel", "fig:pg_dots", "fig:interaction"),
        (),
        (),
        reading,
        pictures=tuple(shown),
    )


SUITES = (
    Suite(
        "pointing",
        "the pointing game finding by finding",
        ("tab:pg_perconcept",),
        lambda r: r.jobs("films", "grape", "ours"),
        pointing,
    ),
    Suite(
        "faithfulness",
        "insertion and deletion AUC of every method",
        ("tab:faithfulness",),
        lambda r: r.jobs("faithfulness", *METHODS),
        faithfulness,
    ),
    Suite(
        "dispersion",
        "cosines of prototypes with their text and with each other",
        ("fig:proto_dispersion",),
        _dispersion_jobs,
        dispersion,
    ),
    Suite(
        "pictures",
        "maps of all methods, points, a correction, a warning",
        ("fig:simmaps_cmp_panel", "fig:pg_dots", "fig:interaction"),
        lambda r: (picture_job(r),),
        pictures,
    ),
)
