"""Two ways to do one thing, timed in turn, so that a noisy machine disturbs both alike."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Ratio:
    """Ours against an alternative, in seconds for one piece of work."""

    what: str
    alternative: str
    ours: float
    theirs: float
    target: float
    at_most: bool = True
    """Whether ours/theirs should stay below the target; else theirs/ours should reach it."""

    @property
    def value(self) -> float:
        """Times the alternative's cost, or times faster than it."""
        return self.ours / self.theirs if self.at_most else self.theirs / self.ours

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.value <= self.target if self.at_most else self.value >= self.target

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"value": self.value, "met": self.met}


def race(ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 15) -> tuple[float, float]:
    """Median seconds of each, taken in turn after one warm-up."""
    ours(), theirs()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for taken, work in zip(times, (ours, theirs), strict=True):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])
