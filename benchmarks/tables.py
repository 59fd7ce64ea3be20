"""Ratios as tables for the terminal and for Markdown."""

from collections.abc import Sequence

from benchmarks.comparing import Comparison
from benchmarks.results import Results, Row

COLUMNS = ("what", "ours", "against", "theirs", "ratio", "single rounds", "target")
COMPARED = ("what", "against", "then", "now", "cost", "")
_SCALES = {"s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")), "MB": ((1.0, "MB"),)}


def cells(row: Row) -> tuple[str, ...]:
    """Return a row of the table."""
    limit = "at most" if row.at_most else "at least"
    return (
        row.what, amount(row.ours, row.unit), row.alternative, amount(row.theirs, row.unit),
        f"{figure(row.value)} {_kind(row)}", f"{figure(row.low)} to {figure(row.high)}",
        f"{limit} {figure(row.target)} ({'met' if row.met else 'missed'})",
    )  # fmt: skip


def compared_cells(one: Comparison) -> tuple[str, ...]:
    """Return a row of the comparison."""
    then, now = ("-" if row is None else f"{figure(row.value)} {_kind(row)}" for row in (one.then, one.now))
    change = "-" if one.change is None else f"{one.change:+.1%}"
    return one.row.what, one.row.alternative, then, now, change, one.verdict


def amount(value: float, unit: str) -> str:
    """Return the time in the unit in which it is easiest to read."""
    scales = _SCALES.get(unit, ((1.0, unit),))
    scale, name = next((pair for pair in scales if value >= pair[0]), scales[-1])
    return f"{figure(value / scale)} {name}"


def figure(value: float) -> str:
    """Return three digits, and four for a ratio near one, where two per cent matter."""
    return f"{value:.3f}" if 0.5 < value < 2 else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def markdown(results: Results) -> str:
    """Return all suites in one table, with the machine below it."""
    rows = [(suite, *cells(row)) for suite, row in results.rows]
    lines = [_line(("suite", *COLUMNS)), _line(["---"] * (len(COLUMNS) + 1)), *(_line(row) for row in rows)]
    for outcome in results.outcomes:
        if outcome.not_run is not None:
            lines.append(_line((outcome.suite, f"not run: {outcome.not_run}", *[""] * (len(COLUMNS) - 1))))
    return "\n".join([*lines, "", describe_machine(results)])


def describe_machine(results: Results) -> str:
    """Return machine and date in one sentence."""
    machine = results.machine
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items() if number)
    return (
        f"Measured {machine['measured']} on {machine['processor']}, {machine['cores']} cores, "
        f"{machine['threads']} threads ({versions}); all suites took {results.seconds / 60:.1f} minutes."
    )


def shortcomings(results: Results) -> list[str]:
    """Return a sentence for each missed target, and for each suite that could not be run."""
    lines = []
    for suite, row in results.missed:
        limit = f"{'at most' if row.at_most else 'at least'} {figure(row.target)}"
        lines.append(f"missed: {suite}: {row.what}, against {row.alternative}: {figure(row.value)}, not {limit}.")
    stopped = ((outcome.suite, outcome.not_run) for outcome in results.outcomes)
    return [*lines, *(f"not run: {suite}: {why}" for suite, why in stopped if why is not None)]


def _kind(row: Row) -> str:
    return "x its cost" if row.at_most else "x faster"


def _line(values: Sequence[str]) -> str:
    return f"| {' | '.join(values)} |"
