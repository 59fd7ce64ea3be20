"""How far a figure may be off by the luck of which patients came: the bootstrap, over patients and not over films."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from medgrape.data.dataset import FilmRecord

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
