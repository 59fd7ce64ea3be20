"""Text anchors: each concept's sentence as a place among the prototypes (paper section 3.4)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
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
