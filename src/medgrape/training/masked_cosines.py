"""Cosines that are computed once, though they teach a vector and the prototypes differently (paper, Module B)."""

from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor


class _MaskedCosines(torch.autograd.Function):
    """Forwards plain cosines; backwards, a sample leaves prototypes alone that disagree about it too much."""

    @staticmethod
    def forward(
        context: Any,  # noqa: ANN401 (autograd's own)
        vectors: Float[Tensor, "n d"],
        prototypes: Float[Tensor, "groups m d"],
        mask_above: float,
    ) -> Float[Tensor, "n groups m"]:
        """One product for all concepts."""
        cosines = rearrange(vectors @ prototypes.flatten(0, 1).T, "n (g m) -> n g m", g=len(prototypes))
        agreeing = cosines.var(dim=-1, correction=0) <= mask_above
        context.save_for_backward(vectors, prototypes, agreeing)
        return cosines

    @staticmethod
    def backward(
        context: Any,  # noqa: ANN401
        slope: Float[Tensor, "n groups m"],
    ) -> tuple[Float[Tensor, "n d"], Float[Tensor, "groups m d"], None]:
        """The vector learns from every concept, a prototype from the samples that its concept agrees about."""
        vectors, prototypes, agreeing = context.saved_tensors
        taught = (slope * agreeing.unsqueeze(-1)).flatten(1).T @ vectors
        return slope.flatten(1) @ prototypes.flatten(0, 1), taught.view_as(prototypes), None


def masked_cosines(
    vectors: Float[Tensor, "n d"], prototypes: Float[Tensor, "groups m d"], mask_above: float
) -> Float[Tensor, "n groups m"]:
    """Cosines in which a sample gives no gradient to the prototypes of a concept whose variance at it, over its
    prototypes, exceeds ``mask_above`` (theta_U). The sample's own vector still learns from them.
    """
    cosines: Tensor = _MaskedCosines.apply(vectors, prototypes, mask_above)  # type: ignore[no-untyped-call]
    return cosines
