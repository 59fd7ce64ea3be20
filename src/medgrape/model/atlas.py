"""The atlas: M unit vectors for each concept, what each finding may look like."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn


class Anchors(nn.Module):
    """The learnt projection of text into the space of prototypes; the text itself is fixed."""

    text: Tensor

    def __init__(self, text: Float[Tensor, "k t"], width: int) -> None:
        super().__init__()
        self.register_buffer("text", text.clone())
        self.project = nn.Linear(text.shape[1], width, bias=False)

    def forward(self) -> Float[Tensor, "k d"]:
        """One unit vector for each concept."""
        return self.of(self.text)

    def of(self, text: Float[Tensor, "n t"]) -> Float[Tensor, "n d"]:
        """Other sentences, seen by the same projection."""
        return F.normalize(self.project(text), dim=-1)


def perturbed(anchor: Float[Tensor, " d"], copies: int, generator: torch.Generator, sigma: float = 0.1) -> Tensor:
    """Copies of an anchor, each moved ``sigma`` in a direction drawn by lot, back on the unit sphere."""
    directions = F.normalize(torch.randn(copies, anchor.shape[0], generator=generator), dim=-1)
    return F.normalize(anchor.cpu() + sigma * directions, dim=-1)


class Atlas(nn.Module):
    """K x M prototypes, and perhaps M more for ordinary tissue, which appear in no output.

    What is stored may have any length; what is used has length one. A prototype that somebody discarded stays where it
    is, so that it can be restored; it is in no map, and the head hears ``silent`` in its place.
    """

    kept: Tensor
    silent: Tensor

    def __init__(self, concepts: int, prototypes: int, width: int, *, background: bool = False) -> None:
        super().__init__()
        self.vectors = nn.Parameter(F.normalize(torch.randn(concepts, prototypes, width), dim=-1))
        ordinary = F.normalize(torch.randn(prototypes, width), dim=-1) if background else None
        self.ordinary = None if ordinary is None else nn.Parameter(ordinary)
        self.register_buffer("kept", torch.ones(concepts, prototypes, dtype=torch.bool))
        self.register_buffer("silent", torch.zeros(concepts, prototypes))

    @property
    def prototypes(self) -> Float[Tensor, "k m d"]:
        """The prototypes, each of length one."""
        return F.normalize(self.vectors, dim=-1)

    @property
    def in_use(self) -> list[Float[Tensor, "_ d"]]:
        """For each concept, the prototypes that nobody discarded."""
        return [own[kept] for own, kept in zip(self.prototypes, self.kept, strict=True)]

    def heard(self, scores: Float[Tensor, "b k m"]) -> Float[Tensor, "b k m"]:
        """Scores as the head hears them: a discarded prototype says what it says on films without the concept."""
        return torch.where(self.kept, scores, self.silent)

    def curated(self, kept: Bool[Tensor, "k m"], silent: Float[Tensor, "k m"]) -> None:
        """Discard all but the prototypes in ``kept``."""
        self.kept.copy_(kept)
        self.silent.copy_(silent)

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
