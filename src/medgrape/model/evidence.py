"""How much each patch of a film looks like each concept (paper Eqs. 2, 4, 5).

Everything is computed one concept at a time. So a (batch, K, M, h, w) tensor never exists, and what is found of one
concept does not depend, to the last bit, on which others there are. For a batch, mean and variance follow from the
prototypes' own mean and scatter.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch
from einops import rearrange, reduce
from jaxtyping import Bool, Float
from torch import Tensor

from medgrape.concepts import ConceptSet
from medgrape.geometry import PatchGrid
from medgrape.lazy import once

Prototypes = Iterable[Float[Tensor, "_ d"]]
"""For each concept its own: a tensor of K x M, or a list where some were discarded."""


@dataclass(frozen=True)
class Evidence:
    """Similarity of every patch to every prototype on one film, before any head or any person judged it.

    Maps are worked out when first asked for, and then kept.
    """

    concepts: ConceptSet
    grid: PatchGrid
    similarity: Float[Tensor, "k m h w"] = field(repr=False)
    kept: Bool[Tensor, "k m"] | None = field(default=None, repr=False)
    """Prototypes that nobody discarded, which alone make the maps; None: all."""
    revised_from: "Revised | None" = field(default=None, repr=False)
    """Where a person corrected it: the evidence before that, whose other concepts' maps are the same."""

    @once
    def mean(self) -> Float[Tensor, "k h w"]:
        """Agreement of a concept's prototypes at each patch: ``mu``, what people see."""
        return self._maps("mean", lambda own: reduce(own, "m h w -> h w", "mean"))

    @once
    def disagreement(self) -> Float[Tensor, "k h w"]:
        """Variance of a concept's prototypes at each patch: ``U``."""
        return self._maps("disagreement", lambda own: own.var(dim=0, correction=0))

    @once
    def strongest(self) -> Float[Tensor, "k h w"]:
        """The best of a concept's prototypes at each patch."""
        return self._maps("strongest", lambda own: reduce(own, "m h w -> h w", "max"))

    @once
    def scores(self) -> Float[Tensor, "k m"]:
        """The best patch for each prototype: ``s``, all that a head sees."""
        return reduce(self.similarity, "k m h w -> k m", "max")

    def revised(self, rows: Mapping[int, Float[Tensor, "m h w"]]) -> "Evidence":
        """The same evidence with other similarities for some concepts; the others' maps need no working out again."""
        similarity = self.similarity.clone()
        for row, other in rows.items():
            similarity[row] = other
        return replace(self, similarity=similarity, revised_from=Revised(self, frozenset(rows)))

    def _maps(self, name: str, work: Callable[[Tensor], Tensor]) -> Float[Tensor, "k h w"]:
        if self.revised_from is None:
            return torch.stack([work(self._in_use(row)) for row in range(len(self.similarity))])
        maps: Tensor = getattr(self.revised_from.evidence, name).clone()
        for row in self.revised_from.rows:
            maps[row] = work(self._in_use(row))
        return maps

    def _in_use(self, row: int) -> Float[Tensor, "_ h w"]:
        own = self.similarity[row]
        return own if self.kept is None else own[self.kept[row]]


@dataclass(frozen=True)
class Revised:
    """What evidence was made from, and in which concepts it differs from that."""

    evidence: Evidence
    rows: frozenset[int]


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
