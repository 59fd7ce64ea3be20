"""A head extended to more concepts: the old head, plus a new one over all concepts whose last layer starts at zero.

Until the new head is trained, it adds exactly zero to the logits of the old one. So the classes stay the same, to the
last bit, for every kind of head.
"""

from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.config import ModelSettings
from medgrape.model.grape import Grape
from medgrape.model.graph import ConceptGraph
from medgrape.model.heads import build_head
from medgrape.model.heads.base import AttentionHead, Head, HeadOutput, ScoreNormalizer
from medgrape.plugins import PluginError


class GrownHead(AttentionHead):
    """The sum of the old head on the concepts that it knows and of a new head on all concepts."""

    def __init__(self, before: nn.Module, graph: ConceptGraph, added: nn.Module) -> None:
        super().__init__()
        self.before, self.graph, self.added = before, graph, added
        for weights in _last_layer(added).parameters():
            nn.init.zeros_(weights)

    def classify(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> HeadOutput:
        """Attention is the mean of both heads; while the new head is untrained, that of the old one alone."""
        known = self.graph.edges.shape[0]
        old = cast(Head, self.before).classify(scores[:, :known].contiguous(), self.graph)
        new = cast(Head, self.added).classify(scores, graph)
        if old.attention is None or new.attention is None:
            return HeadOutput(old.logits + new.logits, None)
        attention = torch.eye(len(graph.edges), dtype=old.attention.dtype, device=old.attention.device)
        attention = attention.expand_as(new.attention).clone()
        attention[:, :known, :known] = old.attention
        trained = _last_layer(self.added).weight.any()
        return HeadOutput(old.logits + new.logits, torch.where(trained, (attention + new.attention) / 2, attention))

    @property
    def speaks(self) -> bool:
        """Whether the new head is trained."""
        return bool(_last_layer(self.added).weight.any())


def grow_head(model: Grape, settings: ModelSettings, probability: Float[Tensor, "k k"], classes: int) -> None:
    """Extend the head of ``model`` to all concepts of ``probability``, without any effect on the classes yet."""
    graph, known = ConceptGraph(probability, settings.tau), model.judged
    added = build_head(settings.head, len(probability), settings.prototypes, classes, settings.dropout)
    head = GrownHead(model.head, model.graph, added)
    _refuse_nonzero(added, graph, settings)
    normalizer = ScoreNormalizer(len(probability), settings.prototypes)
    normalizer.mean[:known] = model.standard.mean
    normalizer.spread[:known] = model.standard.spread
    model.head, model.graph, model.standard = head, graph, normalizer


def head_sizes(head: nn.Module, concepts: int) -> list[int]:
    """Return the number of concepts of each head in the sum, oldest first; this suffices to build it again."""
    if not isinstance(head, GrownHead):
        return [concepts]
    return [*head_sizes(head.before, int(head.graph.edges.shape[0])), concepts]


def _last_layer(head: nn.Module) -> nn.Linear:
    layers = [layer for layer in head.modules() if isinstance(layer, nn.Linear)]
    if not layers:
        raise _cannot_grow()
    return layers[-1]


@torch.no_grad()
def _refuse_nonzero(added: nn.Module, graph: ConceptGraph, settings: ModelSettings) -> None:
    """Refuse a plugin head that does not end in a linear layer: it would change the classes at once."""
    was_training = added.training
    output = cast(Head, added.eval()).classify(torch.ones(1, len(graph.edges), settings.prototypes), graph)
    added.train(was_training)
    if output.logits.any():
        raise _cannot_grow()


def _cannot_grow() -> PluginError:
    return PluginError(
        "This run's head comes from another package and does not end in a torch.nn.Linear, so it cannot be extended to "
        "one more concept without changing the classes; the concept has its map and scores all the same."
    )
