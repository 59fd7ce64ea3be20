"""Graph attention over concepts (paper, appendix on mathematics): each concept hears those it listens to.

A message is the *speaker's* vector. The authors' published layer sends the listener's own, so its graph says nothing.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn


class GraphAttention(nn.Module):
    """One layer: a weight for every edge, the sum of what is heard. No bias, as the paper's counts tell."""

    def __init__(self, inputs: int, outputs: int, heads: int, slope: float = 0.2) -> None:
        super().__init__()
        self.heads, self.slope = heads, slope
        self.transform = nn.Linear(inputs, heads * outputs, bias=False)
        self.listener = nn.Parameter(torch.empty(heads, outputs))
        self.speaker = nn.Parameter(torch.empty(heads, outputs))
        nn.init.xavier_uniform_(self.transform.weight)
        for half in (self.listener, self.speaker):  # the two halves of the attention vector a
            nn.init.xavier_uniform_(half)

    def forward(self, nodes: Float[Tensor, "b k inputs"], edges: Bool[Tensor, "k k"]) -> Float[Tensor, "b k out"]:
        """What every concept has heard, heads side by side, after ELU."""
        return self.hear(nodes, edges)[0]

    def attention(self, nodes: Float[Tensor, "b k inputs"], edges: Bool[Tensor, "k k"]) -> Float[Tensor, "b heads k k"]:
        """How much each concept (row) listens to each other (column); rows sum to one, no edge is zero."""
        return self.hear(nodes, edges)[1]

    def hear(
        self, nodes: Float[Tensor, "b k inputs"], edges: Bool[Tensor, "k k"]
    ) -> tuple[Float[Tensor, "b k out"], Float[Tensor, "b heads k k"]]:
        """What every concept has heard, and how much it listened to whom, from one pass."""
        spoken = self.transform(nodes).view(*nodes.shape[:2], self.heads, -1).transpose(1, 2).contiguous()
        weights = self._weights(spoken, edges)
        return F.elu((weights @ spoken).transpose(1, 2).flatten(2)), weights

    def _weights(
        self, spoken: Float[Tensor, "b heads k d"], edges: Bool[Tensor, "k k"]
    ) -> Float[Tensor, "b heads k k"]:
        """Worked out with speakers as rows: a softmax over any dimension but the last is several times faster.

        An edge that is not there counts as the lowest number and then as nothing, also where a concept's every edge was
        cut: it hears nothing, and no gradient becomes infinite.
        """
        listening = (spoken * self.listener.unsqueeze(1)).sum(dim=-1)
        speaking = (spoken * self.speaker.unsqueeze(1)).sum(dim=-1)
        told = F.leaky_relu(speaking.unsqueeze(-1) + listening.unsqueeze(-2), self.slope)
        apart = ~edges.T
        return told.masked_fill(apart, torch.finfo(told.dtype).min).softmax(dim=2).masked_fill(apart, 0.0).mT
