"""From a backbone's features to the space in which patches and prototypes are compared (paper Eq. 1)."""

import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn


class Projector(nn.Module):
    """Linear, LayerNorm, ReLU, Linear, unit norm.

    No batch norm: concept vectors, on which it learns, and patches, on which it is used, have different statistics.
    """

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, width), nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, vectors: Float[Tensor, "*n c"]) -> Float[Tensor, "*n d"]:
        """Vectors of any number of films and patches, features last."""
        return F.normalize(self.layers(vectors), dim=-1)

    def patches(self, features: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d h w"]:
        """Every patch of a map projected."""
        projected: Tensor = self(rearrange(features, "b c h w -> b h w c"))
        return rearrange(projected, "b h w d -> b d h w")
