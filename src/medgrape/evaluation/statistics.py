"""How far a figure may be off by the luck of which patients came: the bootstrap, over patients and not over films."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

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
    names, owner = np.unique([film.patient or film.id for film in films], return_inverse=True)
    if len(names) < 2:
        return None
    by_patient = np.zeros((len(names), rows.shape[1]))
    np.add.at(by_patient, owner, rows)
    chance = np.random.default_rng(seed)
    sums = np.empty((rounds, rows.shape[1]))
    for number in range(rounds):  # a table of rounds x patients would not fit for a large set
        times = np.bincount(chance.integers(len(names), size=len(names)), minlength=len(names))
        sums[number] = times.astype(np.float64) @ by_patient
    return sums


def interval(figures: Float[np.ndarray, " rounds"]) -> Interval:
    """The middle 95 % of the resampled figures."""
    low, high = np.quantile(figures, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Interval(float(low), float(high))
