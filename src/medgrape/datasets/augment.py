"""Augmentation: random rotation, shift, zoom and contrast of films; boxes are transformed along.

A whole batch is transformed at once, on its device. Each view depends on its seed alone, so the same film and seed give
the same view in any order, batch or process. Mirror images are an option: the heart is on the left.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

TURN, SHIFT, ZOOM, GAMMA = 0.14, 0.10, 0.10, 0.22
"""Largest values: radians, share of the side, share of the size, logarithm of the exponent of the greys."""


@dataclass(frozen=True)
class Lots:
    """Random parameters of the views of some films."""

    seeds: list[tuple[int, ...]]
    """One for each film."""
    mirror: bool = False
    """Whether about every second view is a mirror image."""
    greys: int = 0
    """Views of one seed share their position; another number here gives other greys."""

    def moves(self) -> Float[Tensor, "b 2 3"]:
        """Return for each film the affine matrix from points of the view to points of the film, in half sides."""
        moves = torch.stack([_move(np.random.default_rng(seed)) for seed in self.seeds])
        if self.mirror:
            signs = [1 - 2 * int(np.random.default_rng((*seed, 2)).integers(2)) for seed in self.seeds]
            moves[:, :, 0] *= torch.tensor(signs, dtype=moves.dtype).unsqueeze(1)
        return moves

    def gammas(self) -> list[float]:
        """Return for each film the exponent of its greys."""
        last = (1, self.greys) if self.greys else (1,)
        return [float(np.exp(np.random.default_rng((*seed, *last)).uniform(-GAMMA, GAMMA))) for seed in self.seeds]


def _move(random: np.random.Generator) -> Float[Tensor, "2 3"]:
    turn, zoom = random.uniform(-TURN, TURN), 1 + random.uniform(-ZOOM, ZOOM)
    across, down = 2 * random.uniform(-SHIFT, SHIFT, 2)
    cosine, sine = zoom * np.cos(turn), zoom * np.sin(turn)
    return torch.tensor([[cosine, -sine, across], [sine, cosine, down]], dtype=torch.float32)


def moved(pictures: Float[Tensor, "b c h w"], move: Float[Tensor, "b 2 3"], beyond: str) -> Float[Tensor, "b c h w"]:
    """Return the pictures transformed by ``move``; ``beyond`` is the padding mode of ``grid_sample``."""
    grid = F.affine_grid(move.to(pictures.device), list(pictures.shape), align_corners=False)
    return F.grid_sample(pictures, grid, mode="bilinear", padding_mode=beyond, align_corners=False)


def view(films: Float[Tensor, "b 1 side side"], lots: Lots) -> Float[Tensor, "b 1 side side"]:
    """Return the films with random positions and greys."""
    powers = torch.tensor(lots.gammas(), dtype=films.dtype, device=films.device).reshape(-1, 1, 1, 1)
    return moved(films, lots.moves(), "border").clamp(0.0, 1.0) ** powers
