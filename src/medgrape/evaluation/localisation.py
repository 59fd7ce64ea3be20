"""Does a concept's map point at the finding, and better than somebody who never saw the film?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
from jaxtyping import Bool, Float, Int

from medgrape.concepts import Concept
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.datasets.statistics import GRID, Guess, guess
from medgrape.evaluation.readings import Readings
from medgrape.evaluation.statistics import Interval, interval, resampled_sums
from medgrape.geometry import Box, FilmSize, PatchGrid, peak

_TESTED = "tested"
"""A split of our own, so that blind pointing is judged on the very films that were read and no others."""


@dataclass(frozen=True)
class Pointed:
    """Where one map is highest, in the film's own pixels, and whether that is in a box of its concept."""

    point: tuple[float, float]
    hit: bool


@dataclass(frozen=True)
class Pair:
    """One film and one concept that it has boxes of."""

    film: str
    concept: str
    mean: Pointed
    """By the mean over the concept's prototypes."""
    maximum: Pointed
    """By the maximum over the concept's prototypes."""
    cam: Pointed | None
    """By the CAM head's logits; None for a concept that was learnt after training."""
    chance: float
    """How probably a random point hits."""
    fixed: float
    """Whether (1 or 0) the concept's fixed point hits; where training has no box to learn it from, ``chance``."""

    @property
    def pointed(self) -> tuple[Pointed, ...]:
        """By each of the maps there are."""
        return (self.mean, self.maximum) if self.cam is None else (self.mean, self.maximum, self.cam)


def boxes_of(dataset: Dataset, film: FilmRecord, concept: str) -> tuple[Box, ...]:
    """All boxes of one concept on one film."""
    return tuple(drawn.box for drawn in dataset.boxes_by_film.get(film.id, ()) if drawn.concept == concept)


def blind_guess(readings: Readings, concept: str) -> Guess | None:
    """Blind pointing, learnt from the training films, on the films that were read; None where those have no box."""
    tested = (replace(film, split=_TESTED) for film in readings.films)
    dataset = replace(readings.dataset, films=(*readings.dataset.in_split("train"), *tested))
    return guess(dataset, concept, (_TESTED,))


def point(readings: Readings, concept: Concept, blind: Guess) -> Iterable[Pair]:
    """Every film with a box of the concept."""
    row, cam = readings.dataset.concepts.index(concept.name), readings.cam_maps.get(concept.name)
    for place, film in enumerate(readings.films):
        boxes = boxes_of(readings.dataset, film, concept.name)
        if boxes:
            chance = _chance(readings.dataset, film, concept.name)
            yield Pair(
                film.id,
                concept.name,
                _pointed(readings.mean_maps[place, row], film, boxes),
                _pointed(readings.max_maps[place, row], film, boxes),
                None if cam is None else _pointed(cam[place], film, boxes),
                chance,
                chance if blind.point is None else float(_in_any(boxes, film, blind.point)),
            )


def _pointed(scores: Float[np.ndarray, "h w"], film: FilmRecord, boxes: tuple[Box, ...]) -> Pointed:
    x, y = peak(scores, PatchGrid(film.size, *scores.shape))
    return Pointed((x, y), any(box.contains(x, y) for box in boxes))


def _chance(dataset: Dataset, film: FilmRecord, concept: str) -> float:
    alone = replace(dataset, films=(replace(film, split=_TESTED),), boxes=dataset.boxes_by_film[film.id])
    found = guess(alone, concept, (_TESTED,))
    return 0.0 if found is None else found.random


def _in_any(boxes: tuple[Box, ...], film: FilmRecord, place: tuple[float, float]) -> bool:
    square = FilmSize(GRID, GRID)  # the frame in which the point was learnt
    return any(box.moved(film.size, square).contains(place[0] * GRID, place[1] * GRID) for box in boxes)


FRAME = 224
"""Cells each way in which energy is counted; a cell that a box covers in part counts in part."""


@dataclass(frozen=True)
class BoxEnergy:
    """One film and one concept that it has boxes of."""

    film: str
    concept: str
    share: float
    """Of the map's energy, how much lies in the concept's boxes."""
    area: float
    """Of the film's area, how much the boxes cover: the share of a map that is the same everywhere."""


def box_energies(readings: Readings) -> tuple[BoxEnergy, ...]:
    """Every film and concept with a box, concept by concept, by the mean over the concept's prototypes.

    Cosines may be negative and energy may not, so that every map is first shifted until its lowest patch is 0: what
    counts is how far a patch stands out above the least likely one. The map is then upsampled bilinearly.
    """
    return tuple(
        box_energy(readings.mean_maps[place, row], film, name, boxes)
        for row, name in enumerate(readings.dataset.concepts.names)
        for place, film in enumerate(readings.films)
        if (boxes := boxes_of(readings.dataset, film, name))
    )


def box_energy(scores: Float[np.ndarray, "h w"], film: FilmRecord, concept: str, boxes: tuple[Box, ...]) -> BoxEnergy:
    """The same of one map."""
    cells = PatchGrid(film.size, FRAME, FRAME)
    covered = np.maximum.reduce([cells.overlap(box) for box in boxes])
    area = float(covered.mean())
    shifted = scores.astype(np.float64) - scores.min()
    energy = cv2.resize(shifted, (FRAME, FRAME), interpolation=cv2.INTER_LINEAR)
    total = float(energy.sum())
    return BoxEnergy(film.id, concept, float((energy * covered).sum()) / total if total else area, area)


__all__ = ["ConceptPointing", "HitRate", "Localisation", "Pair", "Pointing", "localise"]


@dataclass(frozen=True)
class HitRate:
    """How often the highest point of a map lies in a box of its concept."""

    hits: int
    share: float
    interval: Interval | None
    """None where there is one patient only."""


@dataclass(frozen=True)
class Pointing:
    """The pointing game over some pairs or films, by each map, and what blind pointing gets on the same ones."""

    count: int
    mean: HitRate
    """By the mean over the concept's prototypes."""
    maximum: HitRate
    """By the maximum over the concept's prototypes."""
    cam: HitRate | None
    """By the CAM head, which knows no prototypes; None where one of the concepts was learnt later and has no CAM."""
    chance: float
    """A random point."""
    fixed: float | None
    """One fixed point for each concept, learnt from the training boxes; None where those have no box of it."""


@dataclass(frozen=True)
class ConceptPointing:
    """One concept."""

    name: str
    title: str
    pointing: Pointing | None
    """None where no film that was read has a box of it."""
    fixed_point: tuple[float, float] | None
    """Where the fixed point is, from 0 to 1 across and down."""


@dataclass(frozen=True)
class Localisation:
    """The pointing game, counted in two ways.

    By pair: every film and concept with a box counts once. By film: every film with a box counts once, and is hit
    when at least one of its concepts' points lies in a box of that same concept. A film with several concepts is thus
    easier by film, for the model and for blind pointing alike.
    """

    per_pair: Pointing | None
    """Over all concepts; None where no film that was read has a box."""
    per_film: Pointing | None
    concepts: tuple[ConceptPointing, ...]
    pairs: tuple[Pair, ...]
    warnings: tuple[str, ...]


def localise(readings: Readings, *, seed: int = 0) -> Localisation:
    """Play the pointing game; ``seed`` is that of the intervals' resampling."""
    films = {film.id: film for film in readings.films}
    guesses = {name: blind_guess(readings, name) for name in readings.dataset.concepts.names}
    concepts: list[ConceptPointing] = []
    pairs: list[Pair] = []
    for concept in readings.dataset.concepts:
        blind = guesses[concept.name]
        own = [] if blind is None else list(point(readings, concept, blind))
        counted = None if blind is None else _by_pair(own, films, seed, learnt=blind.point is not None)
        concepts.append(ConceptPointing(concept.name, concept.title, counted, blind.point if blind else None))
        pairs += own
    learnt = any(blind.point is not None for blind in guesses.values() if blind)
    return Localisation(
        per_pair=_by_pair(pairs, films, seed, learnt=learnt) if pairs else None,
        per_film=_by_film(pairs, films, seed, learnt=learnt) if pairs else None,
        concepts=tuple(concepts),
        pairs=tuple(pairs),
        warnings=_warnings(concepts, guesses),
    )


def _by_pair(pairs: Sequence[Pair], films: dict[str, FilmRecord], seed: int, *, learnt: bool) -> Pointing:
    blind = np.array([(pair.chance, pair.fixed) for pair in pairs])
    return _counted(_hits(pairs), blind, [films[pair.film] for pair in pairs], seed, learnt=learnt)


def _by_film(pairs: Sequence[Pair], films: dict[str, FilmRecord], seed: int, *, learnt: bool) -> Pointing:
    names, owner = np.unique([pair.film for pair in pairs], return_inverse=True)
    by_pair = _hits(pairs)
    hits = np.zeros((len(names), by_pair.shape[1]), dtype=bool)
    np.logical_or.at(hits, owner, by_pair)
    return _counted(hits, _any_of(pairs, owner), [films[str(name)] for name in names], seed, learnt=learnt)


def _hits(pairs: Sequence[Pair]) -> Bool[np.ndarray, "pairs maps"]:
    """By the mean map, the maximum map and, where every pair has one, the CAM: maps are compared on the same pairs."""
    maps = min(len(pair.pointed) for pair in pairs)
    return np.array([[one.hit for one in pair.pointed[:maps]] for pair in pairs])


def _any_of(pairs: Sequence[Pair], owner: Int[np.ndarray, " pairs"]) -> Float[np.ndarray, "films 2"]:
    """How probably at least one of the film's blind points hits: they are drawn apart from each other."""
    missed = np.ones((int(owner.max()) + 1, 2))
    np.multiply.at(missed, owner, 1 - np.array([(pair.chance, pair.fixed) for pair in pairs]))
    return np.asarray(1 - missed)


def _counted(
    hits: Bool[np.ndarray, "n maps"],
    blind: Float[np.ndarray, "n 2"],
    films: Sequence[FilmRecord],
    seed: int,
    *,
    learnt: bool,
) -> Pointing:
    rows = np.column_stack([hits, np.ones(len(hits))])
    sums = resampled_sums(rows, films, seed=seed)
    mean, maximum, *cam = (
        HitRate(
            int(hits[:, column].sum()),
            float(hits[:, column].mean()),
            None if sums is None else interval(sums[:, column] / sums[:, -1]),
        )
        for column in range(hits.shape[1])
    )
    chance, fixed = (float(share) for share in blind.mean(axis=0))
    return Pointing(len(hits), mean, maximum, cam[0] if cam else None, chance, fixed if learnt else None)


def _warnings(concepts: Sequence[ConceptPointing], guesses: dict[str, Guess | None]) -> tuple[str, ...]:
    if all(blind is None for blind in guesses.values()):
        return ("No film that was read has a box, so nothing can be said on where the maps point.",)
    return tuple(
        f"The training films have no box of {one.title}: its fixed prior is a random point in what is pooled."
        for one in concepts
        if one.pointing is not None and one.fixed_point is None
    )
