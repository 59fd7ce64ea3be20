"""The protocol of heads, which turn the score matrix into class logits, and the layers that several heads share."""

from dataclasses import dataclass
from functools import partial
from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.model.graph import ConceptGraph
from medgrape.plugins import register

HIDDEN, ATTENTION_HEADS = 64, 4
head = partial(register, "head")
"""Decorator: ``@head("gat")`` registers a head, which is built with concepts, prototypes, classes and dropout."""


@dataclass(frozen=True)
class HeadOutput:
    """Class logits and, if the head has any, the attention between concepts."""

    logits: Float[Tensor, "b classes"]
    attention: Float[Tensor, "b k k"] | None
    """Attention of each concept (row) to each concept (column); None for a head without attention."""


@runtime_checkable
class Head(Protocol):
    """Class logits from the scores of the prototypes; some heads also return attention between concepts."""

    def __call__(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:
        """Return one logit for each class."""
        ...

    def attention(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b k k"] | None:
        """Return the attention of each concept (row) to each concept (column), or None."""
        ...

    def classify(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> HeadOutput:
        """Return logits and attention from one pass."""
        ...


class NoAttentionHead(nn.Module):
    """Base of heads without attention: they implement ``forward`` alone."""

    def attention(
        self,
        scores: Float[Tensor, "b k m"],  # noqa: ARG002 (the protocol's)
        graph: ConceptGraph,  # noqa: ARG002
    ) -> Float[Tensor, "b k k"] | None:
        """Return None."""
        return None

    def classify(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> HeadOutput:
        """Return the logits alone."""
        return HeadOutput(cast(Head, self)(scores, graph), None)


class AttentionHead(nn.Module):
    """Base of heads with attention: they implement ``classify`` alone."""

    def classify(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> HeadOutput:
        """Return logits and attention from one pass."""
        raise NotImplementedError

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:
        """Return the class logits."""
        return self.classify(scores, graph).logits

    def attention(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b k k"] | None:
        """Return the attention alone."""
        return self.classify(scores, graph).attention


class Readout(nn.Module):
    """Concatenated concept vectors, LayerNorm, Dropout, Linear."""

    def __init__(self, concepts: int, width: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(concepts * width), nn.Dropout(dropout), nn.Linear(concepts * width, classes)
        )

    def forward(self, nodes: Float[Tensor, "b k d"]) -> Float[Tensor, "b classes"]:
        """Return the class logits."""
        logits: Tensor = self.layers(nodes.flatten(1))
        return logits


class ScoreNormalizer(nn.Module):
    """Centres and scales scores by statistics of the training films before the head; the identity until ``fit``.

    Cosines of different concepts differ by hundredths, which a head would otherwise have to learn first.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, concepts: int, prototypes: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(concepts, prototypes))
        self.register_buffer("spread", torch.ones(concepts, 1))

    def forward(self, scores: Float[Tensor, "b k m"]) -> Float[Tensor, "b k m"]:
        """Return the normalised scores."""
        return (scores - self.mean) / self.spread

    @torch.no_grad()
    def fit(self, scores: Float[Tensor, "n k m"]) -> None:
        """Store the mean of each prototype, and one standard deviation for each concept."""
        self.mean.copy_(scores.mean(dim=0))
        self.spread.copy_((scores - self.mean).square().mean(dim=(0, 2)).sqrt().clamp_min(1e-6).unsqueeze(1))
