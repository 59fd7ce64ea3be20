"""Similarity of each patch of a film to each concept (paper Eqs. 2, 4, 5).

Everything is computed one concept at a time. So a (batch, K, M, h, w) tensor never exists, and the result for one
concept does not depend, to the last bit, on the other concepts. For a batch, mean and variance follow from the mean
and the scatter of the prototypes themselves.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch
from einops import rearrange, reduce
from jaxtyping import Bool, Float
from torch import Tensor

from medgrape.concepts import ConceptSet
from medgrape.geometry import PatchGrid
from medgrape.records import once

Prototypes = Iterable[Float[Tensor, "_ d"]]
"""The prototypes of each concept: a tensor of K x M, or a list of different lengths if some are discarded."""


@dataclass(frozen=True)
class Evidence:
    """Similarity of every patch to every prototype on one film, before a head or a person interprets it.

    Maps are computed when first accessed.
    """

    concepts: ConceptSet
    grid: PatchGrid
    similarity: Float[Tensor, "k m h w"] = field(repr=False)
    kept: Bool[Tensor, "k m"] | None = field(default=None, repr=False)
    """The prototypes that the maps are computed from; None: all."""
    revised_from: "Evidence | None" = field(default=None, repr=False)
    """For corrected evidence: the evidence before, whose maps of the other concepts are reused."""
    revised_rows: frozenset[int] = field(default=frozenset(), repr=False)
    """The concepts that the correction changed."""

    @once
    def mean(self) -> Float[Tensor, "k h w"]:
        """Mean over a concept's prototypes at each patch (``mu``): the map that is displayed."""
        return self._maps("mean", lambda similarity: reduce(similarity, "m h w -> h w", "mean"))

    @once
    def disagreement(self) -> Float[Tensor, "k h w"]:
        """Variance over a concept's prototypes at each patch (``U``)."""
        return self._maps("disagreement", lambda similarity: similarity.var(dim=0, correction=0))

    @once
    def strongest(self) -> Float[Tensor, "k h w"]:
        """Maximum over a concept's prototypes at each patch."""
        return self._maps("strongest", lambda similarity: reduce(similarity, "m h w -> h w", "max"))

    @once
    def scores(self) -> Float[Tensor, "k m"]:
        """Maximum over the patches for each prototype (``s``), the input of the head."""
        return reduce(self.similarity, "k m h w -> k m", "max")

    def revised(self, rows: Mapping[int, Float[Tensor, "m h w"]]) -> "Evidence":
        """Return a copy with other similarities for some concepts, which reuses the maps of the others."""
        similarity = self.similarity.clone()
        for row, maps in rows.items():
            similarity[row] = maps
        return replace(self, similarity=similarity, revised_from=self, revised_rows=frozenset(rows))

    def _maps(self, name: str, compute: Callable[[Tensor], Tensor]) -> Float[Tensor, "k h w"]:
        def map_of(row: int) -> Tensor:
            return compute(self.similarity[row] if self.kept is None else self.similarity[row][self.kept[row]])

        if self.revised_from is None:
            return torch.stack([map_of(row) for row in range(len(self.similarity))])
        maps: Tensor = getattr(self.revised_from, name).clone()
        for row in self.revised_rows:
            maps[row] = map_of(row)
        return maps


def similarity(patches: Float[Tensor, "d h w"], prototypes: Prototypes) -> Float[Tensor, "k m h w"]:
    """Return the cosine of every patch of one film with every prototype; both have unit length."""
    flat = rearrange(patches, "d h w -> d (h w)")
    cosines = torch.stack([vectors @ flat for vectors in prototypes])
    return rearrange(cosines, "k m (h w) -> k m h w", h=patches.shape[-2])


def mean_maps(patches: Float[Tensor, "b d h w"], prototypes: Prototypes) -> Float[Tensor, "b k h w"]:
    """Return ``mu`` of a batch: the mean of cosines is the product with the mean prototype."""
    return torch.stack([torch.einsum("bdhw,d->bhw", patches, vectors.mean(dim=0)) for vectors in prototypes], dim=1)


def disagreement_maps(patches: Float[Tensor, "b d h w"], prototypes: Prototypes) -> Float[Tensor, "b k h w"]:
    """Return ``U`` of a batch: a quadratic form in the scatter of each concept's prototypes."""
    flat = rearrange(patches, "b d h w -> (b h w) d")
    maps = []
    for vectors in prototypes:
        centred = vectors - vectors.mean(dim=0)
        maps.append(((flat @ (centred.T @ centred / len(vectors))) * flat).sum(dim=-1))
    _, _, height, width = patches.shape
    return rearrange(torch.stack(maps).clamp_min(0.0), "k (b h w) -> b k h w", h=height, w=width)


def strongest_maps(patches: Float[Tensor, "b d h w"], prototypes: Prototypes) -> Float[Tensor, "b k h w"]:
    """Return the maximum over the prototypes of each concept at each patch of a batch."""
    return torch.stack([torch.einsum("bdhw,md->bmhw", patches, vectors).amax(dim=1) for vectors in prototypes], dim=1)


def scores(patches: Float[Tensor, "b d h w"], prototypes: Float[Tensor, "k m d"]) -> Float[Tensor, "b k m"]:
    """Return the maximum over the patches for each prototype of a batch (paper Eq. 2)."""
    flat = rearrange(patches, "b d h w -> b d (h w)")
    return torch.stack([(vectors @ flat).amax(dim=-1) for vectors in prototypes], dim=1)
