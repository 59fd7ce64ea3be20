"""How often a point hits a finding without anybody looking at the film: what every pointing figure must beat."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from medgrape.concepts import ConceptSet
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.geometry import Box, FilmSize


@dataclass(frozen=True)
class CoOccurrence:
    """``probability[k, j]`` is P(k given j) over films where both labels are known; ``counts[j]`` films show j."""

    concepts: ConceptSet
    counts: Float[np.ndarray, " k"]
    probability: Float[np.ndarray, "k k"]

    def edges(self, tau: float) -> Bool[np.ndarray, "k k"]:
        """Concept k listens to j where P(k given j) exceeds ``tau``, and every concept listens to itself."""
        return np.asarray((self.probability > tau) | np.eye(len(self.concepts), dtype=bool))


def co_occurrence(dataset: Dataset) -> CoOccurrence:
    """From the films that may be learnt from: training and validation, never test."""
    return co_occurrence_of(dataset.label_matrix(dataset.in_split("train", "val")), dataset.concepts)


def co_occurrence_of(labels: Float[np.ndarray, "films k"], concepts: ConceptSet) -> CoOccurrence:
    """From rows of 1, 0 and NaN (not known). The denominator is at least 1, as in the paper."""
    present = np.nan_to_num(labels)
    known = (~np.isnan(labels)).astype(np.float64)
    together = present.T @ present
    given = known.T @ present  # films that show j and on which k is known either way
    return CoOccurrence(concepts, present.sum(axis=0), together / np.maximum(given, 1.0))


GRID = 64
"""Candidate points each way; the middle of each cell of the film, stretched to a square."""


@dataclass(frozen=True)
class Guess:
    """Share of film-concept pairs that a blind point hits."""

    pairs: int
    random: float
    """A point anywhere on the film with equal chance."""
    fixed: float | None
    """The one point that hits most pairs of the training films; None where those have no box."""
    point: tuple[float, float] | None
    """Where that is, from 0 to 1 across and down."""


def guess(dataset: Dataset, concept: str, tested_on: Sequence[str] = ("test",)) -> Guess | None:
    """Blind pointing for one concept; None where there is no box of it to test on."""
    learnt = _coverage(dataset, concept, dataset.in_split("train"))
    tested = _coverage(dataset, concept, dataset.in_split(*tested_on))
    if len(tested) == 0:
        return None
    if len(learnt) == 0:
        return Guess(len(tested), float(tested.mean()), None, None)
    row, column = np.unravel_index(int(learnt.mean(axis=0).argmax()), (GRID, GRID))
    point = (float(column) + 0.5) / GRID, (float(row) + 0.5) / GRID
    return Guess(len(tested), float(tested.mean()), float(tested[:, row, column].mean()), point)


def _coverage(dataset: Dataset, concept: str, films: Iterable[FilmRecord]) -> Float[np.ndarray, "pairs grid grid"]:
    """For each film with the concept: 1 at every candidate point inside one of its boxes."""
    square = FilmSize(GRID, GRID)
    covered = []
    for film in films:
        drawn = [d.box for d in dataset.boxes_by_film.get(film.id, ()) if d.concept == concept]
        if drawn:
            covered.append(np.maximum.reduce([_inside(box.moved(film.size, square)) for box in drawn]))
    return np.array(covered, dtype=np.float32).reshape(-1, GRID, GRID)


def _inside(box: Box) -> Float[np.ndarray, "grid grid"]:
    middles = np.arange(GRID) + 0.5
    across = (middles >= box.x1) & (middles < box.x2)
    down = (middles >= box.y1) & (middles < box.y2)
    return np.outer(down, across).astype(np.float32)
