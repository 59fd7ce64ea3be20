"""The protocol of heads, which turn scores into class logits, the layers they share, and heads of other packages."""

from dataclasses import dataclass
from functools import partial
from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.model.graph import ConceptGraph
from medgrape.plugins import Plugin, register

HIDDEN, ATTENTION_HEADS = 64, 4
head = partial(register, "head")
"""Decorator: ``@head("gat")`` registers a head, which is built with concepts, prototypes, classes and dropout."""


@dataclass(frozen=True)
class HeadOutput:
    """Class logits and, if the head has any, the attention between concepts."""

    logits: Float[Tensor, "b classes"]
    attention: Float[Tensor, "b k k"] | None  # Of each concept (row) to each concept (column), if the head has any


@runtime_checkable
class Head(Protocol):
    """Class logits from the scores of the prototypes; some heads also return attention between concepts."""

    def __call__(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:
        """Return one logit for each class."""

    def classify(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> HeadOutput:
        """Return logits and attention from one pass."""


class NoAttentionHead(nn.Module):
    """Base of heads without attention, which implement ``forward``."""

    def classify(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> HeadOutput:
        """Return the logits alone."""
        return HeadOutput(cast(Head, self)(scores, graph), None)


class AttentionHead(nn.Module):
    """Base of heads with attention, which implement ``classify``."""

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:
        """Return the class logits."""
        return cast(Head, self).classify(scores, graph).logits


class Readout(nn.Module):
    """Concatenated concept vectors, LayerNorm, Dropout, Linear."""

    def __init__(self, concepts: int, width: int, classes: int, dropout: float) -> None:
        super().__init__()
        size = concepts * width
        self.layers = nn.Sequential(nn.LayerNorm(size), nn.Dropout(dropout), nn.Linear(size, classes))

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


class PluginHead(nn.Module):
    """Wraps a module that turns scores into logits and may have a method ``attention``."""

    def __init__(self, plugin: Plugin, concepts: int, prototypes: int, classes: int, dropout: float) -> None:
        super().__init__()
        module = plugin.make(concepts=concepts, prototypes=prototypes, classes=classes, dropout=dropout)
        if not isinstance(module, nn.Module):
            raise plugin.refuse(f"returned a {type(module).__name__}, not a torch module")
        self.own = module  # part of the names of tensors in a run
        self._check(plugin, concepts, prototypes, classes)

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:
        """Return the class logits."""
        logits: Tensor = self.own(scores, graph)
        return logits

    def classify(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> HeadOutput:
        """Return the logits and, if the module has a method for it, the attention."""
        attention = getattr(self.own, "attention", None)
        return HeadOutput(self(scores, graph), attention(scores, graph) if callable(attention) else None)

    @torch.no_grad()
    def _check(self, plugin: Plugin, concepts: int, prototypes: int, classes: int) -> None:
        """Run it on two random score matrices before it is used on films."""
        scores = torch.rand(2, concepts, prototypes, generator=torch.Generator().manual_seed(0))
        graph, was_training = ConceptGraph(torch.ones(concepts, concepts), 0.0), self.training
        self.eval()
        try:
            output, again = self.classify(scores, graph), self.classify(scores, graph)
        except Exception as error:  # whatever the module raises
            raise plugin.refuse(f"fails on scores of {concepts} concepts ({type(error).__name__}: {error})") from error
        finally:
            self.train(was_training)
        logits: object = output.logits
        if not isinstance(logits, Tensor) or logits.shape != (2, classes):
            films = f"two films and {classes} classes"
            raise plugin.refuse(f"returns logits of shape {_shape(logits)} for {films}, not {(2, classes)}")
        if not logits.is_floating_point() or not torch.isfinite(logits).all():
            raise plugin.refuse("returns logits that are not finite numbers")
        if not torch.equal(output.logits, again.logits):
            raise plugin.refuse("returns different logits for the same scores in eval mode")
        attention: object = output.attention
        if attention is not None and (not isinstance(attention, Tensor) or attention.shape != (2, concepts, concepts)):
            raise plugin.refuse(f"returns attention of shape {_shape(attention)}, not {(2, concepts, concepts)}")


def _shape(value: object) -> object:
    return tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
