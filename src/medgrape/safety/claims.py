"""Every claim that a person could make about a box, right or wrong, and the claims at which a safety check warns.

A claim is wrong if it names another concept than the box was drawn for. It is left out, as neither right nor wrong, if
the film has a box of that other concept in nearly the same place.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from medgrape.concepts import ConceptSet
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.geometry import Box
from medgrape.runs.checkpoint import SafetyRule
from medgrape.safety.boxes import MeasuredBox
from medgrape.safety.check import Comparison, compare

SAME_PLACE = 0.5  # boxes with a larger intersection over union are in nearly the same place
Alarms = Bool[np.ndarray, "boxes claims"]
"""Whether a check warns, for every box and every concept of the data set that it may be claimed to show."""


@dataclass(frozen=True)
class AlarmRates:
    """Rates at which a check warns."""

    caught: float | None  # fraction of wrong claims with a warning; None if there are no wrong claims
    false_alarms: float  # fraction of right claims with a warning

    @property
    def balanced(self) -> float | None:
        """(caught + 1 - false alarms) / 2; a check that ignores the film gets 0.5."""
        return None if self.caught is None else (self.caught + 1 - self.false_alarms) / 2


@dataclass(frozen=True)
class SimulatedClaims:
    """All claims about some boxes."""

    concepts: ConceptSet  # concepts of the data set; the places of other concepts are not known
    films: tuple[FilmRecord, ...]  # the film of each box
    truth: Int[np.ndarray, " boxes"]  # index of the concept that each box was drawn for
    wrong: Bool[np.ndarray, "boxes claims"]
    left_out: int  # number of claims that are neither right nor wrong

    @classmethod
    def on(cls, boxes: Sequence[MeasuredBox], dataset: Dataset) -> "SimulatedClaims":
        """Return all claims about these boxes."""
        names = dataset.concepts.names
        truth = np.array([dataset.concepts.index(box.concept) for box in boxes], dtype=np.int64)
        other = np.arange(len(names)) != truth[:, None]
        present = np.zeros(other.shape, dtype=bool)
        for row, box in enumerate(boxes):
            neighbours = dataset.boxes_by_film[box.film.id]
            same_place = {drawn.concept for drawn in neighbours if iou(box.box, drawn.box) > SAME_PLACE}
            present[row] = [name in same_place for name in names]
        films = tuple(box.film for box in boxes)
        return cls(dataset.concepts, films, truth, other & ~present, int((other & present).sum()))

    def caught(self, alarms: Alarms) -> Float[np.ndarray, " boxes"]:
        """Return the fraction of each box's wrong claims with a warning; 0 for a box without wrong claims."""
        return np.asarray((alarms & self.wrong).sum(axis=1) / np.maximum(self.wrong.sum(axis=1), 1))

    def false_alarms(self, alarms: Alarms) -> Bool[np.ndarray, " boxes"]:
        """Return whether the right claim about each box causes a warning."""
        return np.asarray(alarms[np.arange(len(self.truth)), self.truth])

    def rates(self, alarms: Alarms) -> AlarmRates:
        """Return the rates over all boxes, at least one; the wrong claims about a box together count as one."""
        has_wrong = self.wrong.any(axis=1)
        caught = float(self.caught(alarms)[has_wrong].mean()) if has_wrong.any() else None
        return AlarmRates(caught, float(self.false_alarms(alarms).mean()))

    def rates_of(self, concept: str, alarms: Alarms) -> AlarmRates | None:
        """Return the rates over the claims that name one concept; None if no box shows it."""
        shown = self.shows(concept)
        if not shown.any():
            return None
        column = self.concepts.index(concept)
        wrong = alarms[self.wrong[:, column], column]
        return AlarmRates(float(wrong.mean()) if wrong.size else None, float(alarms[shown, column].mean()))

    def shows(self, concept: str) -> Bool[np.ndarray, " boxes"]:
        """Return which boxes were drawn for a concept; none for a concept that the data set does not have."""
        return np.asarray(np.array(self.concepts.names)[self.truth] == concept)


def compare_boxes(boxes: Sequence[MeasuredBox], known: ConceptSet, claimed: ConceptSet, rule: SafetyRule) -> Comparison:
    """Apply the rule to every claim about every box; ``known`` are the concepts of the model."""
    means = np.array([box.means.tolist() for box in boxes]).reshape(len(boxes), len(known))
    variances = np.array([box.variances.tolist() for box in boxes]).reshape(means.shape)
    return compare(means, variances, known, claimed.names, rule)


def alarms(boxes: Sequence[MeasuredBox], known: ConceptSet, claimed: ConceptSet, rule: SafetyRule) -> Alarms:
    """Return the claims at which the rule warns."""
    return compare_boxes(boxes, known, claimed, rule).warns


def most_frequent_concept(dataset: Dataset) -> str | None:
    """Return the concept of most boxes on training films, the first of several; None without boxes."""
    trained = {film.id for film in dataset.in_split("train")}
    counts = Counter(drawn.concept for drawn in dataset.boxes if drawn.film in trained)
    return max(dataset.concepts.names, key=lambda name: counts[name]) if counts else None


def majority_alarms(answer: str, claims: SimulatedClaims) -> Alarms:
    """Return the alarms of a trivial check, which ignores the film and warns unless ``answer`` is claimed."""
    return np.tile(np.array(claims.concepts.names) != answer, (len(claims.truth), 1))


def iou(box: Box, other: Box) -> float:
    """Return the intersection over union of two boxes."""
    width = min(box.x2, other.x2) - max(box.x1, other.x1)
    height = min(box.y2, other.y2) - max(box.y1, other.y1)
    intersection = max(width, 0.0) * max(height, 0.0)
    return intersection / (box.area + other.area - intersection)
