"""Few-shot tuning: the prototypes of a new concept are fitted to a few example films. Nothing else changes.

The paper tunes them on the examples alone, and gets worse with more of them. This does three things differently. The
box is a prior: patches inside it are positives, all others on the same film are negatives. Known concepts are
negatives too: the prototypes of the other concepts and of normal tissue. And early stopping uses the films themselves:
it keeps the step at which the finding stands out most on the film on which it stands out least.
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
"""Weight of the loss against known concepts, relative to the loss against the rest of the same films."""
STEPS, LEARNING_RATE = 60, 0.05
MOST_NEGATIVES = 1024
"""Number of patches outside the boxes that are used: those most similar to the finding."""
SHARPNESS = 20.0
"""Sharpness of the soft choice of patches on films without a box: 0 weighs all equally, infinity takes the best."""
ITERATIONS = 3
"""Number of times that the finding is located again on films without a box."""
AGREEMENT = 0.55
"""Mean cosine between the prototypes of the new concept: that of trained concepts, so that their mean maps have the
same scale."""


@dataclass(frozen=True)
class Example:
    """A film that shows the new concept."""

    patches: Float[Tensor, "d h w"]
    """Unit vectors in the space of prototypes."""
    inside: Float[Tensor, "h w"] | None
    """Fraction of each patch, from 0 to 1, inside the boxes of the concept; None without a box."""


@dataclass(frozen=True)
class WeightedPatches:
    """The patches of an example with their weights as positives and a mask of the negatives."""

    patches: Float[Tensor, "n d"]
    weights: Float[Tensor, " n"]
    """Sums to one."""
    outside: Bool[Tensor, " n"]

    def lead(self, direction: Float[Tensor, " d"]) -> float:
        """Return the similarity of the finding minus the highest similarity outside it."""
        cosines = self.patches @ direction
        highest = cosines[self.outside].max() if self.outside.any() else cosines.new_tensor(-1.0)
        return float((cosines * self.weights).sum() - highest)


def tune(
    start: Float[Tensor, "m d"], examples: Sequence[Example], others: Float[Tensor, "n d"], *, seed: int
) -> Float[Tensor, "m d"]:
    """Return the prototypes fitted to the films, each film with equal weight.

    ``others`` are all prototypes of other concepts and of normal tissue. On films without a box, the positives are the
    patches more similar to ``start`` than to any of those; then they are located again with the fitted prototypes.
    """
    if not examples:
        return start
    anchor = F.normalize(start.mean(dim=0), dim=-1)
    direction = _fitted([_weighted(example, anchor, others) for example in examples], others)
    if any(example.inside is None for example in examples):
        for _ in range(ITERATIONS):
            direction = _fitted([_weighted(example, direction, others) for example in examples], others)
    sigma = (1 / AGREEMENT - 1) ** 0.5
    return perturbed(direction, len(start), torch.Generator().manual_seed(seed), sigma)


def _weighted(example: Example, direction: Float[Tensor, " d"], others: Float[Tensor, "n d"]) -> WeightedPatches:
    patches = rearrange(example.patches, "d h w -> (h w) d")
    if example.inside is not None:
        coverage = rearrange(example.inside, "h w -> (h w)")
        core = torch.where(coverage >= coverage.max() / 2, coverage, torch.zeros_like(coverage))
        return WeightedPatches(patches, core / core.sum(), coverage == 0)
    lead = einsum(example.patches, direction, "d h w, d -> h w") - likeness(example.patches, others)
    weights = rearrange(softmax_over_patches(SHARPNESS * lead), "h w -> (h w)")
    return WeightedPatches(patches, weights, weights < weights.max() / 20)


def _fitted(films: Sequence[WeightedPatches], others: Float[Tensor, "n d"]) -> Float[Tensor, " d"]:
    """Return the direction that separates the finding from the rest of the films and from known concepts."""
    inside = torch.cat([film.patches for film in films])
    weights = torch.cat([film.weights for film in films]) / len(films)
    inside, weights = inside[weights > 0], weights[weights > 0]
    mean = F.normalize((inside * weights.unsqueeze(1)).sum(dim=0), dim=-1)
    outside = torch.cat([film.patches[film.outside] for film in films])
    outside = outside[(outside @ mean).topk(min(MOST_NEGATIVES, len(outside))).indices]
    vector, best, best_lead = mean.clone().requires_grad_(True), mean, -2.0
    optimiser = torch.optim.Adam([vector], lr=LEARNING_RATE)
    for _ in range(STEPS):
        optimiser.zero_grad()
        direction = F.normalize(vector, dim=-1)
        logits = SCALE * (inside @ direction)
        loss = (weights * _cross_entropy(logits, SCALE * (outside @ direction))).sum()
        loss = loss + KNOWN * (weights * _cross_entropy(logits, SCALE * (others @ direction))).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        direction = F.normalize(vector.detach(), dim=-1)
        lead = min(film.lead(direction) for film in films)
        if lead > best_lead:
            best, best_lead = direction, lead
    return best


def _cross_entropy(positives: Float[Tensor, " n"], negatives: Float[Tensor, " o"]) -> Float[Tensor, " n"]:
    """Return minus the log of each positive's softmax against all negatives."""
    if len(negatives) == 0:
        return torch.zeros_like(positives)
    return torch.logaddexp(positives, torch.logsumexp(negatives, dim=0)) - positives


def weighted_mean(patches: Float[Tensor, "d h w"], weights: Float[Tensor, "h w"]) -> Float[Tensor, " d"]:
    """Return the mean patch as a unit vector."""
    return F.normalize(einsum(patches, weights, "d h w, h w -> d"), dim=-1)


def likeness(patches: Float[Tensor, "d h w"], others: Float[Tensor, "n d"]) -> Float[Tensor, "h w"]:
    """Return each patch's similarity to the nearest of ``others``; 0 if there are none."""
    if len(others) == 0:
        return torch.zeros_like(patches[0])
    return einsum(others, patches, "n d, d h w -> n h w").amax(dim=0)


def softmax_over_patches(logits: Float[Tensor, "h w"]) -> Float[Tensor, "h w"]:
    """Return weights that sum to one over the film."""
    return rearrange(rearrange(logits, "h w -> (h w)").softmax(dim=0), "(h w) -> h w", h=logits.shape[0])
