"""Everything that somebody could say a box shows, rightly or wrongly, and at which of it a safety check warns.

A claim is wrong when another concept is named than the one the box was drawn for. One kind of wrong claim is left out:
where the film has a box of that other concept in nearly the same place, for nobody could call it wrong.
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

SAME_PLACE = 0.5
"""Two boxes whose intersection is more than this share of their union are in nearly the same place."""
Alarms = Bool[np.ndarray, "boxes claims"]
"""Whether a check warns, for every box and every concept of the data set that it may be claimed to show."""


@dataclass(frozen=True)
class Counted:
    """How a check does on some claims."""

    caught: float | None
    """Share of wrong claims that it warns at; None where there are none."""
    false_alarms: float
    """Share of right claims that it warns at."""

    @property
    def balanced(self) -> float | None:
        """(caught + 1 - false alarms) / 2: what is known of a claim by looking, 0.5 being nothing."""
        return None if self.caught is None else (self.caught + 1 - self.false_alarms) / 2


@dataclass(frozen=True)
class SimulatedClaims:
    """Some boxes, what each shows, and what it certainly does not."""

    concepts: ConceptSet
    """Of the data set: of a concept that it does not know, nobody can say where it is not."""
    films: tuple[FilmRecord, ...]
    """One for each box."""
    truth: Int[np.ndarray, " boxes"]
    wrong: Bool[np.ndarray, "boxes claims"]
    left_out: int
    """Claims that are neither wrong nor what the box was drawn for."""

    @classmethod
    def on(cls, seen: Sequence[MeasuredBox], dataset: Dataset) -> "SimulatedClaims":
        """All claims on these boxes."""
        truth = np.array([dataset.concepts.index(one.concept) for one in seen], dtype=np.int64)
        other = np.arange(len(dataset.concepts)) != truth[:, None]
        also_true = np.array([_also_true(one, dataset) for one in seen], dtype=bool).reshape(other.shape)
        films = tuple(one.film for one in seen)
        return cls(dataset.concepts, films, truth, other & ~also_true, int((other & also_true).sum()))

    def caught(self, alarms: Alarms) -> Float[np.ndarray, " boxes"]:
        """How probably a wrong claim drawn at random is warned at; 0 where a box has none."""
        return np.asarray((alarms & self.wrong).sum(axis=1) / np.maximum(self.wrong.sum(axis=1), 1))

    def false_alarms(self, alarms: Alarms) -> Bool[np.ndarray, " boxes"]:
        """Whether the right claim is warned at."""
        return np.asarray(alarms[np.arange(len(self.truth)), self.truth])

    def counted(self, alarms: Alarms) -> Counted:
        """Both shares over all boxes, of which there must be at least one; a box's wrong claims count as one."""
        refutable = self.wrong.any(axis=1)
        caught = float(self.caught(alarms)[refutable].mean()) if refutable.any() else None
        return Counted(caught, float(self.false_alarms(alarms).mean()))

    def naming(self, concept: str, alarms: Alarms) -> Counted | None:
        """Both shares over the claims that name one concept; None where no box shows it."""
        shown = self.shows(concept)
        if not shown.any():
            return None
        place = self.concepts.index(concept)
        refuted = alarms[self.wrong[:, place], place]
        return Counted(float(refuted.mean()) if refuted.size else None, float(alarms[shown, place].mean()))

    def shows(self, concept: str) -> Bool[np.ndarray, " boxes"]:
        """Which boxes were drawn for a concept; none, where the data set does not know it."""
        names = np.array(self.concepts.names)[self.truth]
        return np.asarray(names == concept)


def leads(seen: Sequence[MeasuredBox], known: ConceptSet, claimed: ConceptSet, rule: SafetyRule) -> Float[
    np.ndarray, "boxes claims"
]:  # fmt: skip
    """By how much the strongest other concept leads over each that may be claimed; below 0 where that one leads itself,
    minus infinity where the other is not believed.

    The same as ``safety.judge`` says one claim at a time.
    """
    means = np.array([one.means.tolist() for one in seen]).reshape(len(seen), len(known))
    variances = np.array([one.variances.tolist() for one in seen]).reshape(means.shape)
    taught = np.array([name not in rule.untrained for name in known.names])
    found = np.full((len(seen), len(claimed)), -np.inf)
    for column, row in enumerate(known.index(name) for name in claimed.names):
        rivals = np.flatnonzero(taught & (np.arange(len(known)) != row))
        if rivals.size:
            rival = rivals[means[:, rivals].argmax(axis=1)][:, None]
            gaps = np.take_along_axis(means, rival, axis=1)[:, 0] - means[:, row]
            believed = np.take_along_axis(variances, rival, axis=1)[:, 0] <= rule.gate
            found[:, column] = np.where(believed, gaps, -np.inf)
    return found


def alarms(seen: Sequence[MeasuredBox], known: ConceptSet, claimed: ConceptSet, rule: SafetyRule) -> Alarms:
    """Where the rule warns."""
    allowed = np.array([rule.lead(name) for name in claimed.names])
    return np.asarray(leads(seen, known, claimed, rule) > allowed)


def most_frequent_concept(dataset: Dataset) -> str | None:
    """What most boxes of the training films show (the first of them, where several are): a check's trivial answer."""
    trained = {film.id for film in dataset.in_split("train")}
    counts = Counter(drawn.concept for drawn in dataset.boxes if drawn.film in trained)
    return max(dataset.concepts.names, key=lambda name: counts[name]) if counts else None


def majority_alarms(answer: str, claims: SimulatedClaims) -> Alarms:
    """A check that looks at no film: it warns at everything but its one answer."""
    other = np.array([name != answer for name in claims.concepts.names])
    return np.tile(other, (len(claims.truth), 1))


def _also_true(one: MeasuredBox, dataset: Dataset) -> list[bool]:
    there = dataset.boxes_by_film[one.film.id]
    drawn = {other.concept for other in there if likeness(one.box, other.box) > SAME_PLACE}
    return [name in drawn for name in dataset.concepts.names]


def likeness(one: Box, other: Box) -> float:
    """Intersection over union: 1 the same place, 0 apart."""
    wide = min(one.x2, other.x2) - max(one.x1, other.x1)
    high = min(one.y2, other.y2) - max(one.y1, other.y1)
    shared = max(wide, 0.0) * max(high, 0.0)
    return shared / (one.area + other.area - shared)
