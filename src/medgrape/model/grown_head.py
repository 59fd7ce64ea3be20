"""A head that learnt to listen to one more concept: the head it was, plus one over all concepts that starts silent.

Beside a head that is left as it is, the new one adds exactly nothing until it is trained. So the classes stay what they
were, to the last bit, for every kind of head.
"""

from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.config import ModelSettings
from medgrape.model.grape import Grape
from medgrape.model.graph import ConceptGraph
from medgrape.model.heads.base import Standard, Verdict
from medgrape.model.heads.heads import Head, build_head
from medgrape.plugins import PartError


class GrownHead(nn.Module):
    """The sum of two heads."""

    def __init__(self, before: nn.Module, graph: ConceptGraph, added: nn.Module) -> None:
        super().__init__()
        self.before, self.graph, self.added = before, graph, added
        last = _last_layer(added)
        for weights in last.parameters():
            nn.init.zeros_(weights)

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:
        """Class logits."""
        return self.judge(scores, graph).logits

    def attention(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b k k"] | None:
        """The mean of both heads'; only that of the old one, to which the new concept is deaf, while the new one is
        silent."""
        return self.judge(scores, graph).attention

    def judge(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Verdict:
        """The sum of what both say, and whom they listened to."""
        before = cast(Head, self.before).judge(scores[:, : self._known].contiguous(), self.graph)
        added = cast(Head, self.added).judge(scores, graph)
        return Verdict(before.logits + added.logits, self._heard(before.attention, added.attention))

    def _heard(
        self, earlier: Float[Tensor, "b known known"] | None, added: Float[Tensor, "b k k"] | None
    ) -> Float[Tensor, "b k k"] | None:
        if earlier is None or added is None:
            return None
        old = torch.eye(added.shape[-1], dtype=earlier.dtype, device=earlier.device).expand_as(added).clone()
        old[:, : self._known, : self._known] = earlier
        return torch.where(_last_layer(self.added).weight.any(), (old + added) / 2, old)

    @property
    def speaks(self) -> bool:
        """Whether the new head was trained."""
        return bool(_last_layer(self.added).weight.any())

    @property
    def _known(self) -> int:
        return int(self.graph.edges.shape[0])


def grow_head(model: Grape, settings: ModelSettings, probability: Float[Tensor, "k k"], classes: int) -> None:
    """Let the head of ``model`` listen to all concepts of ``probability``, with no influence on the classes yet."""
    graph, known = ConceptGraph(probability, settings.tau), model.judged
    added = build_head(settings.head, len(probability), settings.prototypes, classes, settings.dropout)
    head = GrownHead(model.head, model.graph, added)
    _refuse_loud(added, graph, settings)
    standard = Standard(len(probability), settings.prototypes)
    standard.mean[:known] = model.standard.mean
    standard.spread[:known] = model.standard.spread
    model.head = head
    model.graph, model.standard = graph, standard


def head_sizes(head: nn.Module, judged: int) -> list[int]:
    """How many concepts each head in the sum knows, the oldest first: what is needed to build it again."""
    if not isinstance(head, GrownHead):
        return [judged]
    return [*head_sizes(head.before, int(head.graph.edges.shape[0])), judged]


def _last_layer(head: nn.Module) -> nn.Linear:
    layers = [layer for layer in head.modules() if isinstance(layer, nn.Linear)]
    if not layers:
        raise _cannot_grow()
    return layers[-1]


@torch.no_grad()
def _refuse_loud(added: nn.Module, graph: ConceptGraph, settings: ModelSettings) -> None:
    """Heads of other packages need not end in a linear layer; one that does not would change classes at once."""
    was_training = added.training
    said = cast(Head, added.eval()).judge(torch.ones(1, len(graph.edges), settings.prototypes), graph).logits
    added.train(was_training)
    if said.any():
        raise _cannot_grow()


def _cannot_grow() -> PartError:
    return PartError(
        "This run's head comes from another package and does not end in a torch.nn.Linear, so it cannot learn to "
        "listen to one more concept without a change of its classes; the concept has its map and scores all the same."
    )
