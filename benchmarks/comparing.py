"""Compare two measurements: their ratios side by side, and the ratios that differ by more than noise."""

from dataclasses import dataclass
from typing import Any

from benchmarks.results import Results, Row

SMALLEST = 0.05
"""Smallest relative change that is reported: two runs of one program differ by less."""
ENOUGH = 5
"""Rounds needed to report a change: with three rounds, ranges part by chance once in ten times."""


@dataclass(frozen=True)
class Comparison:
    """One row before and now; one of them may be missing."""

    suite: str
    then: Row | None
    now: Row | None

    @property
    def row(self) -> Row:
        """Return the row as it is now, or as it was before."""
        row = self.now or self.then
        if row is None:
            raise ValueError("a comparison of nothing")
        return row

    @property
    def change(self) -> float | None:
        """Return by how much the ratio rose (above 0) or fell; None without a row to compare with."""
        if self.then is None or self.now is None or self.then.at_most != self.now.at_most:
            return None
        grew = self.now.value / self.then.value
        return (grew if self.now.at_most else 1 / grew) - 1

    @property
    def verdict(self) -> str:
        """Return the verdict in a word or two."""
        if self.then is None or self.now is None:
            return "new" if self.then is None else "not measured"
        return "counted otherwise" if self.change is None else self._judged(self.then, self.now, self.change)

    @staticmethod
    def _judged(then: Row, now: Row, change: float) -> str:
        if min(then.rounds, now.rounds) < ENOUGH:
            return "too few rounds"
        if abs(change) < SMALLEST or not _apart(then, now):
            return "within noise"
        return "slower" if change > 0 else "faster"

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "suite": self.suite, "what": self.row.what, "alternative": self.row.alternative,
            "then": None if self.then is None else self.then.value,
            "now": None if self.now is None else self.now.value,
            "change": self.change, "verdict": self.verdict,
        }  # fmt: skip


def compare(then: Results, now: Results) -> list[Comparison]:
    """Compare every row of both; of the earlier measurement, only suites that were measured now."""
    before = {(suite, row.key): row for suite, row in then.rows}
    found = [Comparison(suite, before.pop((suite, row.key), None), row) for suite, row in now.rows]
    suites = {outcome.suite for outcome in now.outcomes}
    return [*found, *(Comparison(suite, row, None) for (suite, _), row in before.items() if suite in suites)]


def differences(then: Results, now: Results) -> list[str]:
    """Return the differences of the machines in sentences: on other machines ratios differ."""
    parts = ("processor", "cores", "threads", "versions")
    return [
        f"The {part} differ: {then.machine.get(part)} then, {now.machine.get(part)} now."
        for part in parts
        if then.machine.get(part) != now.machine.get(part)
    ]


def _apart(one: Row, other: Row) -> bool:
    """Return whether the spreads of both do not overlap."""
    return one.high < other.low or other.high < one.low
