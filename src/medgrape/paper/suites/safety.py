"""Tables of the safety check: its lead, its gate, miscorrection rates, mean or maximum, MC-dropout, by concept."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from medgrape.paper.jobs import PaperJob, Role
from medgrape.paper.measures import ETAS, GATES, RATES
from medgrape.paper.results import Results
from medgrape.paper.suites.base import number, published, ranked, suite
from medgrape.paper.tables import Cell, Column, Line, Table, Value, spread

CAUGHT = Column("caught", "Wrong boxes caught", "higher")
FALSE = Column("false_alarms", "False alarms", "lower")
BALANCED = Column("balanced", "Balanced over claims", "higher")
COLUMNS = (CAUGHT, FALSE, BALANCED)
NOTHING_CLAIMED = "Not measured: no test box can be claimed wrongly, or the job is not done yet."


def _grape(results: Results) -> Sequence[PaperJob]:
    return results.jobs("safety", "grape")


def _cells(results: Results, check: str, recipe: str, role: Role = "first") -> dict[str, Cell]:
    found = results.found("safety", recipe, role)
    return _rates([figures.get("checks", {}).get(check, {}) for figures in found], COLUMNS)


def _rates(checks: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> dict[str, Cell]:
    return {column.key: _over_seeds([check.get(column.key) for check in checks]) for column in columns}


def _over_seeds(rates: Sequence[dict[str, Any] | None]) -> Value | None:
    """Mean share, and means of the bounds of its intervals over patients."""
    known = [rate for rate in rates if rate is not None]
    value = spread([rate["share"] for rate in known])
    intervals = [rate["interval"] for rate in known if rate["interval"] is not None]
    if value is None or not intervals:
        return value
    low, high = (sum(interval[bound] for interval in intervals) / len(intervals) for bound in ("low", "high"))
    return replace(value, low=low, high=high)


def _majority(results: Results, recipe: str, role: Role = "first") -> Line:
    found = results.found("safety", recipe, role)
    concepts = results.dataset(role).concepts
    title = "the commonest finding"
    if found and found[0].get("commonest"):
        title = concepts[found[0]["commonest"]].title
    return Line(f"always “{title}”", _cells(results, "majority", recipe, role), trivial=True)


def _boxes(results: Results, recipe: str = "grape", role: Role = "first") -> str:
    figures = next((figures for figures in results.found("safety", recipe, role) if figures), None)
    return "" if figures is None else f"{figures['boxes']} boxes of {figures['patients']} patients."


def _table(title: str, lines: Sequence[Line], note: str, columns: tuple[Column, ...] = COLUMNS) -> Table:
    balances = ranked(lines, BALANCED.key)
    reading = NOTHING_CLAIMED
    if balances:
        (low, _), (high, best) = balances[0], balances[-1]
        span = f"Balance {high:.3f}" if len(balances) == 1 else f"Balance from {low:.3f} to {high:.3f}"
        reading = f"{span} ({best}); whatever looks at no film gets 0.500."
    notes = (note, "Means over the seeds. Intervals resample patients 1000 times; they are means of the seeds' bounds.")
    return Table(title, columns, tuple(lines), reading, notes=notes)


@suite("eta", "tab:eta_sweep", needs=_grape)
def eta(results: Results) -> Table:
    """The safety check, by the lead from which it warns."""
    paper = published()["eta"]
    lines = [
        Line(f"lead {value:.2f}", _cells(results, f"eta.{value:.2f}", "grape"), paper.get(f"{value:.2f}", {}))
        for value in ETAS
    ]
    lines.append(_majority(results, "grape"))
    return _table("The check's lead", lines, f"Without the gate, as in the paper's sweep. {_boxes(results)}")


@suite("gate", needs=lambda r: r.jobs("safety", "grape", "ours"))
def gate(results: Results) -> Table:
    """The safety check, by the variance up to which it believes the leading finding (theta_V)."""
    lines = []
    for recipe, title in (("grape", "GRAPE"), ("ours", "medgrape's recipe")):
        for value in GATES:
            paper = published()["gate"].get(f"{value:g}", {}) if recipe == "grape" else {}
            lines.append(Line(f"{title}, gate {value:g}", _cells(results, f"gate.{value:g}", recipe), paper))
    lines.append(Line("medgrape's recipe, calibrated on validation boxes", _cells(results, "calibrated", "ours")))
    lines.append(_majority(results, "grape"))
    note = "The paper's gate suits prototypes that have become one vector; where they differ, it may silence all."
    return _table("The check's gate", lines, f"{note} {_boxes(results)}")


@suite("safety", "tab:safety", needs=_grape)
def safety(results: Results) -> Table:
    """The safety check at several shares of wrongly claimed boxes."""
    paper = published()["safety"]
    lines = [
        Line(
            f"{rate:.0%} of the boxes claimed wrongly", _drawn(results, "rates", place), paper.get(f"{rate:.2f}", {})
        )
        for place, rate in enumerate(RATES)
    ]  # fmt: skip
    half_wrong = RATES.index(0.5)
    cells = _drawn(results, "majority_rates", half_wrong)
    lines.append(Line("always the commonest finding, half of them wrong", cells, trivial=True))
    caught, trivial = number(lines[half_wrong], CAUGHT.key), number(lines[-1], CAUGHT.key)
    reading = NOTHING_CLAIMED
    if caught is not None and trivial is not None:
        reading = (
            f"Half of the boxes wrong: {caught:.3f} of these are caught, {trivial:.3f} by a check that looks at no "
            "film."
        )
    note = (
        "Intervals from 1000 rounds in which patients, wrong boxes and wrong claims are drawn anew; means of the "
        f"seeds' bounds. {_boxes(results)}"
    )
    return Table("The check against miscorrection rates", (CAUGHT, FALSE), tuple(lines), reading, notes=(note,))


def _drawn(results: Results, which: str, place: int) -> dict[str, Cell]:
    found = [figures[which][place] for figures in results.found("safety", "grape") if figures.get(which)]
    cells: dict[str, Cell] = {}
    for key in (CAUGHT.key, FALSE.key):
        rates = [rate[key] for rate in found if rate[key] is not None]
        if rates:
            mean, low, high = (sum(rate[name] for rate in rates) / len(rates) for name in ("mean", "low", "high"))
            cells[key] = Value(mean, None, len(rates), low, high)
    return cells


@suite("dropout", "tab:n5", needs=_grape)
def dropout(results: Results) -> Table:
    """The safety check against MC-dropout, at the same false alarms."""
    passes = next((int(figures["passes"]) for figures in results.found("safety", "grape") if figures), 30)
    lines = []
    for check, title, count in (
        ("mean", "GRAPE's check", 1),
        ("dropout.variance", "MC-dropout, variance of the scores", passes),
        ("dropout.entropy", "MC-dropout, entropy of the classes", passes),
    ):
        cells = _cells(results, check, "grape") | {"passes": Value(count, whole=True)}
        lines.append(Line(title, cells, published()["dropout"].get(check, {})))
    lines.append(_majority(results, "grape"))
    note = (
        "Thresholds of dropout give as many false alarms on validation boxes as the check itself; the paper matched "
        f"them on the very boxes that it tests on. {_boxes(results)}"
    )
    columns = (*COLUMNS, Column("passes", "Passes", "lower"))
    return _table("MC-dropout at the same false alarms", lines, note, columns)


@suite("aggregation", "tab:mean_vs_max", needs=_grape)
def aggregation(results: Results) -> Table:
    """The safety check with the mean or the maximum inside the box."""
    lines = [
        Line(title, _cells(results, check, "grape"), published()["aggregation"][check])
        for check, title in (("mean", "mean inside the box"), ("max", "maximum inside the box"))
    ]
    lines.append(_majority(results, "grape"))
    return _table("Mean or maximum inside the box", lines, f"Lead 0.05, no gate. {_boxes(results)}")


@suite("safety-by-concept", needs=lambda r: r.jobs("safety", "grape-text", role="second") or _grape(r))
def by_concept(results: Results) -> Table:
    """The safety check, finding by finding, on the data set with more of them."""
    role: Role = "second" if results.has("second") else "first"
    recipe = "grape-text" if role == "second" else "grape"
    found = results.found("safety", recipe, role)
    concepts, paper = results.dataset(role).concepts, published()["safety-by-concept"] if role == "second" else {}
    lines = [Line("all findings", _cells(results, "mean", recipe, role), paper.get("all", {}))]
    for concept in concepts:
        checks = [figures["checks"]["mean"]["concepts"] for figures in found if figures]
        alarms = [alarms for of_run in checks for alarms in of_run if alarms["name"] == concept.name]
        cells = _rates(alarms, (CAUGHT, FALSE))
        if any(cells.values()):
            lines.append(Line(concept.title, cells, paper.get(concept.name, {})))
    lines.append(_majority(results, recipe, role))
    note = f"{len(concepts)} findings. Lead 0.05, no gate. {_boxes(results, recipe, role)}"
    return _table("The check, finding by finding", lines, note)
