"""What a few films teach: the prototypes of one new concept move to what the films show. Nothing else moves.

The paper tunes them on the examples alone, and gets worse with more of them. Three things make the difference here. The
box is a prior: patches inside it are the finding, and all others on the same films are not. What is known already is a
negative too: the prototypes of the other concepts and of ordinary tissue. And the films themselves say when to stop:
where the finding stands out most on the film on which it stands out least.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from einops import einsum, rearrange
from jaxtyping import Bool, Float
from torch import Tensor

from medgrape.model.atlas import perturbed

SCALE = 10.0
"""lambda of the contrastive loss, as in stage 3."""
KNOWN = 0.3
"""What telling the concept from all that is known counts, against telling it from the rest of the same films."""
STEPS, LEARNING_RATE = 60, 0.05
MOST_NEGATIVES = 1024
"""Of the patches outside, those that look most like the finding are learnt from."""
SHARPNESS = 20.0
"""Of the choice among patches where nobody drew a box: 0 would take them all alike, infinity the best one."""
LOOKS = 3
"""Without boxes: how often the films are looked at again for where the finding is."""
AGREEMENT = 0.55
"""Mean cosine between the prototypes of the new concept: as far apart as those of trained concepts are, so that means
over them are on one scale."""


@dataclass(frozen=True)
class Example:
    """One film that shows the new concept."""

    patches: Float[Tensor, "d h w"]
    """In the space of prototypes, each of length one."""
    inside: Float[Tensor, "h w"] | None
    """How much of each patch, from 0 to 1, lies in a box of the concept; None where nobody drew one."""


@dataclass(frozen=True)
class Shown:
    """One film, patch by patch, with what is taken to be the finding."""

    patches: Float[Tensor, "n d"]
    weights: Float[Tensor, " n"]
    """Adds up to one over the finding."""
    outside: Bool[Tensor, " n"]

    def lead(self, direction: Float[Tensor, " d"]) -> float:
        """How far the finding stands out on this film."""
        found = self.patches @ direction
        beside = found[self.outside].max() if self.outside.any() else found.new_tensor(-1.0)
        return float((found * self.weights).sum() - beside)


def tune(
    start: Float[Tensor, "m d"], examples: Sequence[Example], others: Float[Tensor, "n d"], *, seed: int
) -> Float[Tensor, "m d"]:
    """The prototypes after the films, each film counting alike.

    ``others`` are all prototypes of other concepts and of ordinary tissue. Where a film has no box, the patches count
    that look more like ``start`` than like any of those, and then those that look like what was learnt so far.
    """
    if not examples:
        return start
    anchor = F.normalize(start.mean(dim=0), dim=-1)
    shown = [_shown(example, anchor, others) for example in examples]
    direction = _learnt(shown, others)
    for _ in range(LOOKS if any(example.inside is None for example in examples) else 0):
        shown = [_shown(example, direction, others) for example in examples]
        direction = _learnt(shown, others)
    return _spread(direction, len(start), seed)


def _shown(example: Example, direction: Float[Tensor, " d"], others: Float[Tensor, "n d"]) -> Shown:
    patches = rearrange(example.patches, "d h w -> (h w) d")
    if example.inside is not None:
        covered = rearrange(example.inside, "h w -> (h w)")
        core = torch.where(covered >= covered.max() / 2, covered, torch.zeros_like(covered))
        return Shown(patches, core / core.sum(), covered == 0)
    lead = einsum(example.patches, direction, "d h w, d -> h w") - likeness(example.patches, others)
    weights = rearrange(softmax_over_patches(SHARPNESS * lead), "h w -> (h w)")
    return Shown(patches, weights, weights < weights.max() / 20)


def _learnt(shown: Sequence[Shown], others: Float[Tensor, "n d"]) -> Float[Tensor, " d"]:
    """The direction in which the finding lies apart from the rest of the films, and from all that is known."""
    inside = torch.cat([one.patches for one in shown])
    weights = torch.cat([one.weights for one in shown]) / len(shown)
    inside, weights = inside[weights > 0], weights[weights > 0]
    mean = F.normalize((inside * weights.unsqueeze(1)).sum(dim=0), dim=-1)
    outside = torch.cat([one.patches[one.outside] for one in shown])
    outside = outside[(outside @ mean).topk(min(MOST_NEGATIVES, len(outside))).indices]
    vector, best, farthest = mean.clone().requires_grad_(True), mean, -2.0
    optimiser = torch.optim.Adam([vector], lr=LEARNING_RATE)
    for _ in range(STEPS):
        optimiser.zero_grad()
        direction = F.normalize(vector, dim=-1)
        found = SCALE * (inside @ direction)
        loss = (weights * _missed(found, SCALE * (outside @ direction))).sum()
        loss = loss + KNOWN * (weights * _missed(found, SCALE * (others @ direction))).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        reached = F.normalize(vector.detach(), dim=-1)
        lead = min(one.lead(reached) for one in shown)
        if lead > farthest:
            best, farthest = reached, lead
    return best


def _missed(found: Float[Tensor, " n"], against: Float[Tensor, " o"]) -> Float[Tensor, " n"]:
    """Minus the log of each patch's share against all of ``against`` together."""
    if len(against) == 0:
        return torch.zeros_like(found)
    return torch.logaddexp(found, torch.logsumexp(against, dim=0)) - found


def _spread(direction: Float[Tensor, " d"], count: int, seed: int) -> Float[Tensor, "m d"]:
    """Prototypes around a direction, as far apart from each other as a trained concept's."""
    sigma = (1 / AGREEMENT - 1) ** 0.5
    return perturbed(direction, count, torch.Generator().manual_seed(seed), sigma)


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
