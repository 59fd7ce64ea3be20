"""Is a figure really different in a group, or may that be the luck of which patients came?"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from medgrape.evaluation.statistics import LEVEL, Interval, interval

FEWEST = 10
"""Patients that a figure must rest on, in the group and in the rest: of fewer, resampling says nothing."""
_NOTHING = 1e-9
"""A difference smaller than this is that of adding up in another order."""

Key = TypeVar("Key", bound=Hashable)
Rounds = Float[np.ndarray, " rounds"]


@dataclass(frozen=True)
class Gap:
    """A figure in a group less the same figure in all other films, both from the same patients in each round."""

    rest: float
    rest_interval: Interval
    difference: float
    interval: Interval
    p_value: float
    """Twice the share of rounds in which the gap is not of its sign, and at least one round."""
    flagged: bool
    """Whether the interval excludes zero."""
    corrected_p_value: float
    """The same after the correction for all gaps that were looked at."""
    still_flagged: bool
    """Whether it is also flagged after that correction."""

    def corrected(self, p_value: float) -> "Gap":
        """The same gap, as one of many that were looked at."""
        return replace(self, corrected_p_value=p_value, still_flagged=self.flagged and p_value <= 1 - LEVEL)


def compared(group: float, group_rounds: Rounds, rest: float, rest_rounds: Rounds) -> Gap:
    """The gap, from figures that were resampled together, as though it were the only one that anybody looked at."""
    gaps = group_rounds - rest_rounds
    gaps = gaps[~np.isnan(gaps)]
    gaps = np.where(np.abs(gaps) < _NOTHING, 0.0, gaps)
    bounds = around(group - rest, gaps)
    chance = float(np.clip(2 * min((gaps <= 0).mean(), (gaps >= 0).mean()), 1 / len(gaps), 1.0))
    flagged = bounds.low > 0 or bounds.high < 0
    return Gap(rest, around(rest, rest_rounds), group - rest, bounds, chance, flagged, chance, flagged)


def around(figure: float, rounds: Rounds) -> Interval:
    """The middle 95 % of the rounds in which it is defined, and the figure itself where it lies beside them."""
    found = interval(rounds[~np.isnan(rounds)])
    return Interval(min(found.low, figure), max(found.high, figure))


def loosened(figure: float, rounds: Rounds, patients: int, *, seed: int, shares: int = 1) -> Rounds:
    """The rounds of a share; where it is 0 or 1 in all of them, what so many patients alike leave open.

    The mean of two ``shares`` may also be 0.5 in all of them, one share being 0 and the other 1.

    Ten right answers of ten are ten of ten whoever is drawn again, which would make them certain. They are not: their
    95 % interval (Clopper and Pearson's) begins at 0.69. A share drawn from beta(n, 1) has just that bound.
    """
    defined = rounds[~np.isnan(rounds)]
    if figure not in np.arange(shares + 1) / shares or (np.abs(defined - figure) > _NOTHING).any():
        return rounds
    ends = np.arange(shares) < figure * shares
    lost = 1 - np.random.default_rng(seed).random((len(rounds), shares)) ** (1 / patients)
    return np.asarray(np.abs(ends - lost).mean(axis=1))


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """Holm's correction: how probably chance alone makes at least one of so many gaps look like this one."""
    ordered = sorted(p_values, key=lambda key: p_values[key])
    corrected: dict[Key, float] = {}
    worst = 0.0
    for place, key in enumerate(ordered):
        worst = max(worst, (len(ordered) - place) * p_values[key])
        corrected[key] = min(worst, 1.0)
    return corrected


def rounds_for(gaps: int, fewest: int) -> int:
    """So many that a gap which no round denies is still seen after the correction for all the others."""
    return max(fewest, round(2 * gaps / (1 - LEVEL)))
