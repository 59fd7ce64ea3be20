"""Time two ways to do one thing in turn, so that a noisy machine disturbs both alike."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

FEW = 10
"""Below this number of rounds the whole range counts as noise, not only its middle half."""


class Measured(float):
    """The median of several rounds, with the figure of each round."""

    rounds: tuple[float, ...]

    def __new__(cls, rounds: Sequence[float]) -> "Measured":
        """Return the median of the rounds."""
        figure = super().__new__(cls, statistics.median(rounds))
        figure.rounds = tuple(rounds)
        return figure


@dataclass(frozen=True)
class Ratio:
    """Ours against an alternative, in seconds (or ``unit``) for one piece of work."""

    what: str
    alternative: str
    ours: float
    theirs: float
    target: float
    at_most: bool = True
    """Whether ours/theirs should stay below the target; otherwise theirs/ours should reach it."""
    unit: str = "s"

    @property
    def value(self) -> float:
        """Return the median ratio: times the alternative's cost, or times faster than it."""
        return statistics.median(self._each)

    @property
    def spread(self) -> tuple[float, float]:
        """Return the range of the rounds' ratios: the middle half, or the whole range of few rounds."""
        each = self._each
        if len(each) < FEW:
            return min(each), max(each)
        low, _, high = statistics.quantiles(each, n=4, method="inclusive")
        return low, high

    @property
    def met(self) -> bool:
        """Return whether the target is met."""
        return self.value <= self.target if self.at_most else self.value >= self.target

    @property
    def _each(self) -> list[float]:
        """Return the ratio of each round, in which both were timed one right after the other."""
        ours, theirs = _rounds(self.ours), _rounds(self.theirs)
        if not isinstance(self.theirs, Measured):  # a promise, such as films in a second: the same for every round
            theirs = theirs * len(ours)
        if len(ours) != len(theirs):  # timed apart: nothing belongs together
            ours, theirs = [self.ours], [self.theirs]
        return [(a / b if self.at_most else b / a) for a, b in zip(ours, theirs, strict=True)]

    def to_json(self) -> dict[str, Any]:
        """Return plain data without the single rounds, which the spread summarises."""
        low, high = self.spread
        return {
            "what": self.what, "alternative": self.alternative, "ours": float(self.ours), "theirs": float(self.theirs),
            "unit": self.unit, "value": self.value, "low": low, "high": high, "rounds": len(self._each),
            "target": self.target, "at_most": self.at_most, "met": self.met,
        }  # fmt: skip


def race(ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 15) -> tuple[Measured, Measured]:
    """Return the seconds of each, timed in turn after one warm-up; the order changes from round to round.

    They can be handed to a ``Ratio`` as they are, and read as the median.
    """
    ours(), theirs()
    sides: list[tuple[Callable[[], object], list[float]]] = [(ours, []), (theirs, [])]
    gc.collect()
    for number in range(rounds):
        for work, taken in sides if number % 2 == 0 else reversed(sides):
            taken.append(clocked(work))
    return Measured(sides[0][1]), Measured(sides[1][1])


def clocked(work: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _rounds(figure: float) -> list[float]:
    return list(figure.rounds) if isinstance(figure, Measured) else [figure]
