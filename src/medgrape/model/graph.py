"""The co-occurrence graph of concepts, as tensors that are part of the model."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn


class ConceptGraph(nn.Module):
    """Edges for heads that mask with the graph, weights for heads that average over it. Both are buffers."""

    edges: Tensor
    weights: Tensor

    def __init__(self, probability: Float[Tensor, "k k"], tau: float, cut: Sequence[tuple[int, int]] = ()) -> None:
        """Put an edge where P(k given j) exceeds ``tau``, and a self-loop everywhere; remove the edges in ``cut``.

        An edge is a pair of target and source: the concept that receives a message, and the one that sends it.
        """
        super().__init__()
        edges = (probability > tau) | torch.eye(probability.shape[0], dtype=torch.bool)
        for target, source in cut:
            edges[target, source] = False
        # P(k given j) on the edges and 1 on self-loops; each row that is not empty sums to one.
        weights = torch.where(edges, probability.clone().fill_diagonal_(1.0), torch.zeros_like(probability))
        self.register_buffer("edges", edges)
        self.register_buffer("weights", weights / weights.sum(dim=1, keepdim=True).clamp_min(1e-12))
