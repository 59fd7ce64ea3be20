"""Graph attention over concepts (paper, appendix on mathematics): each concept hears those it listens to.

A message is the *speaker's* vector. The authors' published layer sends the listener's own, so its graph says nothing.
"""

import torch
import torch.nn.functional as F
from einops import rearrange
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

    def attention(self, nodes: Float[Tensor, "b k inputs"], edges: Bool[Tensor, "k k"]) -> Float[Tensor, "b heads k k"]:
        """How much each concept (row) listens to each other (column); rows sum to one, no edge is zero."""
        return self._weights(self._spoken(nodes), edges)

    def forward(self, nodes: Float[Tensor, "b k inputs"], edges: Bool[Tensor, "k k"]) -> Float[Tensor, "b k out"]:
        """What every concept has heard, heads side by side, after ELU."""
        spoken = self._spoken(nodes)
        heard = self._weights(spoken, edges) @ spoken
        return F.elu(rearrange(heard, "b heads k d -> b k (heads d)"))

    def _spoken(self, nodes: Float[Tensor, "b k inputs"]) -> Float[Tensor, "b heads k d"]:
        transformed: Tensor = self.transform(nodes)
        return rearrange(transformed, "b k (heads d) -> b heads k d", heads=self.heads)

    def _weights(
        self, spoken: Float[Tensor, "b heads k d"], edges: Bool[Tensor, "k k"]
    ) -> Float[Tensor, "b heads k k"]:
        listening = torch.einsum("bhkd,hd->bhk", spoken, self.listener)
        speaking = torch.einsum("bhkd,hd->bhk", spoken, self.speaker)
        both = rearrange(listening, "b h k -> b h k 1") + rearrange(speaking, "b h k -> b h 1 k")
        listens = edges.any(dim=-1, keepdim=True)  # a concept whose every edge was cut hears nothing
        return F.leaky_relu(both, self.slope).masked_fill(listens & ~edges, -torch.inf).softmax(dim=-1) * listens
