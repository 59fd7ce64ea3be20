"""From when on a box is doubted: what calibration learnt, as a run keeps it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class SafetyThresholds:
    """Learnt on the boxes of a data set: so that few correct boxes raise a false alarm, or so that right claims are
    parted from wrong ones as well as can be."""

    by_concept: Mapping[str, float]
    """By how much another concept must lead, for each concept with enough boxes to learn it from."""
    pooled: float
    """The same for every other concept, learnt from the boxes of all."""
    gate: float | None
    """Highest variance U of the leading concept at which it is believed (theta_V); None: it is always believed."""
    max_false_alarms: float | None
    """None, and no confidence either, where right and wrong claims were balanced and no rate is promised."""
    confidence: float | None
    """How surely the share of false alarms stays below ``max_false_alarms``."""
    boxes: Mapping[str, int]
    """How many patients with boxes of each concept were learnt from."""
    data_set: Mapping[str, str]
    """Name, checksum and split of what was learnt from."""

    def lead(self, concept: str) -> float:
        """By how much another concept must lead over ``concept`` to be a warning."""
        return self.by_concept.get(concept, self.pooled)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)
