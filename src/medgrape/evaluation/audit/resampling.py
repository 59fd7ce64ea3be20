"""The figures of an audit on parts of the films, with resampled patients, and the gap between two parts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from medgrape.datasets.dataset import FilmRecord
from medgrape.evaluation.statistics import (
    LEVEL,
    Interval,
    auc,
    interval,
    patient_indices,
    resampled_aucs,
    resampled_sums,
)
from medgrape.progress import Track, quietly

Mask = Bool[np.ndarray, " films"]
Masks = Bool[np.ndarray, "masks films"]
Sums = Float[np.ndarray, "n columns"]
FigureOfSums = Callable[[Sums], Float[np.ndarray, " n"]]
"""Computes a figure from each row of sums; NaN if it is undefined."""
Rounds = Float[np.ndarray, " rounds"]

FEWEST = 10  # patients needed in the group and in the rest; with fewer, resampling says nothing
_ROUNDING = 1e-9  # differences below this are rounding errors


@dataclass(frozen=True)
class Measure:
    """What is measured."""

    name: str
    title: str
    best: Literal["high", "low", "zero"]
    compared: bool = True  # False if the figure depends on the number of films


@dataclass(frozen=True)
class TrivialBaseline:
    """The figure of a method that ignores the film."""

    name: str
    title: str
    figure: FigureOfSums


@dataclass(frozen=True)
class Statistic:
    """How a figure is computed on any part of the films."""

    measure: Measure
    baselines: Sequence[TrivialBaseline]
    needed: Sequence[Mask]  # film masks; the films in each must come from enough patients
    occurring: Sequence[Mask] = field(default=(), kw_only=True)  # film masks; each must select at least one film
    proportions: int = field(default=1, kw_only=True)  # number of proportions averaged


@dataclass(frozen=True)
class SumStatistic(Statistic):
    """A figure that follows from sums of ``rows`` over films."""

    rows: Float[np.ndarray, "films columns"]
    figure: FigureOfSums


@dataclass(frozen=True)
class AucStatistic(Statistic):
    """The mean AUC over classes, which does not follow from sums."""

    present: Bool[np.ndarray, "classes films"]
    scores: Float[np.ndarray, "classes films"]


@dataclass(frozen=True)
class Resampled:
    """One figure on every part of the films; NaN where it is undefined."""

    values: Float[np.ndarray, " masks"]
    rounds: Float[np.ndarray, "rounds masks"]  # with resampled patients
    baselines: list[Float[np.ndarray, " masks"]]


def patients_behind(statistic: Statistic, masks: Masks, films: Sequence[FilmRecord]) -> Int[np.ndarray, " masks"]:
    """Return the number of patients behind the figure in each part: the smallest number over the needed masks.

    The number is 0 where a mask that must occur selects no film.
    """
    owner = patient_indices(films)
    counts = [min(len(np.unique(owner[mask & kind])) for kind in statistic.needed) for mask in masks]
    complete = [all((mask & kind).any() for kind in statistic.occurring) for mask in masks]
    return np.where(complete, counts, 0)


def resample(
    statistics: Sequence[SumStatistic | AucStatistic],
    masks: Masks,
    films: Sequence[FilmRecord],
    *,
    seed: int,
    rounds: int,
    track: Track = quietly,
) -> list[Resampled]:
    """Compute every figure on every part; all parts share the draws of patients."""
    of_sums = [statistic for statistic in statistics if isinstance(statistic, SumStatistic)]
    rows = np.concatenate([statistic.rows for statistic in of_sums], axis=1)
    edges = np.cumsum([statistic.rows.shape[1] for statistic in of_sums])[:-1]
    figures = []
    for mask in track(masks, f"drawing patients again, {rounds:,} times", len(masks)):
        sums = resampled_sums(rows * mask[:, None], films, seed=seed, rounds=rounds)
        parts = np.split(np.empty((0, rows.shape[1])) if sums is None else sums, edges, axis=1)
        figures.append([statistic.figure(part) for statistic, part in zip(of_sums, parts, strict=True)])
    resampled_figures = iter(np.array(figures).transpose(1, 2, 0))
    results = []
    for statistic in statistics:
        if isinstance(statistic, SumStatistic):
            sums = masks.astype(np.float64) @ statistic.rows
            values, resampled = statistic.figure(sums), next(resampled_figures)
        else:
            sums = np.empty((len(masks), 0))
            values, resampled = _resample_aucs(statistic, masks, films, seed=seed, rounds=rounds, track=track)
        results.append(Resampled(values, resampled, [baseline.figure(sums) for baseline in statistic.baselines]))
    return results


def _resample_aucs(
    statistic: AucStatistic, masks: Masks, films: Sequence[FilmRecord], *, seed: int, rounds: int, track: Track
) -> tuple[Float[np.ndarray, " masks"], Float[np.ndarray, "rounds masks"]]:
    classes = list(zip(statistic.present, statistic.scores, strict=True))
    values = [[auc(present[mask], scores[mask]) for mask in masks] for present, scores in classes]
    resampled = [
        resampled_aucs(present, scores, masks, films, seed=seed, rounds=rounds)
        for present, scores in track(classes, f"ranking their films again, {rounds:,} times", len(classes))
    ]
    return np.array(values, dtype=np.float64).mean(axis=0), np.mean(resampled, axis=0)


@dataclass(frozen=True)
class Gap:
    """The difference between a group and all other films, from the same resampled patients."""

    rest: float
    rest_interval: Interval
    difference: float
    interval: Interval
    p_value: float  # twice the share of rounds in which the gap has the other sign, and at least one round
    flagged: bool  # whether the interval excludes zero
    corrected_p_value: float  # after the correction for all gaps
    still_flagged: bool  # whether it is also flagged after the correction

    def corrected(self, p_value: float) -> "Gap":
        """Return the same gap with its p-value after the correction for all gaps."""
        return replace(self, corrected_p_value=p_value, still_flagged=self.flagged and p_value <= 1 - LEVEL)


def compute_gap(group: float, group_rounds: Rounds, rest: float, rest_rounds: Rounds) -> Gap:
    """Compare figures that were resampled together, without correction for other gaps."""
    gaps = group_rounds - rest_rounds
    gaps = gaps[~np.isnan(gaps)]
    gaps = np.where(np.abs(gaps) < _ROUNDING, 0.0, gaps)
    bounds = interval_with(group - rest, gaps)
    p_value = float(np.clip(2 * min((gaps <= 0).mean(), (gaps >= 0).mean()), 1 / len(gaps), 1.0))
    flagged = bounds.low > 0 or bounds.high < 0
    return Gap(rest, interval_with(rest, rest_rounds), group - rest, bounds, p_value, flagged, p_value, flagged)


def interval_with(figure: float, rounds: Rounds) -> Interval:
    """Return the interval of the defined rounds, extended to include the figure itself."""
    bounds = interval(rounds[~np.isnan(rounds)])
    return Interval(min(bounds.low, figure), max(bounds.high, figure))


def replace_constant_rounds(figure: float, rounds: Rounds, patients: int, *, seed: int, proportions: int = 1) -> Rounds:
    """Replace a proportion that is 0 or 1 in all rounds by draws from a beta distribution.

    Ten right answers of ten remain ten of ten however patients are resampled, but they are not certain: their 95 %
    interval (Clopper and Pearson) begins at 0.69. Draws from beta(n, 1) have this bound. The mean of two
    ``proportions`` may also be 0.5 in all rounds, if one is 0 and the other 1.
    """
    defined = rounds[~np.isnan(rounds)]
    if figure not in np.arange(proportions + 1) / proportions or (np.abs(defined - figure) > _ROUNDING).any():
        return rounds
    ends = np.arange(proportions) < figure * proportions
    lost = 1 - np.random.default_rng(seed).random((len(rounds), proportions)) ** (1 / patients)
    return np.asarray(np.abs(ends - lost).mean(axis=1))


def rounds_for(gaps: int, fewest: int) -> int:
    """Return the number of rounds with which the smallest possible p-value passes the correction for all gaps."""
    return max(fewest, round(2 * gaps / (1 - LEVEL)))
