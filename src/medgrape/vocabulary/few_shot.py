"""What a few films teach: the prototypes of one new concept move to what the films show. Nothing else moves."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

from medgrape.model.anchors import perturbed

SPREAD = 0.05
"""How far apart the prototypes are put around what the films show."""
SHARPNESS = 20.0
"""Of the choice among patches where nobody drew a box: 0 would take them all alike, infinity the best one."""


@dataclass(frozen=True)
class Example:
    """One film that shows the new concept."""

    patches: Float[Tensor, "d h w"]
    """In the space of prototypes, each of length one."""
    inside: Float[Tensor, "h w"] | None
    """How much of each patch, from 0 to 1, lies in a box of the concept; None where nobody drew one."""


def tune(
    start: Float[Tensor, "m d"], examples: Sequence[Example], others: Float[Tensor, "n d"], *, seed: int
) -> Float[Tensor, "m d"]:
    """The prototypes after the films: around the mean of what lies in the boxes, each film counting alike.

    ``others`` are all prototypes of other concepts and of ordinary tissue. Where a film has no box, the patches count
    that look more like ``start`` than like any of those.
    """
    if not examples:
        return start
    anchor = F.normalize(start.mean(dim=0), dim=-1)
    seen = [_seen(example, anchor, others) for example in examples]
    generator = torch.Generator().manual_seed(seed)
    return perturbed(F.normalize(torch.stack(seen).mean(dim=0), dim=-1), len(start), generator, SPREAD)


def _seen(example: Example, anchor: Float[Tensor, " d"], others: Float[Tensor, "n d"]) -> Float[Tensor, " d"]:
    if example.inside is not None:
        return weighted_mean(example.patches, example.inside)
    lead = einsum(example.patches, anchor, "d h w, d -> h w") - likeness(example.patches, others)
    return weighted_mean(example.patches, softmax_over_patches(SHARPNESS * lead))


def weighted_mean(patches: Float[Tensor, "d h w"], weights: Float[Tensor, "h w"]) -> Float[Tensor, " d"]:
    """The mean patch, of length one."""
    return F.normalize(einsum(patches, weights, "d h w, h w -> d"), dim=-1)


def likeness(patches: Float[Tensor, "d h w"], others: Float[Tensor, "n d"]) -> Float[Tensor, "h w"]:
    """How much each patch looks like the nearest of ``others``; 0 where there are none."""
    if len(others) == 0:
        return torch.zeros_like(patches[0])
    return einsum(others, patches, "n d, d h w -> n h w").amax(dim=0)


def softmax_over_patches(logits: Float[Tensor, "h w"]) -> Float[Tensor, "h w"]:
    """Weights that add up to one over the film."""
    return rearrange(rearrange(logits, "h w -> (h w)").softmax(dim=0), "(h w) -> h w", h=logits.shape[0])
