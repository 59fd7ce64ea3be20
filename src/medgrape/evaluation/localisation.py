"""Pointing game and box energy: do a concept's maps locate the finding, and better than pointing without the film?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
from jaxtyping import Float

from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.datasets.statistics import GRID, BlindPointing, blind_pointing
from medgrape.evaluation.readings import Readings
from medgrape.evaluation.statistics import Interval, interval, resampled_sums
from medgrape.geometry import Box, FilmSize, PatchGrid, peak

_TESTED = "tested"  # name of a temporary split, so that blind pointing is tested on the films that were read
FRAME = 224  # rows and columns of cells in which energy is counted; a cell may be covered in part


@dataclass(frozen=True)
class Pointed:
    """The highest point of a map in film pixels, and whether a box of its concept contains it."""

    point: tuple[float, float]
    hit: bool


@dataclass(frozen=True)
class Pair:
    """One film and one concept that it has boxes of."""

    film: str
    concept: str
    mean: Pointed  # by the mean over the concept's prototypes
    maximum: Pointed  # by the maximum over the concept's prototypes
    cam: Pointed | None  # by the CAM head's logits; None for a concept that was learned after training
    chance: float  # probability that a random point hits
    fixed: float
    """1 if the concept's fixed point hits, else 0; equal to ``chance`` if training has no box to learn it from."""

    @property
    def pointed(self) -> tuple[Pointed, ...]:
        """The points of all maps."""
        return (self.mean, self.maximum) if self.cam is None else (self.mean, self.maximum, self.cam)


def boxes_of(dataset: Dataset, film: FilmRecord, concept: str) -> tuple[Box, ...]:
    """Return all boxes of one concept on one film."""
    return tuple(drawn.box for drawn in dataset.boxes_by_film.get(film.id, ()) if drawn.concept == concept)


def highest_point(scores: Float[np.ndarray, "h w"], film: FilmRecord, boxes: tuple[Box, ...]) -> Pointed:
    """Locate the highest point of a map on the film."""
    x, y = peak(scores, PatchGrid(film.size, *scores.shape))
    return Pointed((x, y), any(box.contains(x, y) for box in boxes))


def _blind_pointing(readings: Readings, concept: str) -> BlindPointing | None:
    """Learn blind pointing from the training films and test it on the films that were read; None without boxes."""
    tested = (replace(film, split=_TESTED) for film in readings.films)
    dataset = replace(readings.dataset, films=(*readings.dataset.in_split("train"), *tested))
    return blind_pointing(dataset, concept, (_TESTED,))


def _pairs(readings: Readings, concept: str, blind: BlindPointing) -> Iterator[Pair]:
    """Yield every film with a box of the concept."""
    dataset, cam, square = readings.dataset, readings.cam_maps.get(concept), FilmSize(GRID, GRID)
    row = dataset.concepts.index(concept)
    for place, film in enumerate(readings.films):
        boxes = boxes_of(dataset, film, concept)
        if boxes:
            alone = replace(dataset, films=(replace(film, split=_TESTED),), boxes=dataset.boxes_by_film[film.id])
            uniform = blind_pointing(alone, concept, (_TESTED,))
            chance = fixed = 0.0 if uniform is None else uniform.random
            if blind.point is not None:  # from 0 to 1, in the frame of a film stretched to a square
                x, y = blind.point[0] * GRID, blind.point[1] * GRID
                fixed = float(any(box.moved(film.size, square).contains(x, y) for box in boxes))
            yield Pair(
                film=film.id,
                concept=concept,
                mean=highest_point(readings.mean_maps[place, row], film, boxes),
                maximum=highest_point(readings.max_maps[place, row], film, boxes),
                cam=None if cam is None else highest_point(cam[place], film, boxes),
                chance=chance,
                fixed=fixed,
            )


@dataclass(frozen=True)
class BoxEnergy:
    """One film and one concept that it has boxes of."""

    film: str
    concept: str
    share: float  # share of the map's energy inside the concept's boxes
    area: float  # share of the film's area inside the boxes: the energy of a constant map


def box_energies(readings: Readings) -> tuple[BoxEnergy, ...]:
    """Compute the box energy of the mean map for every film and concept with a box, concept by concept."""
    return tuple(
        box_energy(readings.mean_maps[place, row], film, name, boxes)
        for row, name in enumerate(readings.dataset.concepts.names)
        for place, film in enumerate(readings.films)
        if (boxes := boxes_of(readings.dataset, film, name))
    )


def box_energy(scores: Float[np.ndarray, "h w"], film: FilmRecord, concept: str, boxes: tuple[Box, ...]) -> BoxEnergy:
    """Compute the share of one map's energy inside the boxes.

    Cosines may be negative but energy may not, so the map is shifted until its lowest patch is 0, then upsampled
    bilinearly.
    """
    cells = PatchGrid(film.size, FRAME, FRAME)
    covered = np.maximum.reduce([cells.overlap(box) for box in boxes])
    area = float(covered.mean())
    shifted = scores.astype(np.float64) - scores.min()
    energy = cv2.resize(shifted, (FRAME, FRAME), interpolation=cv2.INTER_LINEAR)
    total = float(energy.sum())
    return BoxEnergy(film.id, concept, float((energy * covered).sum()) / total if total else area, area)


@dataclass(frozen=True)
class HitRate:
    """How often the highest point of a map lies in a box of its concept."""

    hits: int
    share: float
    interval: Interval | None  # None for a single patient


@dataclass(frozen=True)
class Pointing:
    """The pointing game over some pairs or films: each kind of map, and blind pointing on the same ones."""

    count: int
    mean: HitRate
    maximum: HitRate
    cam: HitRate | None  # None if one of the concepts was learned after training, and so has no CAM
    chance: float  # a random point
    fixed: float | None  # one fixed point for each concept, learned from the training boxes; None without such boxes


@dataclass(frozen=True)
class ConceptPointing:
    """The pointing game for one concept."""

    name: str
    title: str
    pointing: Pointing | None  # None if no film that was read has a box of it
    fixed_point: tuple[float, float] | None  # from 0 to 1 across and down


@dataclass(frozen=True)
class Localisation:
    """The pointing game, counted in two ways.

    By pair: every film and concept with a box counts once. By film: every film with a box counts once, and is a hit if
    at least one of its concepts' points lies in a box of that concept. A film with several concepts is thus easier by
    film, for the model and for blind pointing alike.
    """

    per_pair: Pointing | None  # over all concepts; None if no film that was read has a box
    per_film: Pointing | None
    concepts: tuple[ConceptPointing, ...]
    pairs: tuple[Pair, ...]
    warnings: tuple[str, ...]


def localise(readings: Readings, *, seed: int = 0) -> Localisation:
    """Play the pointing game; ``seed`` is that of the resampling for the intervals."""
    films = {film.id: film for film in readings.films}
    concepts: list[ConceptPointing] = []
    pairs: list[Pair] = []
    for concept in readings.dataset.concepts:
        blind, pointing = _blind_pointing(readings, concept.name), None
        if blind is not None:
            own = list(_pairs(readings, concept.name, blind))
            pointing = _play(own, films, seed, has_fixed=blind.point is not None)
            pairs += own
        concepts.append(ConceptPointing(concept.name, concept.title, pointing, blind.point if blind else None))
    has_fixed = any(concept.fixed_point is not None for concept in concepts)
    if pairs:
        warnings = tuple(
            f"The training films have no box of {concept.title}: its fixed prior is a random point in what is pooled."
            for concept in concepts
            if concept.pointing is not None and concept.fixed_point is None
        )
    else:
        warnings = ("No film that was read has a box, so nothing can be said on where the maps point.",)
    return Localisation(
        per_pair=_play(pairs, films, seed, has_fixed=has_fixed) if pairs else None,
        per_film=_play(pairs, films, seed, has_fixed=has_fixed, by_film=True) if pairs else None,
        concepts=tuple(concepts),
        pairs=tuple(pairs),
        warnings=warnings,
    )


def _play(
    pairs: Sequence[Pair], films: dict[str, FilmRecord], seed: int, *, has_fixed: bool, by_film: bool = False
) -> Pointing:
    maps = min(len(pair.pointed) for pair in pairs)  # the CAM counts only if every pair has one
    hits = np.array([[pointed.hit for pointed in pair.pointed[:maps]] for pair in pairs])
    blind = np.array([(pair.chance, pair.fixed) for pair in pairs])
    names = [pair.film for pair in pairs]
    if by_film:
        unique, owner = np.unique(names, return_inverse=True)
        names, hits_of_pairs, missed = unique.tolist(), hits, np.ones((len(unique), 2))
        hits = np.zeros((len(unique), maps), dtype=bool)
        np.logical_or.at(hits, owner, hits_of_pairs)
        np.multiply.at(missed, owner, 1 - blind)  # the blind points of a film's concepts are independent
        blind = 1 - missed
    sums = resampled_sums(np.column_stack([hits, np.ones(len(hits))]), [films[name] for name in names], seed=seed)
    mean, maximum, *cam = (
        HitRate(
            int(hits[:, column].sum()),
            float(hits[:, column].mean()),
            None if sums is None else interval(sums[:, column] / sums[:, -1]),
        )
        for column in range(maps)
    )
    chance, fixed = (float(share) for share in blind.mean(axis=0))
    return Pointing(len(hits), mean, maximum, cam[0] if cam else None, chance, fixed if has_fixed else None)
