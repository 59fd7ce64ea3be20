"""Do the prototypes of a concept still differ from each other, and the concepts from one another?"""

from dataclasses import dataclass

import torch
from einops import einsum, reduce
from jaxtyping import Float
from torch import Tensor

PAPER_COLLAPSE = 0.990
"""Mean cosine within a concept after the paper's alignment loss: M prototypes that are one vector."""


@dataclass(frozen=True)
class Dispersion:
    """Mean cosines of pairs of prototypes: 1 all the same, 0 at right angles."""

    prototypes: int
    """How many each concept has."""
    within: float | None
    """Over all pairs of prototypes of the same concept; None where each has one only."""
    between: float | None
    """Over all pairs of prototypes of two concepts; None where there is one concept only."""
    per_concept: tuple[float | None, ...]
    """``within`` for each concept, in the vocabulary's order."""
    paper_collapse: float = PAPER_COLLAPSE

    @classmethod
    def of_none(cls, concepts: int) -> "Dispersion":
        """Of a method that has no prototypes of concepts."""
        return cls(0, None, None, (None,) * concepts)

    @property
    def collapsed(self) -> bool:
        """Whether the prototypes are as good as one vector, as in the paper."""
        return self.within is not None and self.within >= self.paper_collapse


def dispersion(prototypes: Float[Tensor, "k m d"]) -> Dispersion:
    """Mean cosine within and between concepts.

    The mean over all pairs needs no table of pairs: the squared length of a sum of unit vectors holds every product.
    """
    units = torch.nn.functional.normalize(prototypes.detach().to("cpu", torch.float64), dim=-1)
    concepts, count, _ = units.shape
    sums = reduce(units, "k m d -> k d", "sum")
    products = einsum(sums, sums, "k d, j d -> k j")
    own = reduce(units**2, "k m d -> k", "sum")  # every vector with itself, which is no pair
    within = (products.diagonal() - own) / max(count * (count - 1), 1)
    others = (products.sum() - products.diagonal().sum()) / max(concepts * (concepts - 1) * count**2, 1)
    return Dispersion(
        prototypes=count,
        within=float(within.mean()) if count > 1 else None,
        between=float(others) if concepts > 1 else None,
        per_concept=tuple(float(value) if count > 1 else None for value in within),
    )
