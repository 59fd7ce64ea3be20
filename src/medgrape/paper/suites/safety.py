"""Tables of the safety check: its lead, its gate, miscorrection rates, mean or maximum, MC-dropout, by concept."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from medgrape.paper.jobs import Job, Role
from medgrape.paper.measures.safety import ETAS, GATES, RATES
from medgrape.paper.results import Results
from medgrape.paper.suites.base import Suite, number, published
from medgrape.paper.tables import Cell, Column, Line, Table, Value, spread

CAUGHT = Column("caught", "Wrong boxes caught", "higher")
FALSE = Column("false_alarms", "False alarms", "lower")
BALANCED = Column("balanced", "Balanced over claims", "higher")
COLUMNS = (CAUGHT, FALSE, BALANCED)
NONE = "Not measured: no test box can be claimed wrongly, or the job is not done yet."


def _cells(results: Results, check: str, recipe: str, role: Role = "first") -> dict[str, Cell]:
    checks = [told.get("checks", {}).get(check, {}) for told in results.found("safety", recipe, role)]
    return {column.key: _over_seeds([one.get(column.key) for one in checks]) for column in COLUMNS}


def _over_seeds(rates: Sequence[dict[str, Any] | None]) -> Value | None:
    """Mean share, and means of the bounds of its intervals over patients."""
    known = [rate for rate in rates if rate is not None]
    value = spread([rate["share"] for rate in known])
    bounds = [rate["interval"] for rate in known if rate["interval"] is not None]
    if value is None or not bounds:
        return value
    low, high = (sum(one[end] for one in bounds) / len(bounds) for end in ("low", "high"))
    return replace(value, low=low, high=high)


def _majority(results: Results, recipe: str, role: Role = "first") -> Line:
    found = results.found("safety", recipe, role)
    names = results.dataset(role).concepts
    title = names[found[0]["commonest"]].title if found and found[0].get("commonest") else "the commonest finding"
    return Line(f"always “{title}”", _cells(results, "majority", recipe, role), trivial=True)


def _boxes(results: Results, recipe: str, role: Role = "first") -> str:
    found = results.found("safety", recipe, role)
    told = next((one for one in found if one), None)
    return "" if told is None else f"{told['boxes']} boxes of {told['patients']} patients."


def _table(suite: str, title: str, labels: tuple[str, ...], lines: Sequence[Line], note: str) -> Table:
    found = [
        (value, line.title) for line in lines if (value := number(line, BALANCED.key)) is not None and not line.trivial
    ]
    reading = NONE
    if found:
        (low, _), (high, best) = min(found), max(found)
        told = f"Balance {high:.3f} ({best})" if len(found) == 1 else f"Balance from {low:.3f} to {high:.3f} ({best})"
        reading = f"{told}; whatever looks at no film gets 0.500."
    notes = (note, "Means over the seeds. Intervals resample patients 1000 times; they are means of the seeds' bounds.")
    return Table(suite, title, labels, COLUMNS, tuple(lines), reading, notes=notes)


def eta(results: Results) -> Table:
    """By how much another finding must lead."""
    lines = [
        Line(
            f"lead {value:.2f}",
            _cells(results, f"eta.{value:.2f}", "grape"),
            published()["eta"].get(f"{value:.2f}", {}),
        )
        for value in ETAS
    ]
    lines.append(_majority(results, "grape"))
    note = f"Without the gate, as in the paper's sweep. {_boxes(results, 'grape')}"
    return _table("eta", "The check's lead", ("tab:eta_sweep",), lines, note)


def gate(results: Results) -> Table:
    """Up to which variance the leading finding is believed."""
    lines = []
    for recipe, title in (("grape", "GRAPE"), ("ours", "medgrape's recipe")):
        for value in GATES:
            paper = published()["gate"].get(f"{value:g}", {}) if recipe == "grape" else {}
            lines.append(Line(f"{title}, gate {value:g}", _cells(results, f"gate.{value:g}", recipe), paper))
    lines.append(Line("medgrape's recipe, calibrated on validation boxes", _cells(results, "calibrated", "ours")))
    lines.append(_majority(results, "grape"))
    note = (
        "The paper's gate suits prototypes that have become one vector; where they differ, it may silence all. "
        f"{_boxes(results, 'grape')}"
    )
    return _table("gate", "The check's gate", (), lines, note)


def safety(results: Results) -> Table:
    """Does it matter how many boxes are wrong?"""
    lines = []
    for place, rate in enumerate(RATES):
        paper = published()["safety"].get(f"{rate:.2f}", {})
        lines.append(Line(f"{rate:.0%} of the boxes claimed wrongly", _drawn(results, "rates", place), paper))
    lines.append(
        Line("always the commonest finding, half of them wrong", _drawn(results, "majority_rates", 3), trivial=True)
    )
    half, blind = lines[3].ours.get("caught"), lines[-1].ours.get("caught")
    reading = NONE
    if isinstance(half, Value) and isinstance(blind, Value):
        reading = (
            f"Half of the boxes wrong: {half.mean:.3f} of these are caught, {blind.mean:.3f} by a check that looks at "
            "no film."
        )
    note = (
        "Intervals from 1000 rounds in which patients, wrong boxes and wrong claims are drawn anew; means of the "
        f"seeds' bounds. {_boxes(results, 'grape')}"
    )
    return Table(
        "safety",
        "The check against miscorrection rates",
        ("tab:safety",),
        (CAUGHT, FALSE),
        tuple(lines),
        reading,
        notes=(note,),
    )


def _drawn(results: Results, which: str, place: int) -> dict[str, Cell]:
    found = [told[which][place] for told in results.found("safety", "grape") if told.get(which)]
    cells: dict[str, Cell] = {}
    for key in ("caught", "false_alarms"):
        rows = [one[key] for one in found if one[key] is not None]
        if rows:
            mean, low, high = (sum(row[name] for row in rows) / len(rows) for name in ("mean", "low", "high"))
            cells[key] = Value(mean, None, len(rows), low, high)
    return cells


def dropout(results: Results) -> Table:
    """Doubt by reading thirty times."""
    passes = Column("passes", "Passes", "lower")
    titles = {
        "mean": "GRAPE's check",
        "dropout.variance": "MC-dropout, variance of the scores",
        "dropout.entropy": "MC-dropout, entropy of the classes",
    }
    lines = []
    for check, title in titles.items():
        count: Cell = Value(1 if check == "mean" else _passes(results), whole=True)
        cells = _cells(results, check, "grape") | {"passes": count}
        lines.append(Line(title, cells, published()["dropout"].get(check, {})))
    lines.append(_majority(results, "grape"))
    note = (
        "Thresholds of dropout give as many false alarms on validation boxes as the check itself; the paper matched "
        f"them on the very boxes that it tests on. {_boxes(results, 'grape')}"
    )
    made = _table("dropout", "MC-dropout at the same false alarms", ("tab:n5",), lines, note)
    return Table(**(vars(made) | {"columns": (*COLUMNS, passes)}))


def _passes(results: Results) -> int:
    found = [told["passes"] for told in results.found("safety", "grape") if told]
    return int(found[0]) if found else 30


def aggregation(results: Results) -> Table:
    """Mean or maximum inside the box."""
    lines = [
        Line(title, _cells(results, check, "grape"), published()["aggregation"][check])
        for check, title in (("mean", "mean inside the box"), ("max", "maximum inside the box"))
    ]
    lines.append(_majority(results, "grape"))
    note = f"Lead 0.05, no gate. {_boxes(results, 'grape')}"
    return _table("aggregation", "Mean or maximum inside the box", ("tab:mean_vs_max",), lines, note)


def by_concept(results: Results) -> Table:
    """Finding by finding, where there are many."""
    role: Role = "second" if results.has("second") else "first"
    recipe = "grape-text" if role == "second" else "grape"
    found = results.found("safety", recipe, role)
    paper = published()["safety-by-concept"] if role == "second" else {}
    lines = [Line("all findings", _cells(results, "mean", recipe, role), paper.get("all", {}))]
    for concept in results.dataset(role).concepts:
        told = [_named(one, concept.name) for one in found if one]
        cells = {key: _over_seeds([one.get(key) for one in told]) for key in ("caught", "false_alarms")}
        if any(cells.values()):
            lines.append(Line(concept.title, cells, paper.get(concept.name, {})))
    lines.append(_majority(results, recipe, role))
    note = f"{len(results.dataset(role).concepts)} findings. Lead 0.05, no gate. {_boxes(results, recipe, role)}"
    return _table("safety-by-concept", "The check, finding by finding", (), lines, note)


def _named(told: dict[str, Any], concept: str) -> dict[str, Any]:
    concepts = told.get("checks", {}).get("mean", {}).get("concepts", [])
    return next((one for one in concepts if one["name"] == concept), {})


def _grape(results: Results) -> Sequence[Job]:
    return results.jobs("safety", "grape")


def _many(results: Results) -> Sequence[Job]:
    return results.jobs("safety", "grape-text", role="second") or _grape(results)


SUITES = (
    Suite("eta", "leads from which the safety check warns", ("tab:eta_sweep",), _grape, eta),
    Suite("gate", "variances up to which it believes (theta_V)", (), lambda r: r.jobs("safety", "grape", "ours"), gate),
    Suite("safety", "the check against miscorrection rates", ("tab:safety",), _grape, safety),
    Suite("dropout", "MC-dropout, both variants, at the same false alarms", ("tab:n5",), _grape, dropout),
    Suite("aggregation", "mean or maximum inside the box", ("tab:mean_vs_max",), _grape, aggregation),
    Suite("safety-by-concept", "the check finding by finding, on many findings", (), _many, by_concept),
)
