"""One stage that learns, as the loop sees it, and how everything else is kept still meanwhile."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor, nn

from medgrape.config.training import Schedule
from medgrape.model.grape import Grape
from medgrape.training.films import TrainingError


def mean_auc(scores: Float[Tensor, "n k"], labels: Float[Tensor, "n k"]) -> float:
    """Mean area under the ROC curve over the columns that have both answers; 0.5, a coin, where none has."""
    from sklearn.metrics import roc_auc_score  # slow to import

    areas = []
    for score, label in zip(scores.T.numpy(), labels.T.numpy(), strict=True):
        known = ~np.isnan(label)
        if len(set(label[known])) == 2:
            areas.append(float(roc_auc_score(label[known], score[known])))
    return float(np.mean(areas)) if areas else 0.5


def macro_f1(predicted: Int[Tensor, " n"], truth: Int[Tensor, " n"]) -> float:
    """Mean F1 over the classes that occur, as in every evaluation."""
    from sklearn.metrics import f1_score  # slow to import

    occurring = sorted(set(truth.tolist()))
    return float(f1_score(truth, predicted, labels=occurring, average="macro", zero_division=0.0))


def balanced_accuracy(predicted: Int[Tensor, " n"], truth: Int[Tensor, " n"]) -> float:
    """Mean share of right answers over the groups that occur."""
    groups = set(truth.tolist())
    return float(np.mean([float((predicted[truth == group] == group).float().mean()) for group in groups]))


@dataclass(frozen=True)
class Figure:
    """How a model does on validation films."""

    score: float
    """What the model is chosen by; higher is better."""
    loss: float
    """Decides between equal scores."""
    name: str
    """What the score is: ``macro-F1``."""

    def beats(self, other: "Figure | None") -> bool:
        """Whether this one is better."""
        return other is None or (self.score, -self.loss) > (other.score, -other.loss)


@runtime_checkable
class Lesson(Protocol):
    """A stage: what learns, from which batches, by which loss, judged by which figure."""

    @property
    def name(self) -> str:
        """What files and settings call it."""
        ...

    @property
    def schedule(self) -> Schedule:
        """How long and how fast."""
        ...

    @property
    def learner(self) -> nn.Module:
        """Called by ``loss``; its state is what a checkpoint keeps."""
        ...

    def steps(self) -> int:
        """Batches in an epoch."""
        ...

    def batches(self, epoch: int) -> Iterable[Any]:
        """The batches of one epoch, the same whenever the epoch is run."""
        ...

    def loss(self, learner: nn.Module, batch: Any) -> Float[Tensor, ""]:  # noqa: ANN401 (each lesson has its own)
        """What to minimise; ``learner`` may be wrapped for several processes."""
        ...

    def validate(self) -> Figure:
        """How good the learner is now."""
        ...


def hold_still(model: Grape, learns: Sequence[str]) -> None:
    """Let the named parts learn. All others get no gradient and are in eval mode: no dropout, no moving statistics."""
    parts = dict(model.named_children())
    missing = [name for name in learns if name not in parts and name != "anchors"]
    if missing:
        raise TrainingError(f"The model has no part {missing[0]!r} to learn.")
    for name, part in parts.items():
        part.requires_grad_(name in learns)
        part.train(name in learns)
    model.backbone.parts[: model.backbone.frozen_parts].requires_grad_(False)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Eval mode for a while; every part goes back to the mode that it was in."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
