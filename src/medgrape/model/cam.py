"""Class activation maps: where the backbone sees each concept, and one logit a film from each map (stage 1)."""

import math
from typing import Literal

import torch
from einops import rearrange, reduce
from jaxtyping import Float
from torch import Tensor, nn

Pooling = Literal["mean", "log-sum-exp", "top"]
TOP = 0.1
"""Share of the patches that pooling by the highest averages."""


class CamHead(nn.Module):
    """A map of logits for each concept: one linear layer, the same at every patch."""

    def __init__(self, features: int, concepts: int) -> None:
        super().__init__()
        self.maps = nn.Conv2d(features, concepts, kernel_size=1)
        nn.init.normal_(self.maps.weight, std=0.01)
        nn.init.constant_(self.bias, -2.0)  # findings are rare: begin by seeing little

    @property
    def bias(self) -> Float[Tensor, " k"]:
        """Of each map."""
        assert self.maps.bias is not None  # noqa: S101 (it was asked for)
        return self.maps.bias

    def forward(self, features: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k h w"]:
        """Logits at each patch."""
        logits: Tensor = self.maps(features)
        return logits


def pool(logits: Float[Tensor, "b k h w"], pooling: Pooling, sharpness: float = 5.0) -> Float[Tensor, "b k"]:
    """One logit for each film: the average of the map (the paper), its smooth maximum, or that of its highest tenth."""
    if pooling == "mean":
        return reduce(logits, "b k h w -> b k", "mean")
    patches = rearrange(logits, "b k h w -> b k (h w)")
    if pooling == "top":
        return patches.topk(math.ceil(TOP * patches.shape[-1]), dim=-1).values.mean(dim=-1)
    return (torch.logsumexp(sharpness * patches, dim=-1) - math.log(patches.shape[-1])) / sharpness


def concept_vectors(features: Float[Tensor, "b c h w"], logits: Float[Tensor, "b k h w"]) -> Float[Tensor, "b k c"]:
    """Features averaged where the CAM looks: softmax over the raw logits of a map (paper, stage 2)."""
    weights = torch.softmax(rearrange(logits, "b k h w -> b k (h w)"), dim=-1)
    return weighted_vectors(features, rearrange(weights, "b k (h w) -> b k h w", h=logits.shape[-2]))


def weighted_vectors(features: Float[Tensor, "b c h w"], weights: Float[Tensor, "b k h w"]) -> Float[Tensor, "b k c"]:
    """Features averaged with given weights, which sum to one over each map."""
    return torch.einsum("bchw,bkhw->bkc", features, weights)
