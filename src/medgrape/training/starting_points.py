"""Where prototypes start: k-means on the projected vectors of films that show the concept (settled for the paper)."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from medgrape.model.anchors import perturbed

NOISE = 0.01
"""Of repeated vectors, where a concept has fewer films than prototypes."""


@dataclass(frozen=True)
class StartingPoints:
    """One set of M for each group, and the groups that no film taught anything."""

    prototypes: Float[Tensor, "groups m d"]
    untrained: tuple[int, ...]


def starting_points(
    projected: Float[Tensor, "n d"],
    groups: Int[Tensor, " n"],
    count: int,
    prototypes: int,
    anchors: Float[Tensor, "k d"] | None,
    seed: int,
) -> StartingPoints:
    """For each of ``count`` groups: k-means; too few vectors: repeated with noise; none: the text anchor, or chance."""
    generator = torch.Generator().manual_seed(seed)
    placed, untrained = [], []
    for group in range(count):
        own = projected[groups == group]
        if len(own) == 0:
            untrained.append(group)
            placed.append(_without_films(group, prototypes, projected.shape[1], anchors, generator))
        elif len(own) < prototypes:
            placed.append(_repeated(own, prototypes, generator))
        else:
            placed.append(_k_means(own, prototypes, seed))
    return StartingPoints(torch.stack(placed), tuple(untrained))


def _without_films(
    group: int, prototypes: int, width: int, anchors: Float[Tensor, "k d"] | None, generator: torch.Generator
) -> Float[Tensor, "m d"]:
    if anchors is None or group >= len(anchors):
        return F.normalize(torch.randn(prototypes, width, generator=generator), dim=-1)
    return perturbed(anchors[group].detach(), prototypes, generator)


def _repeated(own: Float[Tensor, "n d"], prototypes: int, generator: torch.Generator) -> Float[Tensor, "m d"]:
    rows = own[torch.arange(prototypes) % len(own)]
    noise = NOISE * torch.randn(rows.shape, generator=generator)
    noise[: len(own)] = 0.0  # each film's own vector stays what it is
    return F.normalize(rows + noise, dim=-1)


def _k_means(own: Float[Tensor, "n d"], prototypes: int, seed: int) -> Float[Tensor, "m d"]:
    from sklearn.cluster import KMeans  # slow to import
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # sums in another order would end in other bytes
        found = KMeans(prototypes, n_init=1, random_state=seed).fit(own.double().numpy())
    return F.normalize(torch.from_numpy(np.asarray(found.cluster_centers_)).float(), dim=-1)
