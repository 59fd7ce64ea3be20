"""Statistics of labels and boxes: co-occurrence of concepts, and how often blind pointing hits a finding."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from medgrape.concepts import ConceptSet
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.geometry import FilmSize

GRID = 64  # candidate points along each side: the centres of the cells of a film that is stretched to a square


@dataclass(frozen=True)
class CoOccurrence:
    """``probability[k, j]`` is P(k given j) over films where both labels are known; ``counts[j]`` films show j."""

    concepts: ConceptSet
    counts: Float[np.ndarray, " k"]
    probability: Float[np.ndarray, "k k"]

    def edges(self, tau: float) -> Bool[np.ndarray, "k k"]:
        """Return the edges from j to k where P(k given j) exceeds ``tau``, and all self-loops."""
        return np.asarray((self.probability > tau) | np.eye(len(self.concepts), dtype=bool))


def co_occurrence(dataset: Dataset) -> CoOccurrence:
    """Return the co-occurrence on the training and validation films, never on test films."""
    return co_occurrence_of(dataset.label_matrix(dataset.in_split("train", "val")), dataset.concepts)


def co_occurrence_of(labels: Float[np.ndarray, "films k"], concepts: ConceptSet) -> CoOccurrence:
    """Return the co-occurrence of rows of 1, 0 and NaN (not known); the denominator is at least 1, as in the paper."""
    present = np.nan_to_num(labels)
    known = (~np.isnan(labels)).astype(np.float64)
    together = present.T @ present
    given = known.T @ present  # films that show j and on which k is known
    return CoOccurrence(concepts, present.sum(axis=0), together / np.maximum(given, 1.0))


@dataclass(frozen=True)
class BlindPointing:
    """Share of pairs of film and concept that blind pointing hits: the baseline of every pointing metric."""

    pairs: int
    random: float  # hit rate of a uniformly random point
    fixed: float | None  # hit rate of the point that hits most pairs of the training films, if those have a box
    point: tuple[float, float] | None  # that point, from 0 to 1 across and down


def blind_pointing(dataset: Dataset, concept: str, tested_on: Sequence[str] = ("test",)) -> BlindPointing | None:
    """Return the blind pointing baseline of one concept; None where it has no box to test on."""
    train = _coverage(dataset, concept, dataset.in_split("train"))
    test = _coverage(dataset, concept, dataset.in_split(*tested_on))
    if len(test) == 0:
        return None
    if len(train) == 0:
        return BlindPointing(len(test), float(test.mean()), None, None)
    row, column = np.unravel_index(int(train.mean(axis=0).argmax()), (GRID, GRID))
    point = (float(column) + 0.5) / GRID, (float(row) + 0.5) / GRID
    return BlindPointing(len(test), float(test.mean()), float(test[:, row, column].mean()), point)


def _coverage(dataset: Dataset, concept: str, films: Iterable[FilmRecord]) -> Float[np.ndarray, "pairs grid grid"]:
    """For each film with the concept: 1 at every candidate point inside one of its boxes."""
    square, centres = FilmSize(GRID, GRID), np.arange(GRID) + 0.5
    covered = []
    for film in films:
        boxes = [drawn.box for drawn in dataset.boxes_by_film.get(film.id, ()) if drawn.concept == concept]
        if boxes:
            inside = np.zeros((GRID, GRID), bool)
            for box in (box.moved(film.size, square) for box in boxes):
                across, down = (centres >= box.x1) & (centres < box.x2), (centres >= box.y1) & (centres < box.y2)
                inside |= np.outer(down, across)
            covered.append(inside)
    return np.array(covered, dtype=np.float32).reshape(-1, GRID, GRID)
