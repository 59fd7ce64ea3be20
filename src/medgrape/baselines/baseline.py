"""What every method that GRAPE is compared with has in common: film in, classes and one map for each concept out."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from medgrape.model.backbone import Backbone


class Seen(NamedTuple):
    """What a method says about a batch of films; a tuple, because Lightning passes no frozen dataclass on."""

    logits: Float[Tensor, "b classes"]
    maps: Float[Tensor, "b k h w"]
    """Where it sees each concept, on a scale of its own: only places on one map can be compared."""


class Baseline(nn.Module, ABC):
    """A backbone and what a method puts on top of it."""

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    @abstractmethod
    def judge(self, features: Float[Tensor, "b c h w"]) -> Seen:
        """Classes and maps from what the backbone makes of films."""

    def forward(self, activations: Float[Tensor, "b c1 h1 w1"]) -> Seen:
        """The same from what the backbone's frozen parts make of films, as in training."""
        return self.judge(self.backbone.late(activations))

    def read(self, films: Float[Tensor, "b 1 side side"]) -> Seen:
        """Classes and maps from films."""
        return self.judge(self.backbone(films))
