"""Every figure in every group, and its gap to all other films."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from medgrape.datasets.dataset import FilmRecord
from medgrape.evaluation.audit.groups import Division
from medgrape.evaluation.audit.resampling import (
    FEWEST,
    AucStatistic,
    Gap,
    Mask,
    Masks,
    Measure,
    Resampled,
    Statistic,
    SumStatistic,
    compute_gap,
    interval_with,
    patients_behind,
    replace_constant_rounds,
    resample,
    rounds_for,
)
from medgrape.evaluation.statistics import ROUNDS, Interval, count_patients, holm
from medgrape.progress import Track, quietly


@dataclass(frozen=True)
class BaselineValue:
    """The figure of a trivial baseline on the same films."""

    name: str
    title: str
    value: float


@dataclass(frozen=True)
class GroupFigure:
    """One figure in one group."""

    measure: str
    patients: int  # patients behind the figure; if it needs several kinds of films, of the rarest kind
    too_few: bool  # whether there are too few patients; then the following fields are empty
    value: float | None
    interval: Interval | None
    trivial: tuple[BaselineValue, ...]
    gap: Gap | None  # None with too few patients in the group or in the rest, or if the measure is not compared


@dataclass(frozen=True)
class GroupFigures:
    """All figures in one group."""

    name: str
    films: int
    patients: int
    figures: tuple[GroupFigure, ...]


@dataclass(frozen=True)
class AuditTable:
    """The groups of one attribute, or of several crossed."""

    title: str
    by: tuple[str, ...]
    known: bool  # whether there is a group of which everything is known
    groups: tuple[GroupFigures, ...]


@dataclass(frozen=True)
class AuditFigures:
    """All figures of an audit."""

    measures: tuple[Measure, ...]
    whole: GroupFigures
    tables: tuple[AuditTable, ...]
    gaps: int  # two groups that together hold all films have one gap for each figure
    flagged_gaps: int
    still_flagged_gaps: int
    rounds: int


def compute_figures(
    statistics: Sequence[SumStatistic | AucStatistic],
    divisions: Sequence[Division],
    films: Sequence[FilmRecord],
    *,
    seed: int = 0,
    track: Track = quietly,
) -> AuditFigures:
    """Compute every figure in every group, and correct the gaps for their number."""
    masks = _masks(divisions, len(films))
    patients = np.stack([patients_behind(statistic, masks, films) for statistic in statistics])
    comparisons = _comparisons(statistics, masks, patients)
    rounds = rounds_for(len(comparisons), ROUNDS)
    resampled = resample(statistics, masks, films, seed=seed, rounds=rounds, track=track)
    samples = [_widen(*row, seed=seed) for row in zip(statistics, resampled, patients, strict=True)]
    gaps = _gaps(samples, comparisons)
    figures = {
        mask.tobytes(): tuple(
            _group_figure(statistic, sample, int(counts[place]), place, gaps.get((row, place)))
            for row, (statistic, sample, counts) in enumerate(zip(statistics, samples, patients, strict=True))
        )
        for place, mask in enumerate(masks)
    }

    def group(name: str, members: Mask) -> GroupFigures:
        inside = [film for film, member in zip(films, members, strict=True) if member]
        return GroupFigures(name, len(inside), count_patients(inside), figures[members.tobytes()])

    tables = []
    for division in divisions:
        groups = tuple(group(subgroup.name, subgroup.members) for subgroup in division.groups)
        known = any(subgroup.known for subgroup in division.groups)
        tables.append(AuditTable(division.title, division.by, known, groups))
    counted = [gaps[row, place] for row, place, _ in comparisons]
    return AuditFigures(
        measures=tuple(statistic.measure for statistic in statistics),
        whole=group("all films", masks[0]),
        tables=tuple(tables),
        gaps=len(counted),
        flagged_gaps=sum(gap.flagged for gap in counted),
        still_flagged_gaps=sum(gap.still_flagged for gap in counted),
        rounds=rounds,
    )


def _group_figure(statistic: Statistic, sample: Resampled, patients: int, place: int, gap: Gap | None) -> GroupFigure:
    if patients < FEWEST:
        return GroupFigure(statistic.measure.name, patients, True, None, None, (), None)
    value, bounds = float(sample.values[place]), interval_with(float(sample.values[place]), sample.rounds[:, place])
    trivial = tuple(
        BaselineValue(baseline.name, baseline.title, float(values[place]))
        for baseline, values in zip(statistic.baselines, sample.baselines, strict=True)
    )
    return GroupFigure(statistic.measure.name, patients, False, value, bounds, trivial, gap)


Indices = tuple[int, int, int]
"""Indices of a statistic, of a mask, and of the mask of all other films."""


def _masks(divisions: Sequence[Division], films: int) -> Masks:
    """Return the masks of all films, of every group and of its complement; each once, and none empty."""
    masks = [np.ones(films, dtype=bool)]
    for division in divisions:
        for group in division.groups:
            masks += [group.members, ~group.members]
    return np.stack(list({mask.tobytes(): mask for mask in masks if mask.any()}.values()))


def _comparisons(
    statistics: Sequence[Statistic], masks: Masks, patients: Int[np.ndarray, "statistics masks"]
) -> list[Indices]:
    """Return what can be compared; two groups that together hold all films are one comparison."""
    places = {mask.tobytes(): place for place, mask in enumerate(masks)}
    rests = [places.get((~mask).tobytes(), -1) for mask in masks]
    return [
        (row, place, rest)
        for place, rest in enumerate(rests)
        for row, statistic in enumerate(statistics)
        if place < rest and statistic.measure.compared and min(patients[row, place], patients[row, rest]) >= FEWEST
    ]


def _widen(statistic: Statistic, sample: Resampled, patients: Int[np.ndarray, " masks"], *, seed: int) -> Resampled:
    """Replace proportions that are 0 or 1 in all rounds, and centre the rounds of measures that are not compared.

    A measure that is not compared is biased upwards in each round, because a round holds fewer different films. Its
    rounds are shifted so that their mean is the figure; only their scatter is used.
    """
    rounds = sample.rounds.copy()
    for place in np.flatnonzero(patients >= FEWEST):
        value, column = sample.values[place], rounds[:, place]
        if statistic.measure.compared:
            known, proportions = int(patients[place]), statistic.proportions
            rounds[:, place] = replace_constant_rounds(
                value, column, known, seed=seed + int(place), proportions=proportions
            )
        else:
            rounds[:, place] += value - np.nanmean(column)
    return replace(sample, rounds=rounds)


def _gaps(samples: Sequence[Resampled], comparisons: Sequence[Indices]) -> dict[tuple[int, int], Gap]:
    """Return the gaps by statistic and mask, from both sides, corrected for their number."""

    def gap(row: int, place: int, rest: int) -> Gap:
        values, rounds = samples[row].values, samples[row].rounds
        return compute_gap(float(values[place]), rounds[:, place], float(values[rest]), rounds[:, rest])

    one_sided = [gap(*indices) for indices in comparisons]
    corrected = holm([own.p_value for own in one_sided])
    gaps = {}
    for (row, place, rest), own, p_value in zip(comparisons, one_sided, corrected, strict=True):
        gaps[row, place] = own.corrected(p_value)
        gaps[row, rest] = gap(row, rest, place).corrected(p_value)
    return gaps
