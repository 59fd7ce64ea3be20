"""Which concept listens to which: the co-occurrence graph as tensors that travel with the model."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class ConceptGraph(nn.Module):
    """Edges for the heads that mask, weights for those that average. Buffers: saved, moved, never learnt."""

    edges: Tensor
    weights: Tensor

    def __init__(self, probability: Float[Tensor, "k k"], tau: float, cut: Sequence[tuple[int, int]] = ()) -> None:
        """``cut``: edges that are taken out, as listener and speaker."""
        super().__init__()
        concepts = probability.shape[0]
        itself = torch.eye(concepts, dtype=torch.bool)
        self.register_buffer("edges", (probability > tau) | itself)
        for listener, speaker in cut:
            self.edges[listener, speaker] = False
        self.register_buffer("weights", _row_normalised(probability, self.edges))


def _row_normalised(probability: Float[Tensor, "k k"], edges: Bool[Tensor, "k k"]) -> Float[Tensor, "k k"]:
    """P(k given j) on the edges and 1 on self-loops, the row of each listener that hears anybody made to sum to one."""
    kept = torch.where(edges, probability.clone().fill_diagonal_(1.0), torch.zeros_like(probability))
    return kept / kept.sum(dim=1, keepdim=True).clamp_min(1e-12)
