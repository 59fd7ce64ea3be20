"""Every figure in every group, and how far it is from that of all other films."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from medgrape.datasets.dataset import FilmRecord
from medgrape.evaluation.audit.groups import Division
from medgrape.evaluation.audit.sampling import (
    FEWEST,
    Gap,
    Measure,
    Part,
    Parts,
    Ranked,
    Sampled,
    Summed,
    around,
    compared,
    holm,
    loosened,
    patients_counted,
    rounds_for,
    sampled,
)
from medgrape.evaluation.statistics import ROUNDS, Interval
from medgrape.progress import Track, quietly


@dataclass(frozen=True)
class Trivial:
    """What somebody gets on the same films who does not look at them."""

    name: str
    title: str
    value: float


@dataclass(frozen=True)
class GroupFigure:
    """One figure in one group."""

    measure: str
    patients: int
    """On how many it rests; of several kinds that it takes, the rarest."""
    too_few: bool
    """Whether those are too few: then nothing below is told."""
    value: float | None
    interval: Interval | None
    trivial: tuple[Trivial, ...]
    gap: Gap | None
    """None where the group or the rest has too few, or where the figure depends on the number of films."""


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
    known: bool
    """Whether there is a group of which everything is known."""
    groups: tuple[GroupFigures, ...]


@dataclass(frozen=True)
class Counts:
    """What was counted."""

    measures: tuple[Measure, ...]
    whole: GroupFigures
    tables: tuple[AuditTable, ...]
    gaps: int
    """Two groups that share all films between them have one for each figure."""
    flagged: int
    still_flagged: int
    rounds: int


def counted(
    figures: Sequence[Summed | Ranked],
    split_up: Sequence[Division],
    films: Sequence[FilmRecord],
    *,
    seed: int = 0,
    track: Track = quietly,
) -> Counts:
    """Count in every group, and judge every gap that can be judged, all of them together."""
    parts = _parts(split_up, len(films))
    patients = np.stack([patients_counted(one, parts, films) for one in figures])
    judged = _judged(figures, parts, patients)
    rounds = rounds_for(len(judged), ROUNDS)
    raw = sampled(figures, parts, films, seed=seed, rounds=rounds, track=track)
    samples = [_mended(*one, seed=seed) for one in zip(figures, raw, patients, strict=True)]
    gaps = _gaps(samples, judged)
    found = _Found(figures, films, parts, patients, samples, gaps)
    once = [gaps[row, place] for row, place, _ in judged]
    return Counts(
        measures=tuple(one.measure for one in figures),
        whole=found.group("all films", parts[0]),
        tables=tuple(found.table(division) for division in split_up),
        gaps=len(once),
        flagged=sum(one.flagged for one in once),
        still_flagged=sum(one.still_flagged for one in once),
        rounds=rounds,
    )


@dataclass(frozen=True)
class _Found:
    """All that was counted, by figure and part."""

    figures: Sequence[Summed | Ranked]
    films: Sequence[FilmRecord]
    parts: Parts
    patients: Int[np.ndarray, "figures parts"]
    samples: Sequence[Sampled]
    gaps: Mapping[tuple[int, int], Gap]

    def table(self, division: Division) -> AuditTable:
        known = any(one.known for one in division.groups)
        groups = tuple(self.group(one.name, one.members) for one in division.groups)
        return AuditTable(division.title, division.by, known, groups)

    def group(self, name: str, members: Part) -> GroupFigures:
        place = next(place for place, part in enumerate(self.parts) if (part == members).all())
        owners = {film.patient or film.id for film, inside in zip(self.films, members, strict=True) if inside}
        figures = tuple(self.figure(row, place) for row in range(len(self.figures)))
        return GroupFigures(name, int(members.sum()), len(owners), figures)

    def figure(self, row: int, place: int) -> GroupFigure:
        figure, sample, patients = self.figures[row], self.samples[row], int(self.patients[row, place])
        if patients < FEWEST:
            return GroupFigure(figure.measure.name, patients, True, None, None, (), None)
        value, blind = float(sample.values[place]), zip(figure.blind, sample.blind, strict=True)
        return GroupFigure(
            measure=figure.measure.name,
            patients=patients,
            too_few=False,
            value=value,
            interval=around(value, sample.rounds[:, place]),
            trivial=tuple(Trivial(one.name, one.title, float(values[place])) for one, values in blind),
            gap=self.gaps.get((row, place)),
        )


Judged = tuple[int, int, int]
"""Number of the figure, of a part, and of the part that is all other films."""


def _parts(split_up: Sequence[Division], films: int) -> Parts:
    """All films, every group, and the rest of every group, each once; empty ones are left out."""
    found = [np.ones(films, dtype=bool)]
    for division in split_up:
        for one in division.groups:
            found += [one.members, ~one.members]
    return np.stack(list({part.tobytes(): part for part in found if part.any()}.values()))


def _judged(
    figures: Sequence[Summed | Ranked], parts: Parts, patients: Int[np.ndarray, "figures parts"]
) -> list[Judged]:
    """What can be compared, once for each two parts: two groups that share all films between them have one gap."""
    places = {part.tobytes(): place for place, part in enumerate(parts)}
    others = [places.get((~part).tobytes(), -1) for part in parts]
    return [
        (row, place, other)
        for place, other in enumerate(others)
        for row, one in enumerate(figures)
        if place < other and one.measure.compared and min(patients[row, place], patients[row, other]) >= FEWEST
    ]


def _mended(figure: Summed | Ranked, sample: Sampled, patients: Int[np.ndarray, " parts"], *, seed: int) -> Sampled:
    """The rounds with certainty taken out of shares that are all or nothing.

    A figure that may not be compared grows when fewer films differ, as they do in a round: its rounds tell how far it
    scatters, around what was found.
    """
    rounds = sample.rounds.copy()
    for place, value in enumerate(sample.values):
        if patients[place] < FEWEST:
            continue
        if figure.measure.compared:
            known = int(patients[place])
            rounds[:, place] = loosened(value, rounds[:, place], known, seed=seed + place, shares=figure.shares)
        else:
            rounds[:, place] += value - np.nanmean(rounds[:, place])
    return replace(sample, rounds=rounds)


def _gaps(samples: Sequence[Sampled], judged: Sequence[Judged]) -> dict[tuple[int, int], Gap]:
    """By figure and part, seen from either side, after the correction for all of them."""
    found = {one: _gap(samples, one) for one in judged}
    corrected = holm({one: gap.p_value for one, gap in found.items()})
    both = {}
    for (row, place, other), gap in found.items():
        p_value = corrected[row, place, other]
        both[row, place] = gap.corrected(p_value)
        both[row, other] = _gap(samples, (row, other, place)).corrected(p_value)
    return both


def _gap(samples: Sequence[Sampled], judged: Judged) -> Gap:
    row, place, other = judged
    values, rounds = samples[row].values, samples[row].rounds
    return compared(float(values[place]), rounds[:, place], float(values[other]), rounds[:, other])
