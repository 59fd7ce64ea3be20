"""The atlas: M prototypes, unit vectors, for each concept, and the text anchors that they are trained towards."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn


class Anchors(nn.Module):
    """A learnt projection of text embeddings into the space of prototypes; the embeddings are fixed."""

    text: Tensor

    def __init__(self, text: Float[Tensor, "k t"], width: int) -> None:
        super().__init__()
        self.register_buffer("text", text.clone())
        self.project = nn.Linear(text.shape[1], width, bias=False)

    def forward(self) -> Float[Tensor, "k d"]:
        """Return a unit vector for each concept."""
        return self.of(self.text)

    def of(self, text: Float[Tensor, "n t"]) -> Float[Tensor, "n d"]:
        """Project other text embeddings to unit vectors."""
        return F.normalize(self.project(text), dim=-1)


def perturbed(anchor: Float[Tensor, " d"], copies: int, generator: torch.Generator, sigma: float = 0.1) -> Tensor:
    """Return copies of a unit vector, each moved by ``sigma`` in a random direction and normalised."""
    directions = F.normalize(torch.randn(copies, anchor.shape[0], generator=generator), dim=-1)
    return F.normalize(anchor.cpu() + sigma * directions, dim=-1)


class Atlas(nn.Module):
    """K x M prototypes and, optionally, M more for normal tissue, which are not part of any output.

    Stored vectors have any length; they are normalised when used. A discarded prototype remains stored, so that it can
    be restored; it is excluded from all maps, and the head receives its value of ``silent`` instead of its score.
    """

    kept: Tensor
    silent: Tensor

    def __init__(self, concepts: int, prototypes: int, width: int, *, background: bool = False) -> None:
        super().__init__()
        self.vectors = nn.Parameter(F.normalize(torch.randn(concepts, prototypes, width), dim=-1))
        normal = F.normalize(torch.randn(prototypes, width), dim=-1) if background else None
        self.ordinary = None if normal is None else nn.Parameter(normal)
        self.register_buffer("kept", torch.ones(concepts, prototypes, dtype=torch.bool))
        self.register_buffer("silent", torch.zeros(concepts, prototypes))

    @property
    def prototypes(self) -> Float[Tensor, "k m d"]:
        """The prototypes as unit vectors."""
        return F.normalize(self.vectors, dim=-1)

    @property
    def in_use(self) -> list[Float[Tensor, "_ d"]]:
        """For each concept, the prototypes that are not discarded."""
        return [vectors[kept] for vectors, kept in zip(self.prototypes, self.kept, strict=True)]

    def mask_discarded(self, scores: Float[Tensor, "b k m"]) -> Float[Tensor, "b k m"]:
        """Replace the scores of discarded prototypes by their reference score on films without the concept."""
        return torch.where(self.kept, scores, self.silent)

    def curated(self, kept: Bool[Tensor, "k m"], silent: Float[Tensor, "k m"]) -> None:
        """Discard all prototypes but those in ``kept``."""
        self.kept.copy_(kept)
        self.silent.copy_(silent)

    @property
    def contrasted(self) -> Float[Tensor, "groups m d"]:
        """The groups of prototypes in the contrastive loss of stage 3: all concepts and, last, normal tissue if any."""
        if self.ordinary is None:
            return self.prototypes
        return torch.cat([self.prototypes, F.normalize(self.ordinary, dim=-1).unsqueeze(0)])

    @torch.no_grad()
    def place(self, vectors: Float[Tensor, "groups m d"]) -> None:
        """Set the prototypes, normalised, in the order of ``contrasted``."""
        concepts = self.vectors.shape[0]
        self.vectors.copy_(F.normalize(vectors[:concepts], dim=-1))
        if self.ordinary is not None:
            self.ordinary.copy_(F.normalize(vectors[concepts], dim=-1))
