"""Five ways from the score matrix to the classes, behind one protocol, and room for others. GAT is the default."""

from typing import Protocol, cast, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.model.graph import ConceptGraph
from medgrape.model.heads.base import Verdict
from medgrape.model.heads.graph_attention import GraphAttention
from medgrape.model.heads.plugin import OwnHead
from medgrape.plugins import get

HIDDEN, ATTENTION_HEADS = 64, 4


@runtime_checkable
class Head(Protocol):
    """Class logits from what the prototypes found; some heads also tell which concept listened to which."""

    def __call__(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:
        """One logit for each class."""
        ...

    def attention(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b k k"] | None:
        """How much each concept (row) listened to each (column), or None where the head does not choose."""
        ...

    def judge(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Verdict:
        """Both from one pass."""
        ...


class Readout(nn.Module):
    """Concept vectors side by side, LayerNorm, Dropout, Linear."""

    def __init__(self, concepts: int, width: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(concepts * width), nn.Dropout(dropout), nn.Linear(concepts * width, classes)
        )

    def forward(self, nodes: Float[Tensor, "b k d"]) -> Float[Tensor, "b classes"]:
        """Class logits."""
        logits: Tensor = self.layers(nodes.flatten(1))
        return logits


class _Deaf(nn.Module):
    """A head whose concepts do not attend to each other."""

    def attention(
        self,
        scores: Float[Tensor, "b k m"],  # noqa: ARG002 (the protocol's)
        graph: ConceptGraph,  # noqa: ARG002
    ) -> Float[Tensor, "b k k"] | None:
        """None: nothing is attended to."""
        return None

    def judge(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Verdict:
        """The logits alone."""
        return Verdict(cast(Head, self)(scores, graph), None)


class LinearHead(_Deaf):
    """All scores in one row, one linear layer: CSR's head, the baseline."""

    def __init__(self, concepts: int, prototypes: int, classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(concepts * prototypes, classes)

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:  # noqa: ARG002
        """Class logits."""
        logits: Tensor = self.layer(scores.flatten(1))
        return logits


class MlpHead(_Deaf):
    """As many parameters as the GAT and no graph: what the graph itself is worth is the difference."""

    def __init__(self, concepts: int, prototypes: int, classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(concepts * prototypes, 2 * HIDDEN),
            nn.LayerNorm(2 * HIDDEN),
            nn.ReLU(),
            nn.Linear(2 * HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, classes),
        )

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:  # noqa: ARG002
        """Class logits."""
        logits: Tensor = self.layers(scores.flatten(1))
        return logits


class GatHead(nn.Module):
    """Two rounds of graph attention; the graph is a mask, the weights are learnt (paper, section 3.2)."""

    def __init__(self, concepts: int, prototypes: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.first = GraphAttention(prototypes, HIDDEN, ATTENTION_HEADS)
        self.second = GraphAttention(ATTENTION_HEADS * HIDDEN, HIDDEN, 1)
        self.readout = Readout(concepts, HIDDEN, classes, dropout)

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:
        """Class logits."""
        logits: Tensor = self.readout(self.second(self.first(scores, graph.edges), graph.edges))
        return logits

    def attention(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b k k"] | None:
        """The mean over both rounds, and over the heads of a round: a weight for every edge, rows sum to one."""
        return self.judge(scores, graph).attention

    def judge(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Verdict:
        """Both from one pass through the graph."""
        once, first = self.first.hear(scores, graph.edges)
        twice, second = self.second.hear(once, graph.edges)
        return Verdict(self.readout(twice), (first.mean(dim=1) + second.mean(dim=1)) / 2)


class MlGcnHead(_Deaf):
    """Two graph convolutions with the fixed, row-normalised co-occurrences."""

    def __init__(self, concepts: int, prototypes: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.first = nn.Linear(prototypes, ATTENTION_HEADS * HIDDEN, bias=False)
        self.second = nn.Linear(ATTENTION_HEADS * HIDDEN, HIDDEN, bias=False)
        self.readout = Readout(concepts, HIDDEN, classes, dropout)

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:
        """Class logits."""
        once = F.leaky_relu(graph.weights @ self.first(scores), 0.2)
        twice = F.leaky_relu(graph.weights @ self.second(once), 0.2)
        logits: Tensor = self.readout(twice)
        return logits


class AddGcnHead(nn.Module):
    """The fixed graph first, then one drawn anew for each film: who resembles whom by cosine."""

    def __init__(self, concepts: int, prototypes: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.fixed = nn.Linear(prototypes, ATTENTION_HEADS * HIDDEN, bias=False)
        self.dynamic = nn.Linear(ATTENTION_HEADS * HIDDEN, HIDDEN, bias=False)
        self.readout = Readout(concepts, HIDDEN, classes, dropout)

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:
        """Class logits."""
        return self.judge(scores, graph).logits

    def attention(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b k k"] | None:
        """The mean of the fixed and the film's own graph."""
        return self.judge(scores, graph).attention

    def judge(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Verdict:
        """Both from one pass."""
        once = self._once(scores, graph)
        alike = _resemblance(once)
        twice = F.leaky_relu(alike @ self.dynamic(once), 0.2)
        return Verdict(self.readout(twice), (graph.weights + alike) / 2)

    def _once(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b k d"]:
        return F.leaky_relu(graph.weights @ self.fixed(scores), 0.2)


def _resemblance(nodes: Float[Tensor, "b k d"]) -> Float[Tensor, "b k k"]:
    """Cosine between concepts, negative ones left out, each row made to sum to one."""
    unit = F.normalize(nodes, dim=-1)
    alike = F.relu(torch.einsum("bkd,bjd->bkj", unit, unit))
    return alike / alike.sum(dim=-1, keepdim=True).clamp_min(1e-6)


def build_head(name: str, concepts: int, prototypes: int, classes: int, dropout: float) -> nn.Module:
    """The head of that name, from here or from an installed package."""
    match name:
        case "linear":
            return LinearHead(concepts, prototypes, classes)
        case "mlp":
            return MlpHead(concepts, prototypes, classes)
        case "gat":
            return GatHead(concepts, prototypes, classes, dropout)
        case "ml-gcn":
            return MlGcnHead(concepts, prototypes, classes, dropout)
        case "add-gcn":
            return AddGcnHead(concepts, prototypes, classes, dropout)
    return OwnHead(get("head", name), concepts, prototypes, classes, dropout)
