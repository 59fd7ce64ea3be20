"""What makes up for findings and classes that few films show: weights that grow with the root of their rarity.

The root, not rarity itself: full weights make a model cry wolf.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def positive_weights(labels: Float[Tensor, "n k"], *, balance: bool) -> Float[Tensor, " k"]:
    """What a present finding weighs against an absent one: the root of how many films lack it for one that has it."""
    if not balance:
        return torch.ones(labels.shape[1])
    present, absent = (labels == 1).sum(dim=0), (labels == 0).sum(dim=0)
    return (absent / present.clamp_min(1)).sqrt().clamp(1.0, 10.0)


def rarity_weights(groups: Int[Tensor, " n"], count: int) -> Float[Tensor, " groups"]:
    """What a member of each group weighs: the root of how rare the group is; one on average over members."""
    seen = torch.bincount(groups, minlength=count).float()
    weights = torch.where(seen > 0, (seen.sum() / seen.clamp_min(1)).sqrt(), torch.zeros(count))
    return weights * (seen.sum() / (weights * seen).sum().clamp_min(1e-6))


def film_rarity(labels: Float[Tensor, "n k"]) -> Float[Tensor, " n"]:
    """For each film the root of how rare its rarest finding is; 1 where it shows none."""
    shown = labels == 1
    rarity = (len(labels) / shown.sum(dim=0).clamp_min(1)).sqrt()
    return (shown * rarity).amax(dim=1).clamp_min(1.0)
