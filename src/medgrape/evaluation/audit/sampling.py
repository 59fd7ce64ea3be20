"""Is a figure really different in a group, or may that be the luck of which patients came?"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from medgrape.datasets.dataset import FilmRecord
from medgrape.evaluation.statistics import LEVEL, Interval, auc, aucs_of_parts, interval, resampled_sums
from medgrape.progress import Track, quietly

Part = Bool[np.ndarray, " films"]
Parts = Bool[np.ndarray, "parts films"]
Sums = Float[np.ndarray, "n columns"]
OfSums = Callable[[Sums], Float[np.ndarray, " n"]]
"""A figure of each row of sums; NaN where it is not defined."""


@dataclass(frozen=True)
class Measure:
    """What is measured."""

    name: str
    title: str
    best: Literal["high", "low", "zero"]
    compared: bool = True
    """Whether the figure of a small part may be laid beside that of a large one."""


@dataclass(frozen=True)
class Blind:
    """What somebody gets who never looks at the film."""

    name: str
    title: str
    figure: OfSums | float


@dataclass(frozen=True)
class Summed:
    """A figure that follows from sums of ``rows`` over films."""

    measure: Measure
    rows: Float[np.ndarray, "films columns"]
    figure: OfSums
    blind: tuple[Blind, ...]
    needed: tuple[Part, ...]
    """Kinds of films without which it means nothing: of each there must be patients enough."""
    occurring: tuple[Part, ...] = ()
    """Kinds of films of which there must be at least one."""
    shares: int = 1
    """Of how many shares it is the mean, any of which may be all or nothing."""


@dataclass(frozen=True)
class Ranked:
    """The mean over classes of how well their probabilities rank the films: an AUC, which no sums give."""

    measure: Measure
    present: Bool[np.ndarray, "classes films"]
    scores: Float[np.ndarray, "classes films"]
    blind: tuple[Blind, ...]

    @property
    def needed(self) -> tuple[Part, ...]:
        """Films of each class, and films of the others."""
        return (*self.present, *~self.present)

    @property
    def occurring(self) -> tuple[Part, ...]:
        """All that it takes is needed in number."""
        return ()

    @property
    def shares(self) -> int:
        """It is one figure, from 0 to 1."""
        return 1


@dataclass(frozen=True)
class Sampled:
    """One figure on every part."""

    values: Float[np.ndarray, " parts"]
    """NaN where it is not defined."""
    rounds: Float[np.ndarray, "rounds parts"]
    """The same when patients are drawn again; a row for each round."""
    blind: tuple[Float[np.ndarray, " parts"], ...]


def patients_counted(figure: Summed | Ranked, parts: Parts, films: Sequence[FilmRecord]) -> Int[np.ndarray, " parts"]:
    """On how many patients the figure rests in each part: of the kind of which there are fewest."""
    owner = np.array([film.patient or film.id for film in films])

    def counted(part: Part) -> int:
        if not all((part & kind).any() for kind in figure.occurring):
            return 0
        return min(len(np.unique(owner[part & kind])) for kind in figure.needed)

    return np.array([counted(part) for part in parts], dtype=np.int64)


def sampled(
    figures: Sequence[Summed | Ranked],
    parts: Parts,
    films: Sequence[FilmRecord],
    *,
    seed: int,
    rounds: int,
    track: Track = quietly,
) -> list[Sampled]:
    """Every figure on every part; the patients of all films are drawn once for each round, whatever the part."""
    summed = [one for one in figures if isinstance(one, Summed)]
    rows = np.concatenate([one.rows for one in summed], axis=1)
    edges = np.cumsum([one.rows.shape[1] for one in summed])[:-1]

    def each(sums: Sums) -> list[Float[np.ndarray, " n"]]:
        pieces = np.split(sums, edges, axis=1)
        return [one.figure(piece) for one, piece in zip(summed, pieces, strict=True)]

    def again(part: Part) -> Sums:
        drawn = resampled_sums(rows * part[:, None], films, seed=seed, rounds=rounds)
        return np.empty((0, rows.shape[1])) if drawn is None else drawn

    label = f"drawing patients again, {rounds:,} times"
    columns = [each(again(part)) for part in track(parts, label, len(parts))]
    resampled = iter([np.stack(column, axis=1) for column in zip(*columns, strict=True)])
    return [
        _summed(one, next(resampled), parts)
        if isinstance(one, Summed)
        else _ranked(one, parts, films, seed=seed, rounds=rounds, track=track)
        for one in figures
    ]


def _summed(figure: Summed, rounds: Float[np.ndarray, "rounds parts"], parts: Parts) -> Sampled:
    sums = parts.astype(np.float64) @ figure.rows
    return Sampled(figure.figure(sums), rounds, _blind(figure.blind, sums))


def _ranked(
    figure: Ranked, parts: Parts, films: Sequence[FilmRecord], *, seed: int, rounds: int, track: Track
) -> Sampled:
    classes = list(zip(figure.present, figure.scores, strict=True))
    found = [[auc(present[part], scores[part]) for part in parts] for present, scores in classes]
    again = [
        aucs_of_parts(present, scores, parts, films, seed=seed, rounds=rounds)
        for present, scores in track(classes, f"ranking their films again, {rounds:,} times", len(classes))
    ]
    values = np.array(found, dtype=np.float64).mean(axis=0)
    return Sampled(values, np.mean(again, axis=0), _blind(figure.blind, np.zeros((len(parts), 0))))


def _blind(blind: tuple[Blind, ...], sums: Sums) -> tuple[Float[np.ndarray, " parts"], ...]:
    return tuple(np.full(len(sums), one.figure) if isinstance(one.figure, float) else one.figure(sums) for one in blind)


def ratio(sums: Sums, part: int, whole: int) -> Float[np.ndarray, " n"]:
    """One column over another; NaN where there is nothing to divide by."""
    return np.asarray(np.where(sums[:, whole] > 0, sums[:, part] / np.maximum(sums[:, whole], 1), np.nan))


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
