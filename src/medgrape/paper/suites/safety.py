"""Tables of the safety check: its lead, its gate, miscorrection rates, mean or maximum, MC-dropout, by concept."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from medgrape.paper.jobs import PaperJob, Role
from medgrape.paper.measures import ETAS, GATES, RATES
from medgrape.paper.results import Results
from medgrape.paper.suites.base import number, ranked, suite
from medgrape.paper.tables import Cell, Column, Line, Table, Value, spread

CAUGHT = Column("caught", "Wrong boxes caught", "higher")
FALSE = Column("false_alarms", "False alarms", "lower")
BALANCED = Column("balanced", "Balanced over claims", "higher")
COLUMNS = (CAUGHT, FALSE, BALANCED)
NOTHING_CLAIMED = "Not measured: no test box can be claimed wrongly, or the job is not done yet."


def _grape(results: Results) -> Sequence[PaperJob]:
    return results.jobs("safety", "grape")


def _cells(results: Results, check: str, recipe: str = "grape", role: Role = "first") -> dict[str, Cell]:
    checks = [figures.get("checks", {}).get(check, {}) for figures in results.figures("safety", recipe, role)]
    return _rates(checks, COLUMNS)


def _rates(checks: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> dict[str, Cell]:
    """Mean shares over the seeds; the bounds are means of those of the intervals over patients."""
    cells: dict[str, Cell] = {}
    for column in columns:
        rates = [check[column.key] for check in checks if check.get(column.key) is not None]
        value = spread([rate["share"] for rate in rates])
        intervals = [rate["interval"] for rate in rates if rate["interval"] is not None]
        if value is not None and intervals:
            low, high = (sum(bounds[end] for bounds in intervals) / len(intervals) for end in ("low", "high"))
            value = replace(value, low=low, high=high)
        cells[column.key] = value
    return cells


def _table(
    results: Results,
    title: str,
    lines: Sequence[Line],
    note: str,
    recipe: str = "grape",
    role: Role = "first",
    columns: tuple[Column, ...] = COLUMNS,
) -> Table:
    """The table of some checks, with the number of boxes, and the majority answer below."""
    figures = next((figures for figures in results.figures("safety", recipe, role) if figures), None)
    commonest = figures and figures["commonest"]
    majority = results.data[role].concepts[commonest].title if commonest else "the commonest finding"
    lines = [*lines, Line(f"always “{majority}”", _cells(results, "majority", recipe, role), trivial=True)]
    balances = ranked(lines, BALANCED.key)
    reading = NOTHING_CLAIMED
    if balances:
        (low, _), (high, best) = balances[0], balances[-1]
        span = f"Balance {high:.3f}" if len(balances) == 1 else f"Balance from {low:.3f} to {high:.3f}"
        reading = f"{span} ({best}); whatever looks at no film gets 0.500."
    seeds = "Means over the seeds. Intervals resample patients 1000 times; they are means of the seeds' bounds."
    return Table(title, columns, tuple(lines), reading, notes=(f"{note} {_boxes(figures)}", seeds))


def _boxes(figures: Mapping[str, Any] | None) -> str:
    return f"{figures['boxes']} boxes of {figures['patients']} patients." if figures else ""


@suite("eta", "tab:eta_sweep", needs=_grape)
def eta(results: Results) -> Table:
    """The safety check with different lead thresholds (eta)."""
    lines = [Line(f"lead {value:.2f}", _cells(results, f"eta.{value:.2f}"), f"{value:.2f}") for value in ETAS]
    return _table(results, "The check's lead", lines, "Without the gate, as in the paper's sweep.")


@suite("gate", needs=lambda r: r.jobs("safety", "grape", "ours"))
def gate(results: Results) -> Table:
    """The safety check with different variance limits (theta_V)."""
    lines = []
    for recipe, title in (("grape", "GRAPE"), ("ours", "medgrape's recipe")):
        for value in GATES:
            cells = _cells(results, f"gate.{value:g}", recipe)
            lines.append(Line(f"{title}, gate {value:g}", cells, f"{value:g}" if recipe == "grape" else ""))
    lines.append(Line("medgrape's recipe, calibrated on validation boxes", _cells(results, "calibrated", "ours")))
    note = "The paper's gate suits prototypes that have become one vector; where they differ, it may silence all."
    return _table(results, "The check's gate", lines, note)


@suite("safety", "tab:safety", needs=_grape)
def safety(results: Results) -> Table:
    """The safety check with different shares of wrongly claimed boxes."""
    lines = [
        Line(f"{rate:.0%} of the boxes claimed wrongly", _drawn(results, "rates", place), f"{rate:.2f}")
        for place, rate in enumerate(RATES)
    ]
    half_wrong = RATES.index(0.5)
    cells = _drawn(results, "majority_rates", half_wrong)
    lines.append(Line("always the commonest finding, half of them wrong", cells, trivial=True))
    caught, trivial = number(lines[half_wrong], CAUGHT.key), number(lines[-1], CAUGHT.key)
    reading = NOTHING_CLAIMED
    if caught is not None and trivial is not None:
        reading = f"Half of the boxes wrong: {caught:.3f} of these are caught, {trivial:.3f} by a check that "
        reading += "looks at no film."
    figures = next((figures for figures in results.figures("safety", "grape") if figures), None)
    note = (
        "Intervals from 1000 rounds in which patients, wrong boxes and wrong claims are drawn anew; means of the "
        f"seeds' bounds. {_boxes(figures)}"
    )
    return Table("The check against miscorrection rates", (CAUGHT, FALSE), tuple(lines), reading, notes=(note,))


def _drawn(results: Results, check: str, place: int) -> dict[str, Cell]:
    """Means over the seeds of the rates at one share of wrong boxes."""
    drawn = [figures[check][place] for figures in results.figures("safety", "grape") if figures.get(check)]
    cells: dict[str, Cell] = {}
    for key in (CAUGHT.key, FALSE.key):
        rates = [rate[key] for rate in drawn if rate[key] is not None]
        if rates:
            mean, low, high = (sum(rate[name] for rate in rates) / len(rates) for name in ("mean", "low", "high"))
            cells[key] = Value(mean, None, len(rates), low, high)
    return cells


@suite("dropout", "tab:n5", needs=_grape)
def dropout(results: Results) -> Table:
    """The safety check against MC-dropout, at the same false alarm rate."""
    passes = next((int(figures["passes"]) for figures in results.figures("safety", "grape") if figures), 30)
    lines = []
    for check, title, count in (
        ("mean", "GRAPE's check", 1),
        ("dropout.variance", "MC-dropout, variance of the scores", passes),
        ("dropout.entropy", "MC-dropout, entropy of the classes", passes),
    ):
        lines.append(Line(title, _cells(results, check) | {"passes": Value(count, whole=True)}, check))
    note = (
        "Thresholds of dropout give as many false alarms on validation boxes as the check itself; the paper matched "
        "them on the very boxes that it tests on."
    )
    columns = (*COLUMNS, Column("passes", "Passes", "lower"))
    return _table(results, "MC-dropout at the same false alarms", lines, note, columns=columns)


@suite("aggregation", "tab:mean_vs_max", needs=_grape)
def aggregation(results: Results) -> Table:
    """The safety check with the mean or the maximum inside the box."""
    lines = [
        Line(title, _cells(results, check), check)
        for check, title in (("mean", "mean inside the box"), ("max", "maximum inside the box"))
    ]
    return _table(results, "Mean or maximum inside the box", lines, "Lead 0.05, no gate.")


@suite("safety-by-concept", needs=lambda r: r.jobs("safety", "grape-text", role="second") or _grape(r))
def by_concept(results: Results) -> Table:
    """The safety check for each finding, on the data set with more findings."""
    role: Role = "second" if "second" in results.data else "first"
    recipe = "grape-text" if role == "second" else "grape"
    concepts = results.data[role].concepts
    lines = [Line("all findings", _cells(results, "mean", recipe, role), "all" if role == "second" else "")]
    checks = [figures["checks"]["mean"]["concepts"] for figures in results.figures("safety", recipe, role) if figures]
    for concept in concepts:
        alarms = [alarms for check in checks for alarms in check if alarms["name"] == concept.name]
        cells = _rates(alarms, (CAUGHT, FALSE))
        if any(cells.values()):
            lines.append(Line(concept.title, cells, concept.name if role == "second" else ""))
    note = f"{len(concepts)} findings. Lead 0.05, no gate."
    return _table(results, "The check, finding by finding", lines, note, recipe, role)
