"""What the training loop needs from a stage, validation metrics, and how all other parts are kept frozen."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor, nn

from medgrape.config.settings import Schedule
from medgrape.model.grape import Grape
from medgrape.training.films import UNKNOWN_CLASS, TrainingError, whole_batch


@dataclass(frozen=True)
class ValidationResult:
    """Result of a model on the validation films."""

    score: float  # The score by which the best epoch is chosen; higher is better
    loss: float  # The loss, which decides between equal scores
    name: str  # Name of the score, such as `macro-F1`

    def beats(self, other: "ValidationResult | None") -> bool:
        """Return whether this result is better."""
        return other is None or (self.score, -self.loss) > (other.score, -other.loss)


class StageTraining(ABC):
    """A stage of training: its parameters, batches, loss and validation."""

    name: str  # Name of the stage in files and settings
    schedule: Schedule
    learner: nn.Module  # The module that is passed to `loss`; checkpoints contain its state
    training: list[int]  # Positions of the training films or vectors
    share: tuple[int, int] = (0, 1)  # Rank of this process and number of processes

    def steps(self) -> int:
        """Return the number of batches in an epoch."""
        return len(self.training) // whole_batch(len(self.training), self.schedule.batch, self.share[1])

    @abstractmethod
    def batches(self, epoch: int) -> Iterable[Any]:
        """Return the batches of an epoch, the same ones whenever it is run."""

    @abstractmethod
    def loss(self, learner: nn.Module, batch: Any) -> Float[Tensor, ""]:  # noqa: ANN401 (each stage has its own)
        """Compute the loss; ``learner`` may be wrapped for several processes."""

    @abstractmethod
    def validate(self) -> ValidationResult:
        """Evaluate the learner on the validation films."""


def mean_auc(scores: Float[Tensor, "n k"], labels: Float[Tensor, "n k"]) -> float:
    """Return the mean area under the ROC curve over columns with both labels; 0.5 if there are none."""
    from sklearn.metrics import roc_auc_score  # slow to import

    areas = []
    for score, label in zip(scores.T.numpy(), labels.T.numpy(), strict=True):
        known = ~np.isnan(label)
        if len(set(label[known])) == 2:
            areas.append(float(roc_auc_score(label[known], score[known])))
    return float(np.mean(areas)) if areas else 0.5


def macro_f1(predicted: Int[Tensor, " n"], truth: Int[Tensor, " n"]) -> float:
    """Return the mean F1 over the classes that occur among the films with a known class."""
    from sklearn.metrics import f1_score  # slow to import

    known = truth != UNKNOWN_CLASS
    predicted, truth = predicted[known], truth[known]
    occurring = sorted(set(truth.tolist()))
    return float(f1_score(truth, predicted, labels=occurring, average="macro", zero_division=0.0))


def balanced_accuracy(predicted: Int[Tensor, " n"], truth: Int[Tensor, " n"]) -> float:
    """Return the mean recall over the groups that occur."""
    groups = set(truth.tolist())
    return float(np.mean([float((predicted[truth == group] == group).float().mean()) for group in groups]))


def freeze_except(model: Grape, learns: Sequence[str]) -> None:
    """Freeze all but the named parts: no gradient, eval mode, no dropout, fixed batch statistics."""
    parts = dict(model.named_children())
    missing = [name for name in learns if name not in parts and name != "anchors"]
    if missing:
        raise TrainingError(f"The model has no part {missing[0]!r} to train.")
    for name, part in parts.items():
        part.requires_grad_(name in learns)
        part.train(name in learns)
    model.backbone.parts[: model.backbone.frozen_parts].requires_grad_(False)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module into eval mode, and restore the mode of every part afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
