"""Confidence intervals over patients, and the comparison of two methods on the same films.

The paired t-test asks whether another training would give the same result on these films. The bootstrap asks the same
of other patients. The permutation test asks how often a difference as large arises if, patient by patient, a coin
decides which method gave which answer. Holm's correction accounts for several comparisons in one table.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from medgrape.datasets.dataset import FilmRecord

ROUNDS = 1000
LEVEL = 0.95
PValue = TypeVar("PValue", float, float | None)


@dataclass(frozen=True)
class Interval:
    """A 95 % interval of resampled figures."""

    low: float
    high: float


def interval(figures: Float[np.ndarray, " rounds"]) -> Interval:
    """Return the middle 95 % of the resampled figures."""
    low, high = np.quantile(figures, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Interval(float(low), float(high))


def ratio(part: Float[np.ndarray, "*n"], whole: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """Divide counts elementwise; NaN where the denominator is 0."""
    return np.asarray(np.where(whole > 0, part / np.maximum(whole, 1), np.nan))


def count_patients(films: Sequence[FilmRecord]) -> int:
    """Return the number of patients; a film without a patient counts as a patient of its own."""
    return len({film.patient or film.id for film in films})


def patient_indices(films: Sequence[FilmRecord]) -> Int[np.ndarray, " films"]:
    """Number the patients from 0 on, and return the number of each film's patient."""
    return np.asarray(np.unique([film.patient or film.id for film in films], return_inverse=True)[1])


def resampled_sums(
    rows: Float[np.ndarray, "films n"], films: Sequence[FilmRecord], *, seed: int = 0, rounds: int = ROUNDS
) -> Float[np.ndarray, "rounds n"] | None:
    """Return the sums of ``rows`` over patients drawn with replacement, in each round as many as there are.

    All films of a patient are drawn together, because they are alike. Every ratio of sums (a hit rate, an F1) follows
    from these sums without another look at the films. None for a single patient, who has no interval.
    """
    patients = count_patients(films)
    if patients < 2:
        return None
    by_patient = np.zeros((patients, rows.shape[1]))
    np.add.at(by_patient, patient_indices(films), rows)
    # a table of rounds x patients would not fit into memory for a large data set
    return np.stack([times.astype(np.float64) @ by_patient for times in _draws(patients, seed, rounds)])


def resampled_aucs(
    present: Bool[np.ndarray, " n"],
    scores: Float[np.ndarray, " n"],
    masks: Bool[np.ndarray, "masks n"],
    films: Sequence[FilmRecord],
    *,
    seed: int = 0,
    rounds: int = ROUNDS,
) -> Float[np.ndarray, "rounds masks"]:
    """Return the AUC among the films of each mask, for patients drawn as in ``resampled_sums``.

    All masks share the draws. NaN where a round has only positives or only negatives. Unlike a ratio of sums over
    patients, an AUC compares every positive with every negative, so each round is computed from the films.
    """
    owner = patient_indices(films)
    inside = [np.flatnonzero(mask) for mask in masks]
    ranks = [np.unique(scores[rows], return_inverse=True)[1] for rows in inside]
    aucs = [
        [_weighted_auc(present[rows], rank, times[owner[rows]]) for rows, rank in zip(inside, ranks, strict=True)]
        for times in _draws(count_patients(films), seed, rounds)
    ]
    return np.array(aucs, dtype=np.float64)  # turns None into NaN


def auc(present: Bool[np.ndarray, " n"], scores: Float[np.ndarray, " n"]) -> float | None:
    """Return the probability that a positive scores higher than a negative (ties count half); None without both."""
    return _weighted_auc(present, np.unique(scores, return_inverse=True)[1], np.ones(len(present), dtype=np.int64))


def _weighted_auc(
    present: Bool[np.ndarray, " n"], ranks: Int[np.ndarray, " n"], times: Int[np.ndarray, " n"]
) -> float | None:
    """Compute the AUC from the ranks of the scores, equal for ties; each item counts ``times``."""
    positives, negatives = (np.bincount(ranks, weights=times * chosen) for chosen in (present, ~present))
    below = negatives.cumsum() - negatives / 2
    pairs = positives.sum() * negatives.sum()
    return float(positives @ below / pairs) if pairs else None


def _draws(patients: int, seed: int | np.random.Generator, rounds: int) -> Iterator[Int[np.ndarray, " patients"]]:
    """Yield for each round how often each patient is drawn."""
    generator = np.random.default_rng(seed)
    for _ in range(rounds):
        yield np.bincount(generator.integers(patients, size=patients), minlength=patients)


Figure = Callable[[Float[np.ndarray, "*rounds n"]], Float[np.ndarray, "*rounds"]]
"""Computes a figure, such as a hit rate or a macro-F1, from sums over patients."""
Counts = Float[np.ndarray, "seeds patients n"]
"""The counts of each patient from which the figure is computed; the patients have the same order for every method."""


@dataclass(frozen=True)
class Comparison:
    """One method against another, on the same films and with the same seeds."""

    difference: float  # mean over the seeds
    interval: Interval | None  # of the difference, over patients; None for a single patient
    t_test: float | None
    """Two-sided p-value over the seeds; None for a single seed, or if all seeds have the same difference."""
    permutation: float | None  # two-sided p-value of swapping the methods by patient; None for a single patient
    seeds: int
    holm: float | None = None  # p-value of the permutation test, corrected for all comparisons of the table

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def compare(ours: Counts, theirs: Counts, figure: Figure, *, seed: int = 0, rounds: int = ROUNDS) -> Comparison:
    """Compare two methods; ``seed`` is that of resampling and swapping."""
    by_seed = figure(ours.sum(axis=1)) - figure(theirs.sum(axis=1))
    patients, generator = ours.shape[1], np.random.default_rng(seed)
    bounds = permutation = None
    if patients > 1:
        differences = [
            float(figure(_weighted(ours, times)).mean() - figure(_weighted(theirs, times)).mean())
            for times in _draws(patients, generator, rounds)
        ]
        bounds = interval(np.array(differences))
        permutation = _permutation_test(ours, theirs, figure, generator, rounds)
    return Comparison(float(by_seed.mean()), bounds, paired_t_test(by_seed), permutation, len(by_seed))


def paired_t_test(differences: Float[np.ndarray, " seeds"]) -> float | None:
    """Return the two-sided p-value of the hypothesis that the mean difference is zero; None without variation."""
    from scipy import stats  # slow to import

    if len(differences) < 2 or np.allclose(differences, differences[0], rtol=1e-9):
        return None
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def holm(p_values: Sequence[PValue]) -> list[PValue]:
    """Return the p-values after Holm's correction for their number; None stays None and does not count."""
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected = list(p_values)
    highest = 0.0
    for step, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - step)))
        corrected[place] = highest
    return corrected


def _weighted(counts: Counts, times: Int[np.ndarray, " patients"]) -> Float[np.ndarray, "seeds n"]:
    return np.asarray(np.einsum("p,spn->sn", times, counts))


def _permutation_test(
    ours: Counts, theirs: Counts, figure: Figure, generator: np.random.Generator, rounds: int
) -> float:
    """Return the share of swaps with at least the observed difference; the observed one counts as one of them."""
    gains = theirs - ours
    observed = abs(float((figure(ours.sum(axis=1)) - figure(theirs.sum(axis=1))).mean()))
    as_large = 1
    for _ in range(rounds):
        change = _weighted(gains, np.asarray(generator.integers(2, size=ours.shape[1])))
        difference = abs((figure(ours.sum(axis=1) + change) - figure(theirs.sum(axis=1) - change)).mean())
        as_large += math.isclose(difference, observed) or difference > observed
    return as_large / (rounds + 1)
