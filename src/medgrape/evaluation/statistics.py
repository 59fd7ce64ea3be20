"""Is one method better than another? Over seeds by the paired t-test, over patients by resampling and by swapping.

A t-test over few seeds asks whether another training would come out alike, on these very films. The bootstrap asks the
same of other patients, and the permutation test how often a difference as large comes about when, patient by patient,
it is left to a coin which method said what. Several comparisons in one table share the risk of a chance find (Holm).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from medgrape.datasets.dataset import FilmRecord

ROUNDS = 1000
LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """Where 95 % of the resampled figures lie."""

    low: float
    high: float


def resampled_sums(
    rows: Float[np.ndarray, "films n"], films: Sequence[FilmRecord], *, seed: int = 0, rounds: int = ROUNDS
) -> Float[np.ndarray, "rounds n"] | None:
    """Sums of ``rows`` over as many patients as there are, drawn with replacement, once for each round.

    Two films of one patient are much alike, so they come and go together. Whatever is a ratio of sums (a share of
    hits, an F1) follows from these sums without looking at the films again. None where there is one patient only,
    of whose luck nothing can be told.
    """
    patients, owner = _patients(films)
    if patients < 2:
        return None
    by_patient = np.zeros((patients, rows.shape[1]))
    np.add.at(by_patient, owner, rows)
    # a table of rounds x patients would not fit for a large set
    return np.stack([times.astype(np.float64) @ by_patient for times in _draws(patients, seed, rounds)])


def resampled_aucs(
    present: Bool[np.ndarray, " n"],
    scores: Float[np.ndarray, " n"],
    films: Sequence[FilmRecord],
    *,
    seed: int = 0,
    rounds: int = ROUNDS,
) -> Float[np.ndarray, " defined"]:
    """The AUC over patients drawn in the same way, in each round that drew of both kinds; none of one patient only.

    An AUC is no ratio of sums over patients, for it compares each of one kind with each of the other.
    """
    patients, owner = _patients(films)
    if patients < 2:
        return np.empty(0)
    places = np.unique(scores, return_inverse=True)[1]
    found = (_weighted_auc(present, places, times[owner]) for times in _draws(patients, seed, rounds))
    return np.array([value for value in found if value is not None])


def aucs_of_parts(
    present: Bool[np.ndarray, " n"],
    scores: Float[np.ndarray, " n"],
    parts: Bool[np.ndarray, "parts n"],
    films: Sequence[FilmRecord],
    *,
    seed: int = 0,
    rounds: int = ROUNDS,
) -> Float[np.ndarray, "rounds parts"]:
    """The AUC within each of several parts of the films, in the same rounds: patients are drawn once for all parts.

    NaN where a round drew of one kind only.
    """
    patients, owner = _patients(films)
    inside = [np.flatnonzero(part) for part in parts]
    places = [np.unique(scores[part], return_inverse=True)[1] for part in inside]
    found = [
        [_weighted_auc(present[part], place, times[owner[part]]) for part, place in zip(inside, places, strict=True)]
        for times in _draws(patients, seed, rounds)
    ]
    return np.array(found, dtype=np.float64)  # of None it makes NaN


def auc(present: Bool[np.ndarray, " n"], scores: Float[np.ndarray, " n"]) -> float | None:
    """How probably one that shows it scores higher than one that does not, a tie counting half; None without both."""
    return _weighted_auc(present, np.unique(scores, return_inverse=True)[1], np.ones(len(present), dtype=np.int64))


def _weighted_auc(
    present: Bool[np.ndarray, " n"], places: Int[np.ndarray, " n"], times: Int[np.ndarray, " n"]
) -> float | None:
    """``places`` are the ranks of the scores, alike where the scores are; each counts ``times``."""
    shown, other = (np.bincount(places, weights=times * kind) for kind in (present, ~present))
    below = other.cumsum() - other / 2
    pairs = shown.sum() * other.sum()
    return float(shown @ below / pairs) if pairs else None


def _patients(films: Sequence[FilmRecord]) -> tuple[int, Int[np.ndarray, " films"]]:
    """How many there are, and whose each film is."""
    names, owner = np.unique([film.patient or film.id for film in films], return_inverse=True)
    return len(names), owner


def _draws(patients: int, seed: int, rounds: int) -> Iterator[Int[np.ndarray, " patients"]]:
    """How often each patient is drawn, round by round."""
    chance = np.random.default_rng(seed)
    for _ in range(rounds):
        yield np.bincount(chance.integers(patients, size=patients), minlength=patients)


def interval(figures: Float[np.ndarray, " rounds"]) -> Interval:
    """The middle 95 % of the resampled figures."""
    low, high = np.quantile(figures, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Interval(float(low), float(high))


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
