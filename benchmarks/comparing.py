"""What a change did: the ratios of two measurements side by side, and which of them differ by more than noise."""

from dataclasses import dataclass
from typing import Any

from benchmarks.results import Results, Row

SMALLEST = 0.05
"""A smaller part of the ratio is never called a change: two runs of one program differ by that much."""
ENOUGH = 5
"""Rounds without which nothing is called a change: the ranges of three part by luck alone once in ten times."""


@dataclass(frozen=True)
class Comparison:
    """One row, then and now; either may be missing."""

    suite: str
    then: Row | None
    now: Row | None

    @property
    def row(self) -> Row:
        """Whichever of the two there is, the later one first."""
        row = self.now or self.then
        if row is None:
            raise ValueError("a comparison of nothing")
        return row

    @property
    def change(self) -> float | None:
        """How much dearer (above 0) or cheaper we became beside the alternative; None: nothing to compare."""
        if self.then is None or self.now is None or self.then.at_most != self.now.at_most:
            return None
        grew = self.now.value / self.then.value
        return (grew if self.now.at_most else 1 / grew) - 1

    @property
    def verdict(self) -> str:
        """In a word or two."""
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
        """Plain data."""
        return {
            "suite": self.suite, "what": self.row.what, "alternative": self.row.alternative,
            "then": None if self.then is None else self.then.value,
            "now": None if self.now is None else self.now.value,
            "change": self.change, "verdict": self.verdict,
        }  # fmt: skip


def compare(then: Results, now: Results) -> list[Comparison]:
    """Every row of both; of what was measured then, only the suites that were measured now."""
    before = {(suite, row.key): row for suite, row in then.rows}
    found = [Comparison(suite, before.pop((suite, row.key), None), row) for suite, row in now.rows]
    suites = {outcome.suite for outcome in now.outcomes}
    return [*found, *(Comparison(suite, row, None) for (suite, _), row in before.items() if suite in suites)]


def differences(then: Results, now: Results) -> list[str]:
    """What was different beside the code, in sentences: ratios of other machines are other ratios."""
    parts = ("processor", "cores", "threads", "versions")
    return [
        f"The {part} differ: {then.machine.get(part)} then, {now.machine.get(part)} now."
        for part in parts
        if then.machine.get(part) != now.machine.get(part)
    ]


def _apart(one: Row, other: Row) -> bool:
    """Whether no round of the one was like a round of the other, as far as their spreads tell."""
    return one.high < other.low or other.high < one.low
