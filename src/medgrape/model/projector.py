"""The projection of backbone features into the space of prototypes (paper Eq. 1)."""

import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn


class Projector(nn.Module):
    """Linear, LayerNorm, ReLU, Linear, unit norm.

    There is no batch norm: the concept vectors that it is trained on and the patches that it is used on have different
    statistics.

    With ``smooth`` every projected patch is averaged with its eight neighbours. Similarity is linear, so all maps and
    scores become averages over 3 x 3 patches, which favours the centre of a finding over a single patch at its edge.
    """

    def __init__(self, features: int, width: int, *, smooth: bool = False) -> None:
        super().__init__()
        self.smooth = smooth
        self.layers = nn.Sequential(nn.Linear(features, width), nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, vectors: Float[Tensor, "*n c"]) -> Float[Tensor, "*n d"]:
        """Project vectors, features last, to unit vectors."""
        return F.normalize(self.layers(vectors), dim=-1)

    def patches(self, features: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d h w"]:
        """Project every patch of a map."""
        projected: Tensor = self(rearrange(features, "b c h w -> b h w c"))
        patches = rearrange(projected, "b h w d -> b d h w")
        if not self.smooth:
            return patches
        return F.avg_pool2d(patches, kernel_size=3, stride=1, padding=1, count_include_pad=False)
