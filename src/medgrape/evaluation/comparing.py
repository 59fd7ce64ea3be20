"""Is one method better than another? Over seeds by the paired t-test, over patients by resampling and by swapping.

A t-test over few seeds asks whether another training would come out alike, on these very films. The bootstrap asks the
same of other patients, and the permutation test how often a difference as large comes about when, patient by patient,
it is left to a coin which method said what. Several comparisons in one table share the risk of a chance find (Holm).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from medgrape.evaluation.statistics import ROUNDS, Interval, interval

Figure = Callable[[Float[np.ndarray, "*rounds n"]], Float[np.ndarray, "*rounds"]]
"""A figure from sums over patients: a share of hits, a macro-F1."""
Counts = Float[np.ndarray, "seeds patients n"]
"""What the figure is made of, patient by patient, in the same order for every method."""


@dataclass(frozen=True)
class Comparison:
    """One method against another, on the same films and with the same seeds."""

    difference: float
    """Mean over the seeds."""
    interval: Interval | None
    """Of the difference, over patients; None where there is one only."""
    t_test: float | None
    """Two-sided p over the seeds; None where there is one only, or every seed has the same difference."""
    permutation: float | None
    """Two-sided p of swapping the methods patient by patient; None where there is one patient only."""
    seeds: int
    holm: float | None = None
    """The permutation's p, corrected for all comparisons of the table."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def compare(ours: Counts, theirs: Counts, figure: Figure, *, seed: int = 0, rounds: int = ROUNDS) -> Comparison:
    """Whether ``ours`` differs from ``theirs``; ``seed`` is that of resampling and swapping."""
    by_seed = figure(ours.sum(axis=1)) - figure(theirs.sum(axis=1))
    patients = ours.shape[1]
    chance = np.random.default_rng(seed)
    return Comparison(
        difference=float(by_seed.mean()),
        interval=_resampled(ours, theirs, figure, chance, rounds) if patients > 1 else None,
        t_test=paired_t_test(by_seed),
        permutation=_swapped(ours, theirs, figure, chance, rounds) if patients > 1 else None,
        seeds=len(by_seed),
    )


def paired_t_test(differences: Float[np.ndarray, " seeds"]) -> float | None:
    """Two-sided p that such differences come from a mean of zero."""
    from scipy import stats  # slow to import

    if len(differences) < 2 or np.allclose(differences, differences[0], rtol=1e-9):
        return None
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The same corrected step by step for how many they are; what is not known stays so and does not count."""
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for step, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - step)))
        corrected[place] = highest
    return corrected


def _resampled(ours: Counts, theirs: Counts, figure: Figure, chance: np.random.Generator, rounds: int) -> Interval:
    patients = ours.shape[1]
    found = []
    for _ in range(rounds):
        times = np.bincount(chance.integers(patients, size=patients), minlength=patients)
        sums = (np.einsum("p,spn->sn", times, counts) for counts in (ours, theirs))
        found.append(float(np.subtract(*(figure(one).mean() for one in sums))))
    return interval(np.array(found))


def _swapped(ours: Counts, theirs: Counts, figure: Figure, chance: np.random.Generator, rounds: int) -> float:
    """Share of swaps with at least this difference, the one that was found counting as one of them."""
    moved = theirs - ours
    found = abs(float((figure(ours.sum(axis=1)) - figure(theirs.sum(axis=1))).mean()))
    as_large = 1
    for _ in range(rounds):
        change = np.einsum("p,spn->sn", chance.integers(2, size=ours.shape[1]), moved)
        swapped = figure(ours.sum(axis=1) + change) - figure(theirs.sum(axis=1) - change)
        as_large += math.isclose(abs(swapped.mean()), found) or abs(swapped.mean()) > found
    return as_large / (rounds + 1)
