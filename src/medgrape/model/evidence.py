"""How much each patch of a film looks like each concept (paper Eqs. 2, 4, 5).

For a batch only the mean, the variance, the maximum over prototypes and the maximum over patches are ever asked for.
Mean and variance follow from the prototypes' own mean and scatter, and the maxima are taken one concept at a time, so
a (batch, K, M, h, w) tensor never exists.
"""

from dataclasses import dataclass

import torch
from einops import rearrange, reduce
from jaxtyping import Float
from torch import Tensor

from medgrape.concepts import ConceptSet
from medgrape.geometry import PatchGrid


@dataclass(frozen=True)
class Evidence:
    """Similarity of every patch to every prototype on one film, before any head or any person judged it."""

    concepts: ConceptSet
    grid: PatchGrid
    similarity: Float[Tensor, "k m h w"]

    @property
    def mean(self) -> Float[Tensor, "k h w"]:
        """Agreement of a concept's prototypes at each patch: ``mu``, what people see."""
        return reduce(self.similarity, "k m h w -> k h w", "mean")

    @property
    def disagreement(self) -> Float[Tensor, "k h w"]:
        """Variance of a concept's prototypes at each patch: ``U``."""
        return self.similarity.var(dim=1, correction=0)

    @property
    def strongest(self) -> Float[Tensor, "k h w"]:
        """The best of a concept's prototypes at each patch."""
        return reduce(self.similarity, "k m h w -> k h w", "max")

    @property
    def scores(self) -> Float[Tensor, "k m"]:
        """The best patch for each prototype: ``s``, all that a head sees."""
        return reduce(self.similarity, "k m h w -> k m", "max")


def similarity(patches: Float[Tensor, "d h w"], prototypes: Float[Tensor, "k m d"]) -> Float[Tensor, "k m h w"]:
    """Cosine of every patch of one film with every prototype; both come with unit length."""
    return torch.einsum("dhw,kmd->kmhw", patches, prototypes)


def mean_maps(patches: Float[Tensor, "b d h w"], prototypes: Float[Tensor, "k m d"]) -> Float[Tensor, "b k h w"]:
    """``mu`` of a batch: the mean of cosines is the product with the mean prototype."""
    return torch.einsum("bdhw,kd->bkhw", patches, reduce(prototypes, "k m d -> k d", "mean"))


def disagreement_maps(
    patches: Float[Tensor, "b d h w"], prototypes: Float[Tensor, "k m d"]
) -> Float[Tensor, "b k h w"]:
    """``U`` of a batch: a quadratic form in the scatter of each concept's prototypes."""
    apart = prototypes - reduce(prototypes, "k m d -> k 1 d", "mean")
    scatter = torch.einsum("kmd,kme->kde", apart, apart) / prototypes.shape[1]
    flat = rearrange(patches, "b d h w -> (b h w) d")
    maps = torch.stack([((flat @ one) * flat).sum(dim=-1) for one in scatter])
    _, _, height, width = patches.shape
    return rearrange(maps.clamp_min(0.0), "k (b h w) -> b k h w", h=height, w=width)


def strongest_maps(patches: Float[Tensor, "b d h w"], prototypes: Float[Tensor, "k m d"]) -> Float[Tensor, "b k h w"]:
    """Maximum over the prototypes of each concept, at each patch."""
    return torch.stack([torch.einsum("bdhw,md->bmhw", patches, one).amax(dim=1) for one in prototypes], dim=1)


def scores(patches: Float[Tensor, "b d h w"], prototypes: Float[Tensor, "k m d"]) -> Float[Tensor, "b k m"]:
    """Maximum over the patches, for each prototype (paper Eq. 2)."""
    flat = rearrange(patches, "b d h w -> b d (h w)")
    return torch.stack([(one @ flat).amax(dim=-1) for one in prototypes], dim=1)
