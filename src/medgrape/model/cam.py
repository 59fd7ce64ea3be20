"""Class activation maps of the concepts, and their pooling to one logit for each film (stage 1)."""

import math
from typing import Literal

import torch
from einops import rearrange, reduce
from jaxtyping import Float
from torch import Tensor, nn

Pooling = Literal["mean", "log-sum-exp", "top"]
TOP = 0.1  # Fraction of the patches that pooling "top" averages


class CamHead(nn.Module):
    """A map of logits for each concept: one linear layer applied at every patch."""

    def __init__(self, features: int, concepts: int) -> None:
        super().__init__()
        self.maps = nn.Conv2d(features, concepts, kernel_size=1)
        nn.init.normal_(self.maps.weight, std=0.01)
        nn.init.constant_(self.bias, -2.0)  # findings are rare: start with low probabilities

    @property
    def bias(self) -> Float[Tensor, " k"]:
        """The bias of each map."""
        assert self.maps.bias is not None  # noqa: S101 (for the type checker)
        return self.maps.bias

    def forward(self, features: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k h w"]:
        """Return the logits at each patch."""
        logits: Tensor = self.maps(features)
        return logits


def pool(logits: Float[Tensor, "b k h w"], pooling: Pooling, sharpness: float = 5.0) -> Float[Tensor, "b k"]:
    """Return one logit for each film: the mean of the map (the paper), its smooth maximum, or its top tenth's mean."""
    if pooling == "mean":
        return reduce(logits, "b k h w -> b k", "mean")
    patches = rearrange(logits, "b k h w -> b k (h w)")
    if pooling == "top":
        return patches.topk(math.ceil(TOP * patches.shape[-1]), dim=-1).values.mean(dim=-1)
    return (torch.logsumexp(sharpness * patches, dim=-1) - math.log(patches.shape[-1])) / sharpness


def concept_vectors(features: Float[Tensor, "b c h w"], logits: Float[Tensor, "b k h w"]) -> Float[Tensor, "b k c"]:
    """Average the features with weights from a softmax over the raw logits of each map (paper, stage 2)."""
    weights = torch.softmax(rearrange(logits, "b k h w -> b k (h w)"), dim=-1)
    weights = rearrange(weights, "b k (h w) -> b k h w", h=logits.shape[-2])
    return torch.einsum("bchw,bkhw->bkc", features, weights)
