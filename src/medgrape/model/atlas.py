"""The atlas: M unit vectors for each concept, what each finding may look like."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class Atlas(nn.Module):
    """K x M prototypes, and perhaps M more for ordinary tissue, which appear in no output.

    What is stored may have any length; what is used has length one.
    """

    def __init__(self, concepts: int, prototypes: int, width: int, *, background: bool = False) -> None:
        super().__init__()
        self.vectors = nn.Parameter(F.normalize(torch.randn(concepts, prototypes, width), dim=-1))
        ordinary = F.normalize(torch.randn(prototypes, width), dim=-1) if background else None
        self.ordinary = None if ordinary is None else nn.Parameter(ordinary)

    @property
    def prototypes(self) -> Float[Tensor, "k m d"]:
        """The prototypes, each of length one."""
        return F.normalize(self.vectors, dim=-1)

    @property
    def contrasted(self) -> Float[Tensor, "groups m d"]:
        """The prototypes that compete for a vector in stage 3: all concepts', and ordinary tissue's as the last."""
        if self.ordinary is None:
            return self.prototypes
        return torch.cat([self.prototypes, F.normalize(self.ordinary, dim=-1).unsqueeze(0)])

    @torch.no_grad()
    def place(self, vectors: Float[Tensor, "groups m d"]) -> None:
        """Put the prototypes somewhere, as unit vectors; in the order of ``contrasted``."""
        concepts = self.vectors.shape[0]
        self.vectors.copy_(F.normalize(vectors[:concepts], dim=-1))
        if self.ordinary is not None:
            self.ordinary.copy_(F.normalize(vectors[concepts], dim=-1))
