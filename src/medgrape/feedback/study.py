"""One film in front of one model. Immutable: every question is answered from the same evidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from medgrape.data.film import Film
from medgrape.explain.assembling import explain
from medgrape.explain.explanation import Explanation
from medgrape.model.checkpoint import Run
from medgrape.model.evidence import Evidence
from medgrape.model.grape import Prediction


@dataclass(frozen=True)
class Study:
    """A film, what the model found on it, and what it makes of that."""

    run: Run
    film: Film
    """Whole, upright, in its original pixels."""
    evidence: Evidence

    @cached_property
    def judged(self) -> Prediction:
        """What the head makes of the evidence."""
        with torch.no_grad():
            return self.run.model.judge(self.evidence.scores.unsqueeze(0))

    @property
    def prediction(self) -> Mapping[str, float]:
        """Class to probability, the likeliest first."""
        shares = dict(zip(self.run.classes, _row(self.judged.probabilities), strict=True))
        return dict(sorted(shares.items(), key=lambda one: -one[1]))

    def explain(self) -> Explanation:
        """Ranked concepts with maps, the training films behind them, and who listened to whom."""
        return explain(self.run, self.film, self.evidence, self.judged)


def _row(batch: Tensor) -> list[float]:
    return [float(value) for value in batch[0]]
