"""The graph attention head (paper, section 3.2 and the appendix on mathematics), the default.

The message along an edge is the *source* concept's vector. The authors' published layer sends the target's own vector,
so its graph has no effect.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from medgrape.model.graph import ConceptGraph
from medgrape.model.heads.base import ATTENTION_HEADS, HIDDEN, AttentionHead, HeadOutput, Readout, head


class GraphAttention(nn.Module):
    """One graph attention layer without bias, as the paper's parameter counts show."""

    def __init__(self, inputs: int, outputs: int, heads: int, slope: float = 0.2) -> None:
        super().__init__()
        self.heads, self.slope = heads, slope
        self.transform = nn.Linear(inputs, heads * outputs, bias=False)
        # The two halves of the attention vector a: for the target ("listener") and the source ("speaker") of a message.
        self.listener = nn.Parameter(torch.empty(heads, outputs))
        self.speaker = nn.Parameter(torch.empty(heads, outputs))
        nn.init.xavier_uniform_(self.transform.weight)
        nn.init.xavier_uniform_(self.listener)
        nn.init.xavier_uniform_(self.speaker)

    def forward(self, nodes: Float[Tensor, "b k inputs"], edges: Bool[Tensor, "k k"]) -> Float[Tensor, "b k out"]:
        """Return the new vector of every concept: its attention heads concatenated, after ELU."""
        return self.with_weights(nodes, edges)[0]

    def with_weights(
        self, nodes: Float[Tensor, "b k inputs"], edges: Bool[Tensor, "k k"]
    ) -> tuple[Float[Tensor, "b k out"], Float[Tensor, "b heads k k"]]:
        """Return the new vectors, and the attention of each concept (row) to each concept (column).

        Attention is computed with sources as rows: a softmax over any dimension but the last is several times faster.
        A missing edge counts as the lowest number before the softmax and as zero after it, so a concept without any
        edge receives nothing and no gradient becomes infinite.
        """
        messages = self.transform(nodes).view(*nodes.shape[:2], self.heads, -1).transpose(1, 2).contiguous()
        targets = (messages * self.listener.unsqueeze(1)).sum(dim=-1)
        sources = (messages * self.speaker.unsqueeze(1)).sum(dim=-1)
        logits = F.leaky_relu(sources.unsqueeze(-1) + targets.unsqueeze(-2), self.slope)
        missing = ~edges.T
        lowest = torch.finfo(logits.dtype).min
        weights = logits.masked_fill(missing, lowest).softmax(dim=2).masked_fill(missing, 0.0).mT
        return F.elu((weights @ messages).transpose(1, 2).flatten(2)), weights


@head("gat")
class GatHead(AttentionHead):
    """Two graph attention layers; the graph is a mask, the weights are learnt."""

    def __init__(self, concepts: int, prototypes: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.first = GraphAttention(prototypes, HIDDEN, ATTENTION_HEADS)
        self.second = GraphAttention(ATTENTION_HEADS * HIDDEN, HIDDEN, 1)
        self.readout = Readout(concepts, HIDDEN, classes, dropout)

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:
        """Return the class logits, without averaging attention."""
        logits: Tensor = self.readout(self.second(self.first(scores, graph.edges), graph.edges))
        return logits

    def classify(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> HeadOutput:
        """Attention is the mean over both layers, each averaged over its attention heads."""
        nodes, first = self.first.with_weights(scores, graph.edges)
        nodes, second = self.second.with_weights(nodes, graph.edges)
        return HeadOutput(self.readout(nodes), (first.mean(dim=1) + second.mean(dim=1)) / 2)
