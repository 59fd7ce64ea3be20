"""The losses of the stages; ``tests/oracles`` computes every equation again with plain loops."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor

MOSTLY = 0.3  # Fraction of a patch that a box must cover for the patch to be inside
POINTING_SCALE, RIVALS = 20.0, 30.0
"""Scale of the cosines in ``pointing_loss``, and the number of patches of normal tissue beside each finding."""
LITTLE = 0.05  # Boxes that cover less than this of a patch are ignored: augmentation moved them off the film


class _MaskedCosines(torch.autograd.Function):
    """Cosines whose backward pass gives no gradient to prototypes whose variance on a sample is too high."""

    @staticmethod
    def forward(
        context: Any,  # noqa: ANN401 (autograd's own)
        vectors: Float[Tensor, "n d"],
        prototypes: Float[Tensor, "groups m d"],
        mask_above: float,
    ) -> Float[Tensor, "n groups m"]:
        """Compute the cosines of all concepts in one product."""
        cosines = rearrange(vectors @ prototypes.flatten(0, 1).T, "n (g m) -> n g m", g=len(prototypes))
        unmasked = cosines.var(dim=-1, correction=0) <= mask_above
        context.save_for_backward(vectors, prototypes, unmasked)
        return cosines

    @staticmethod
    def backward(
        context: Any,  # noqa: ANN401
        slope: Float[Tensor, "n groups m"],
    ) -> tuple[Float[Tensor, "n d"], Float[Tensor, "groups m d"], None]:
        """Vectors get gradients from every concept, prototypes only where their variance is low."""
        vectors, prototypes, unmasked = context.saved_tensors
        gradient = (slope * unmasked.unsqueeze(-1)).flatten(1).T @ vectors
        return slope.flatten(1) @ prototypes.flatten(0, 1), gradient.view_as(prototypes), None


def positive_weights(labels: Float[Tensor, "n k"], *, balance: bool) -> Float[Tensor, " k"]:
    """Return the weight of positives of each concept: the square root of absent over present films, from 1 to 10."""
    if not balance:
        return torch.ones(labels.shape[1])
    present, absent = (labels == 1).sum(dim=0), (labels == 0).sum(dim=0)
    return (absent / present.clamp_min(1)).sqrt().clamp(1.0, 10.0)


def rarity_weights(groups: Int[Tensor, " n"], count: int) -> Float[Tensor, " groups"]:
    """Return the weight of each group: the square root of its rarity; the mean over members is 1."""
    seen = torch.bincount(groups, minlength=count).float()
    weights = torch.where(seen > 0, (seen.sum() / seen.clamp_min(1)).sqrt(), torch.zeros(count))
    return weights * (seen.sum() / (weights * seen).sum().clamp_min(1e-6))


def film_rarity(labels: Float[Tensor, "n k"]) -> Float[Tensor, " n"]:
    """Return for each film the square root of the rarity of its rarest finding; 1 without findings."""
    shown = labels == 1
    rarity = (len(labels) / shown.sum(dim=0).clamp_min(1)).sqrt()
    return (shown * rarity).amax(dim=1).clamp_min(1.0)


def concept_loss(
    logits: Float[Tensor, "b k"], labels: Float[Tensor, "b k"], weights: Float[Tensor, " k"]
) -> Float[Tensor, ""]:
    """Binary cross-entropy over films and concepts (paper Eq. 11); unknown labels (NaN) are ignored.

    ``weights`` multiply the loss of positives. The sum is divided by all films, known or not, so that the mean over
    halves of a batch is the loss of the batch.
    """
    known = ~labels.isnan()
    costs = F.binary_cross_entropy_with_logits(logits, labels.nan_to_num(), pos_weight=weights, reduction="none")
    return (costs * known).sum() / labels.numel()


def box_loss(
    maps: Float[Tensor, "b k h w"],
    overlap: Float[Tensor, "b k h w"],
    boxes_complete: Bool[Tensor, "b k"],
    inside: float = 5.0,
    *,
    rivals: bool = True,
) -> Float[Tensor, ""]:
    """Binary cross-entropy at every patch: is it inside a box of the concept?

    ``boxes_complete`` marks the films and concepts whose boxes are complete: there is a box, or the concept is absent.
    Patches inside are few, so their weight is ``inside``. The patch that is covered most is always inside, so that a
    lesion between four patches, or smaller than one, has a target. Without ``rivals`` patches inside boxes of other
    concepts are ignored: a concept then learns to differ from normal tissue here, and from other concepts by
    ``box_class_loss``.
    """
    most = overlap.amax(dim=(-2, -1), keepdim=True)
    covered = (overlap > MOSTLY) | ((overlap == most) & (most > 0))
    counts = rearrange(boxes_complete, "b k -> b k 1 1").expand_as(covered)
    if not rivals:
        counts = counts & (covered | ~covered.any(dim=1, keepdim=True))
    weight = torch.tensor(inside, dtype=maps.dtype, device=maps.device)
    costs = F.binary_cross_entropy_with_logits(maps, covered.to(maps.dtype), pos_weight=weight, reduction="none")
    return (costs * counts).sum() / maps.numel()


def box_class_loss(
    maps: Float[Tensor, "b k h w"], overlap: Float[Tensor, "b k h w"], weights: Float[Tensor, " k"]
) -> Float[Tensor, ""]:
    """Cross-entropy of the concept of a box, given the mean of every concept's map inside it.

    ``weights`` balance rare concepts; concepts of weight 0 are left out. All boxes of a concept on a film are one box.
    The sum is divided by all films, so that the mean over halves of a batch is the loss of the batch.
    """
    mass = overlap.sum(dim=(-2, -1))
    means = torch.einsum("bchw,bkhw->bkc", maps, overlap) / mass.clamp_min(1e-6).unsqueeze(-1)
    means = means.masked_fill(weights == 0, -torch.inf)
    costs = weights * -means.log_softmax(dim=-1).diagonal(dim1=-2, dim2=-1)
    return costs[(mass > LITTLE) & (weights > 0)].sum() / len(maps)


def soft_similarity(
    vectors: Float[Tensor, "n d"], prototypes: Float[Tensor, "groups m d"], sharpness: float
) -> Float[Tensor, "n groups"]:
    """Compute the similarity to each concept: its cosines, weighted by their own softmax (paper Eqs. 8, 9)."""
    return _soft_maximum(torch.einsum("nd,gmd->ngm", vectors, prototypes), sharpness)


def _soft_maximum(cosines: Float[Tensor, "n groups m"], sharpness: float) -> Float[Tensor, "n groups"]:
    return ((sharpness * cosines).softmax(dim=-1) * cosines).sum(dim=-1)


def contrastive_loss(
    similarity: Float[Tensor, "n groups"],
    truth: Int[Tensor, " n"],
    scale: float,
    margin: float,
    weights: Float[Tensor, " groups"] | None = None,
) -> Float[Tensor, ""]:
    """Cross-entropy of the true concept (paper Eq. 10); the margin is added to its logit only.

    The paper prints the margin in the numerator only, where it changes no gradient; here it is part of the logit.
    ``weights`` balance rare concepts.
    """
    raised = F.one_hot(truth, similarity.shape[1]) * margin
    return F.cross_entropy(scale * (similarity + raised), truth, weight=weights)


def pointing_loss(
    means: Float[Tensor, "n k"], truth: Int[Tensor, " n"], weights: Float[Tensor, " groups"]
) -> Float[Tensor, ""]:
    """Cross-entropy of a finding among patches of normal tissue, in the mean map of its own concept.

    ``means`` are cosines with the mean prototype of each concept; ``truth`` is the concept of each vector, or K for
    normal tissue. The contrastive loss compares concepts at one place; this loss compares places in the map of one
    concept, whose maximum is its location. Normal tissue counts as ``RIVALS`` patches, whatever the batch size.
    """
    ordinary = truth == means.shape[1]
    if not ordinary.any():
        return means.new_zeros(())
    tissue = torch.logsumexp(POINTING_SCALE * means[ordinary], dim=0) + math.log(RIVALS / int(ordinary.sum()))
    findings, concepts = means[~ordinary], truth[~ordinary]
    own = POINTING_SCALE * findings.gather(1, concepts.unsqueeze(1)).squeeze(1)
    return (weights[concepts] * (torch.logaddexp(own, tissue[concepts]) - own)).sum() / len(truth)


def detection_loss(maps: Float[Tensor, "b k h w"], labels: Float[Tensor, "b k"]) -> Float[Tensor, ""]:
    """A smooth AUC of each concept: for every pair of films, the one with it should have the higher peak in its map.

    Peaks are log-sum-exps, and the loss of a pair is logistic. Films with an unknown label (NaN) and concepts without
    any pair are ignored.
    """
    peaks = torch.logsumexp(POINTING_SCALE * maps.flatten(2), dim=-1)
    costs = F.softplus(rearrange(peaks, "b k -> 1 b k") - rearrange(peaks, "b k -> b 1 k"))
    pairs = rearrange(labels == 1, "b k -> b 1 k") & rearrange(labels == 0, "b k -> 1 b k")
    means = (costs * pairs).sum(dim=(0, 1)) / pairs.sum(dim=(0, 1)).clamp_min(1)
    return means.sum() / pairs.any(dim=1).any(dim=0).sum().clamp_min(1)


def alignment_loss(prototypes: Float[Tensor, "k m d"], anchors: Float[Tensor, "k d"]) -> Float[Tensor, ""]:
    """One minus the cosine of each prototype with its text anchor (paper Eq. 7)."""
    return (1 - torch.einsum("kmd,kd->km", prototypes, anchors)).mean()


def dispersion_loss(prototypes: Float[Tensor, "groups m d"], nearest: float = 0.5) -> Float[Tensor, ""]:
    """Squared excess of cosines between prototypes of one concept over ``nearest``, so that they do not collapse."""
    cosines = torch.einsum("gmd,gnd->gmn", prototypes, prototypes)
    others = ~torch.eye(prototypes.shape[1], dtype=torch.bool, device=prototypes.device)
    if not others.any():
        return cosines.new_zeros(())
    return F.relu(cosines - nearest)[:, others].square().mean()


def masked_similarity(
    vectors: Float[Tensor, "n d"], prototypes: Float[Tensor, "groups m d"], sharpness: float, mask_above: float
) -> Float[Tensor, "n groups"]:
    """``soft_similarity`` without gradients to the prototypes of a concept whose variance on a sample is too high.

    The threshold of the variance is ``mask_above`` (theta_U). The sample itself still gets gradients from them.
    """
    cosines: Tensor = _MaskedCosines.apply(vectors, prototypes, mask_above)  # type: ignore[no-untyped-call]
    return _soft_maximum(cosines, sharpness)
