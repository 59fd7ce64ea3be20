"""One stage that learns, as the loop sees it, and how everything else is kept still meanwhile."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from medgrape.config.training import Schedule
from medgrape.model.grape import Grape
from medgrape.training.films import TrainingError


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
