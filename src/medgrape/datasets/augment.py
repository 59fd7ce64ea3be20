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

# Largest values: radians, share of the side, share of the size, logarithm of the exponent of the greys
TURN, SHIFT, ZOOM, GAMMA = 0.14, 0.10, 0.10, 0.22


@dataclass(frozen=True)
class RandomViews:
    """Random parameters of one view of each of some films."""

    seeds: list[tuple[int, ...]]  # one for each film
    mirror: bool = False  # whether about every second view is a mirror image
    greys: int = 0  # views of one seed share their position; another number here gives other greys

    def transforms(self) -> Float[Tensor, "b 2 3"]:
        """Return for each film the affine matrix from points of the view to points of the film, in half sides."""
        matrices = []
        for seed in self.seeds:
            random = np.random.default_rng(seed)
            angle, zoom = random.uniform(-TURN, TURN), 1 + random.uniform(-ZOOM, ZOOM)
            across, down = 2 * random.uniform(-SHIFT, SHIFT, 2)
            cosine, sine = zoom * np.cos(angle), zoom * np.sin(angle)
            matrix = torch.tensor([[cosine, -sine, across], [sine, cosine, down]], dtype=torch.float32)
            if self.mirror:
                matrix[:, 0] *= 1 - 2 * int(np.random.default_rng((*seed, 2)).integers(2))
            matrices.append(matrix)
        return torch.stack(matrices)

    def gammas(self) -> list[float]:
        """Return for each film the exponent of its greys."""
        last = (1, self.greys) if self.greys else (1,)
        return [float(np.exp(np.random.default_rng((*seed, *last)).uniform(-GAMMA, GAMMA))) for seed in self.seeds]


def transformed(
    images: Float[Tensor, "b c h w"], matrices: Float[Tensor, "b 2 3"], padding: str
) -> Float[Tensor, "b c h w"]:
    """Return the images under affine matrices; ``padding`` is the padding mode of ``grid_sample``."""
    grid = F.affine_grid(matrices.to(images.device), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode=padding, align_corners=False)


def augmented(films: Float[Tensor, "b 1 side side"], views: RandomViews) -> Float[Tensor, "b 1 side side"]:
    """Return the films with random positions and greys."""
    powers = torch.tensor(views.gammas(), dtype=films.dtype, device=films.device).reshape(-1, 1, 1, 1)
    return transformed(films, views.transforms(), "border").clamp(0.0, 1.0) ** powers
