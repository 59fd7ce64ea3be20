"""How much each patch of a film looks like each concept (paper Eqs. 2, 4, 5).

Everything is computed one concept at a time. So a (batch, K, M, h, w) tensor never exists, and what is found of one
concept does not depend, to the last bit, on which others there are. For a batch, mean and variance follow from the
prototypes' own mean and scatter.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from einops import rearrange, reduce
from jaxtyping import Bool, Float
from torch import Tensor

from medgrape.concepts import ConceptSet
from medgrape.geometry import PatchGrid

Prototypes = Iterable[Float[Tensor, "_ d"]]
"""For each concept its own: a tensor of K x M, or a list where some were discarded."""


@dataclass(frozen=True)
class Evidence:
    """Similarity of every patch to every prototype on one film, before any head or any person judged it."""

    concepts: ConceptSet
    grid: PatchGrid
    similarity: Float[Tensor, "k m h w"]
    kept: Bool[Tensor, "k m"] | None = None
    """Prototypes that nobody discarded, which alone make the maps; None: all."""

    @property
    def mean(self) -> Float[Tensor, "k h w"]:
        """Agreement of a concept's prototypes at each patch: ``mu``, what people see."""
        return torch.stack([reduce(own, "m h w -> h w", "mean") for own in self._in_use])

    @property
    def disagreement(self) -> Float[Tensor, "k h w"]:
        """Variance of a concept's prototypes at each patch: ``U``."""
        return torch.stack([own.var(dim=0, correction=0) for own in self._in_use])

    @property
    def strongest(self) -> Float[Tensor, "k h w"]:
        """The best of a concept's prototypes at each patch."""
        return torch.stack([reduce(own, "m h w -> h w", "max") for own in self._in_use])

    @property
    def scores(self) -> Float[Tensor, "k m"]:
        """The best patch for each prototype: ``s``, all that a head sees."""
        return reduce(self.similarity, "k m h w -> k m", "max")

    @property
    def _in_use(self) -> list[Float[Tensor, "_ h w"]]:
        if self.kept is None:
            return list(self.similarity)
        return [own[kept] for own, kept in zip(self.similarity, self.kept, strict=True)]


def similarity(patches: Float[Tensor, "d h w"], prototypes: Prototypes) -> Float[Tensor, "k m h w"]:
    """Cosine of every patch of one film with every prototype; both come with unit length."""
    flat = rearrange(patches, "d h w -> d (h w)")
    found = torch.stack([one @ flat for one in prototypes])
    return rearrange(found, "k m (h w) -> k m h w", h=patches.shape[-2])


def mean_maps(patches: Float[Tensor, "b d h w"], prototypes: Prototypes) -> Float[Tensor, "b k h w"]:
    """``mu`` of a batch: the mean of cosines is the product with the mean prototype."""
    return torch.stack([torch.einsum("bdhw,d->bhw", patches, one.mean(dim=0)) for one in prototypes], dim=1)


def disagreement_maps(patches: Float[Tensor, "b d h w"], prototypes: Prototypes) -> Float[Tensor, "b k h w"]:
    """``U`` of a batch: a quadratic form in the scatter of each concept's prototypes."""
    flat = rearrange(patches, "b d h w -> (b h w) d")
    maps = []
    for one in prototypes:
        apart = one - one.mean(dim=0)
        maps.append(((flat @ (apart.T @ apart / len(one))) * flat).sum(dim=-1))
    _, _, height, width = patches.shape
    return rearrange(torch.stack(maps).clamp_min(0.0), "k (b h w) -> b k h w", h=height, w=width)


def strongest_maps(patches: Float[Tensor, "b d h w"], prototypes: Prototypes) -> Float[Tensor, "b k h w"]:
    """Maximum over the prototypes of each concept, at each patch."""
    return torch.stack([torch.einsum("bdhw,md->bmhw", patches, one).amax(dim=1) for one in prototypes], dim=1)


def scores(patches: Float[Tensor, "b d h w"], prototypes: Float[Tensor, "k m d"]) -> Float[Tensor, "b k m"]:
    """Maximum over the patches, for each prototype (paper Eq. 2)."""
    flat = rearrange(patches, "b d h w -> b d (h w)")
    return torch.stack([(one @ flat).amax(dim=-1) for one in prototypes], dim=1)
