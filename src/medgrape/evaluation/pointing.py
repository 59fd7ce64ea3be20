"""The pointing game, pair by pair: a film, a concept that somebody drew a box of, and where the model points."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from medgrape.concepts import Concept
from medgrape.data.dataset import Dataset, FilmRecord
from medgrape.data.guessing import GRID, Guess, guess
from medgrape.evaluation.readings import Readings
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
