"""How labels go together: counts, and the graph of which finding tells of which other (paper section 3.2)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from medgrape.concepts import ConceptSet
from medgrape.data.dataset import Dataset


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
