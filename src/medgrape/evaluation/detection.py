"""Does a concept's score tell films that show the finding from films that do not?"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from medgrape.evaluation.readings import Readings

CHANCE_AUC = 0.5


@dataclass(frozen=True)
class ConceptDetection:
    """One concept, over the films on which it is known to be present or absent."""

    name: str
    title: str
    known: int
    present: int
    auc: float | None
    """A score that knows nothing has 0.5. None where no film, or every film, shows the finding."""
    average_precision: float | None
    """None where no film, or every film, shows the finding."""
    prevalence: float | None
    """Share of films that show it: the average precision of a score that knows nothing. None where none is known."""


@dataclass(frozen=True)
class Detection:
    """All concepts in the vocabulary's order, and their means over those that have a figure."""

    concepts: tuple[ConceptDetection, ...]
    mean_auc: float | None
    mean_average_precision: float | None
    mean_prevalence: float | None
    """Over the same concepts: what the mean average precision must beat."""
    warnings: tuple[str, ...]


def detect(readings: Readings) -> Detection:
    """Compare scores with labels; films whose label is not known count neither way."""
    labels = readings.dataset.label_matrix(readings.films)
    found = []
    for place, concept in enumerate(readings.dataset.concepts):
        known = ~np.isnan(labels[:, place])
        present = labels[known, place] == 1
        found.append(_concept(concept.name, concept.title, present, readings.scores[known, place]))
    told = [one for one in found if one.auc is not None]
    warnings = [
        f"Detection of {one.title} has no figure: {one.present} of {one.known} films with a known label show it."
        for one in found
        if one.auc is None
    ]
    return Detection(
        tuple(found),
        _mean([one.auc for one in told]),
        _mean([one.average_precision for one in told]),
        _mean([one.prevalence for one in told]),
        tuple(warnings),
    )


def _concept(
    name: str, title: str, present: Bool[np.ndarray, " films"], scores: Float[np.ndarray, " films"]
) -> ConceptDetection:
    from sklearn.metrics import average_precision_score, roc_auc_score  # slow to import

    known, shown = len(present), int(present.sum())
    prevalence = shown / known if known else None
    if not 0 < shown < known:
        return ConceptDetection(name, title, known, shown, None, None, prevalence)
    auc, precision = roc_auc_score(present, scores), average_precision_score(present, scores)
    return ConceptDetection(name, title, known, shown, float(auc), float(precision), prevalence)


def _mean(values: list[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None
