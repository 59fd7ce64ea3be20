"""Scores on a common scale before the head: cosines differ by hundredths, which no head should have to find out."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True)
class Verdict:
    """Classes, and whom each concept listened to."""

    logits: Float[Tensor, "b classes"]
    attention: Float[Tensor, "b k k"] | None
    """How much each concept (row) listened to each (column); None where the head does not choose."""


class Standard(nn.Module):
    """Takes away the mean over training films and divides by their spread. Nothing learns; it starts as no change."""

    mean: Tensor
    spread: Tensor

    def __init__(self, concepts: int, prototypes: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(concepts, prototypes))
        self.register_buffer("spread", torch.ones(concepts, 1))

    def forward(self, scores: Float[Tensor, "b k m"]) -> Float[Tensor, "b k m"]:
        """The same scores, centred and scaled."""
        return (scores - self.mean) / self.spread

    @torch.no_grad()
    def fit(self, scores: Float[Tensor, "n k m"]) -> None:
        """Mean of each prototype, one spread for each concept: what prototypes agree on stays visible."""
        self.mean.copy_(scores.mean(dim=0))
        self.spread.copy_((scores - self.mean).square().mean(dim=(0, 2)).sqrt().clamp_min(1e-6).unsqueeze(1))
