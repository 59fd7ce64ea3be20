"""Dispersion of the prototypes: how similar are those of one concept, and those of different concepts?"""

from dataclasses import dataclass

import torch
from einops import einsum, reduce
from jaxtyping import Float
from torch import Tensor

PAPER_COLLAPSE = 0.990  # mean cosine within a concept after the paper's alignment loss: M copies of one vector


@dataclass(frozen=True)
class Dispersion:
    """Mean cosines of pairs of prototypes: 1 if all are equal, 0 at right angles."""

    prototypes: int  # number for each concept
    within: float | None  # over all pairs of the same concept; None for a single prototype
    between: float | None  # over all pairs of two concepts; None for a single concept
    per_concept: tuple[float | None, ...]  # ``within`` for each concept, in the vocabulary's order
    paper_collapse: float = PAPER_COLLAPSE

    @classmethod
    def of_none(cls, concepts: int) -> "Dispersion":
        """Return the result for a method without prototypes."""
        return cls(0, None, None, (None,) * concepts)

    @property
    def collapsed(self) -> bool:
        """Whether the prototypes of a concept are practically one vector, as in the paper."""
        return self.within is not None and self.within >= self.paper_collapse


def dispersion(prototypes: Float[Tensor, "k m d"]) -> Dispersion:
    """Compute the mean cosine within and between concepts.

    The squared length of a sum of unit vectors is the sum of all their products, so no table of pairs is needed.
    """
    units = torch.nn.functional.normalize(prototypes.detach().to("cpu", torch.float64), dim=-1)
    concepts, count, _ = units.shape
    sums = reduce(units, "k m d -> k d", "sum")
    products = einsum(sums, sums, "k d, j d -> k j")
    own = reduce(units**2, "k m d -> k", "sum")  # each vector with itself is not a pair
    within = (products.diagonal() - own) / max(count * (count - 1), 1)
    others = (products.sum() - products.diagonal().sum()) / max(concepts * (concepts - 1) * count**2, 1)
    return Dispersion(
        prototypes=count,
        within=float(within.mean()) if count > 1 else None,
        between=float(others) if concepts > 1 else None,
        per_concept=tuple(float(value) if count > 1 else None for value in within),
    )
