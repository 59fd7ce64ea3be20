"""Heads to compare with: linear (CSR's), MLP, ML-GCN with a fixed graph, ADD-GCN with a second graph for each film.

The MLP has as many parameters as the GAT head and no graph, so their difference is the worth of the graph.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.model.graph import ConceptGraph
from medgrape.model.heads.base import ATTENTION_HEADS, HIDDEN, AttentionHead, HeadOutput, NoAttentionHead, Readout, head


@head("linear")
class LinearHead(NoAttentionHead):
    """One linear layer on all scores."""

    def __init__(self, concepts: int, prototypes: int, classes: int, dropout: float = 0.0) -> None:  # noqa: ARG002
        super().__init__()
        self.layer = nn.Linear(concepts * prototypes, classes)

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:  # noqa: ARG002
        """Return the class logits."""
        logits: Tensor = self.layer(scores.flatten(1))
        return logits


@head("mlp")
class MlpHead(NoAttentionHead):
    """Three linear layers on all scores."""

    def __init__(self, concepts: int, prototypes: int, classes: int, dropout: float = 0.0) -> None:  # noqa: ARG002
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(concepts * prototypes, 2 * HIDDEN), nn.LayerNorm(2 * HIDDEN), nn.ReLU(),
            nn.Linear(2 * HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, classes),
        )  # fmt: skip

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:  # noqa: ARG002
        """Return the class logits."""
        logits: Tensor = self.layers(scores.flatten(1))
        return logits


@head("ml-gcn")
class MlGcnHead(NoAttentionHead):
    """Two graph convolutions with the fixed, row-normalised co-occurrences."""

    def __init__(self, concepts: int, prototypes: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.first = nn.Linear(prototypes, ATTENTION_HEADS * HIDDEN, bias=False)
        self.second = nn.Linear(ATTENTION_HEADS * HIDDEN, HIDDEN, bias=False)
        self.readout = Readout(concepts, HIDDEN, classes, dropout)

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:
        """Return the class logits."""
        nodes = F.leaky_relu(graph.weights @ self.first(scores), 0.2)
        nodes = F.leaky_relu(graph.weights @ self.second(nodes), 0.2)
        logits: Tensor = self.readout(nodes)
        return logits


@head("add-gcn")
class AddGcnHead(AttentionHead):
    """A graph convolution with the fixed graph, then one with the cosine similarity of the film's concepts."""

    def __init__(self, concepts: int, prototypes: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.fixed = nn.Linear(prototypes, ATTENTION_HEADS * HIDDEN, bias=False)
        self.dynamic = nn.Linear(ATTENTION_HEADS * HIDDEN, HIDDEN, bias=False)
        self.readout = Readout(concepts, HIDDEN, classes, dropout)

    def classify(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> HeadOutput:
        """Attention is the mean of both graphs."""
        nodes = F.leaky_relu(graph.weights @ self.fixed(scores), 0.2)
        unit = F.normalize(nodes, dim=-1)
        cosines = F.relu(torch.einsum("bkd,bjd->bkj", unit, unit))
        similarity = cosines / cosines.sum(dim=-1, keepdim=True).clamp_min(1e-6)
        nodes = F.leaky_relu(similarity @ self.dynamic(nodes), 0.2)
        return HeadOutput(self.readout(nodes), (graph.weights + similarity) / 2)
