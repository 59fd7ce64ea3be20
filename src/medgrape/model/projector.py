"""From a backbone's features to the space in which patches and prototypes are compared (paper Eq. 1)."""

import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn


class Projector(nn.Module):
    """Linear, LayerNorm, ReLU, Linear, unit norm.

    No batch norm: concept vectors, on which it learns, and patches, on which it is used, have different statistics.

    With ``smooth`` every patch is averaged with its eight neighbours afterwards. Similarity is a product, so all maps
    and scores become averages over three by three patches: the middle of a finding wins over a lone patch at its edge.
    """

    def __init__(self, features: int, width: int, *, smooth: bool = False) -> None:
        super().__init__()
        self.smooth = smooth
        self.layers = nn.Sequential(nn.Linear(features, width), nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, vectors: Float[Tensor, "*n c"]) -> Float[Tensor, "*n d"]:
        """Vectors of any number of films and patches, features last."""
        return F.normalize(self.layers(vectors), dim=-1)

    def patches(self, features: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d h w"]:
        """Every patch of a map projected."""
        projected: Tensor = self(rearrange(features, "b c h w -> b h w c"))
        patches = rearrange(projected, "b h w d -> b d h w")
        if not self.smooth:
            return patches
        return F.avg_pool2d(patches, kernel_size=3, stride=1, padding=1, count_include_pad=False)
