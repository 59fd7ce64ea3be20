"""Other views of a film: turned, shifted, zoomed, with other greys. Boxes move along.

A whole batch at once, on whatever device it lies. Each view is drawn from a number of its own, so the same film and
number give the same view in any order, batch, process or second attempt. Mirror images only where somebody asks for
them: the heart is on the left.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

TURN, SHIFT, ZOOM, GAMMA = 0.14, 0.10, 0.10, 0.22
"""At most: radians, share of the side, share of the size, exponent of the greys (as a logarithm)."""


@dataclass(frozen=True)
class Lots:
    """What chance has in store for some films."""

    seeds: list[tuple[int, ...]]
    """One for each film."""
    mirror: bool = False
    """Whether every second view is a mirror image, as the lot falls."""
    greys: int = 0
    """Views of one seed lie alike; those of another number here have other greys."""

    def moves(self) -> Float[Tensor, "b 2 3"]:
        """For each film, where in it each point of the view comes from, in units of half a side."""
        moves = torch.stack([_move(np.random.default_rng(seed)) for seed in self.seeds])
        if self.mirror:
            sides = [1 - 2 * int(np.random.default_rng((*seed, 2)).integers(2)) for seed in self.seeds]
            moves[:, :, 0] *= torch.tensor(sides, dtype=moves.dtype).unsqueeze(1)
        return moves

    def gammas(self) -> list[float]:
        """For each film the exponent of its greys."""
        last = (1, self.greys) if self.greys else (1,)
        return [float(np.exp(np.random.default_rng((*seed, *last)).uniform(-GAMMA, GAMMA))) for seed in self.seeds]


def _move(chance: np.random.Generator) -> Float[Tensor, "2 3"]:
    turn, zoom = chance.uniform(-TURN, TURN), 1 + chance.uniform(-ZOOM, ZOOM)
    across, down = 2 * chance.uniform(-SHIFT, SHIFT, 2)
    cosine, sine = zoom * np.cos(turn), zoom * np.sin(turn)
    return torch.tensor([[cosine, -sine, across], [sine, cosine, down]], dtype=torch.float32)


def moved(pictures: Float[Tensor, "b c h w"], move: Float[Tensor, "b 2 3"], beyond: str) -> Float[Tensor, "b c h w"]:
    """The pictures seen through ``move``; ``beyond`` the film is its border, or zeros."""
    grid = F.affine_grid(move.to(pictures.device), list(pictures.shape), align_corners=False)
    return F.grid_sample(pictures, grid, mode="bilinear", padding_mode=beyond, align_corners=False)


def view(films: Float[Tensor, "b 1 side side"], lots: Lots) -> Float[Tensor, "b 1 side side"]:
    """The films in other positions and greys."""
    powers = torch.tensor(lots.gammas(), dtype=films.dtype, device=films.device).reshape(-1, 1, 1, 1)
    return moved(films, lots.moves(), "border").clamp(0.0, 1.0) ** powers
