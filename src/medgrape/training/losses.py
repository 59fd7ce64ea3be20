"""What each stage minimises. A slow twin of every equation is in ``tests/oracles``."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor


class _MaskedCosines(torch.autograd.Function):
    """Forwards plain cosines; backwards, a sample leaves prototypes alone that disagree about it too much."""

    @staticmethod
    def forward(
        context: Any,  # noqa: ANN401 (autograd's own)
        vectors: Float[Tensor, "n d"],
        prototypes: Float[Tensor, "groups m d"],
        mask_above: float,
    ) -> Float[Tensor, "n groups m"]:
        """One product for all concepts."""
        cosines = rearrange(vectors @ prototypes.flatten(0, 1).T, "n (g m) -> n g m", g=len(prototypes))
        agreeing = cosines.var(dim=-1, correction=0) <= mask_above
        context.save_for_backward(vectors, prototypes, agreeing)
        return cosines

    @staticmethod
    def backward(
        context: Any,  # noqa: ANN401
        slope: Float[Tensor, "n groups m"],
    ) -> tuple[Float[Tensor, "n d"], Float[Tensor, "groups m d"], None]:
        """The vector learns from every concept, a prototype from the samples that its concept agrees about."""
        vectors, prototypes, agreeing = context.saved_tensors
        taught = (slope * agreeing.unsqueeze(-1)).flatten(1).T @ vectors
        return slope.flatten(1) @ prototypes.flatten(0, 1), taught.view_as(prototypes), None


def masked_cosines(
    vectors: Float[Tensor, "n d"], prototypes: Float[Tensor, "groups m d"], mask_above: float
) -> Float[Tensor, "n groups m"]:
    """Cosines in which a sample gives no gradient to the prototypes of a concept whose variance at it, over its
    prototypes, exceeds ``mask_above`` (theta_U). The sample's own vector still learns from them.
    """
    cosines: Tensor = _MaskedCosines.apply(vectors, prototypes, mask_above)  # type: ignore[no-untyped-call]
    return cosines


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


MOSTLY = 0.3
"""Share of a patch that a box must cover to count as covering it."""
POINTING_SCALE, RIVALS = 20.0, 30.0
"""How steeply a finding's lead over ordinary tissue counts, and over how many patches of it."""
LITTLE = 0.05
"""Of a patch: boxes that cover less, since a view has moved them off the film, are not asked about."""


def concept_loss(
    logits: Float[Tensor, "b k"], labels: Float[Tensor, "b k"], weights: Float[Tensor, " k"]
) -> Float[Tensor, ""]:
    """Binary cross-entropy over films and concepts (paper Eq. 11); a label that is not known (NaN) costs nothing.

    ``weights`` multiply what a missed finding costs. Divided by all films, known or not, so that halves of a batch
    average to the whole.
    """
    known = ~labels.isnan()
    costs = F.binary_cross_entropy_with_logits(logits, labels.nan_to_num(), pos_weight=weights, reduction="none")
    return (costs * known).sum() / labels.numel()


def box_loss(
    maps: Float[Tensor, "b k h w"],
    overlap: Float[Tensor, "b k h w"],
    judged: Bool[Tensor, "b k"],
    inside: float = 5.0,
    *,
    rivals: bool = True,
) -> Float[Tensor, ""]:
    """Binary cross-entropy at every patch: does a box of the concept cover much of it?

    ``judged`` says for which films and concepts the boxes tell the whole truth: it has a box, or the concept is
    absent. Patches inside are few, so each weighs ``inside`` times as much. The patch that is covered most always
    counts, so that a lesion between four patches, or smaller than one, is not taught to be nowhere. Without
    ``rivals`` a patch that a box of another concept covers costs nothing: a concept learns to differ from ordinary
    tissue here, and from the others by ``telling_loss``.
    """
    most = overlap.amax(dim=(-2, -1), keepdim=True)
    covered = (overlap > MOSTLY) | ((overlap == most) & (most > 0))
    counts = rearrange(judged, "b k -> b k 1 1").expand_as(covered)
    if not rivals:
        counts = counts & (covered | ~covered.any(dim=1, keepdim=True))
    weight = torch.tensor(inside, dtype=maps.dtype, device=maps.device)
    costs = F.binary_cross_entropy_with_logits(maps, covered.to(maps.dtype), pos_weight=weight, reduction="none")
    return (costs * counts).sum() / maps.numel()


def telling_loss(
    maps: Float[Tensor, "b k h w"], overlap: Float[Tensor, "b k h w"], weights: Float[Tensor, " k"]
) -> Float[Tensor, ""]:
    """Cross-entropy between the concepts on the means of their maps inside a box: which of them does it show?

    ``weights`` make up for rare concepts; one of weight 0 takes no part, neither as an answer nor as a rival. All boxes
    of one concept on one film count as one. Divided by all films, so that halves of a batch average to the whole.
    """
    mass = overlap.sum(dim=(-2, -1))
    means = torch.einsum("bchw,bkhw->bkc", maps, overlap) / mass.clamp_min(1e-6).unsqueeze(-1)
    means = means.masked_fill(weights == 0, -torch.inf)
    costs = weights * -means.log_softmax(dim=-1).diagonal(dim1=-2, dim2=-1)
    return costs[(mass > LITTLE) & (weights > 0)].sum() / len(maps)


def soft_similarity(
    vectors: Float[Tensor, "n d"], prototypes: Float[Tensor, "groups m d"], sharpness: float
) -> Float[Tensor, "n groups"]:
    """Similarity to each concept: its prototypes' cosines, weighted by their own softmax (paper Eqs. 8, 9)."""
    return _softly(torch.einsum("nd,gmd->ngm", vectors, prototypes), sharpness)


def _softly(cosines: Float[Tensor, "n groups m"], sharpness: float) -> Float[Tensor, "n groups"]:
    return ((sharpness * cosines).softmax(dim=-1) * cosines).sum(dim=-1)


def contrastive_loss(
    similarity: Float[Tensor, "n groups"],
    truth: Int[Tensor, " n"],
    scale: float,
    margin: float,
    weights: Float[Tensor, " groups"] | None = None,
) -> Float[Tensor, ""]:
    """Minus log of the true concept's share (paper Eq. 10); the margin is on the true concept's logit alone.

    The paper prints the margin in the numerator only, where it changes no gradient; here it is part of the logit.
    ``weights`` make up for concepts that few films show.
    """
    raised = F.one_hot(truth, similarity.shape[1]) * margin
    return F.cross_entropy(scale * (similarity + raised), truth, weight=weights)


def pointing_loss(
    means: Float[Tensor, "n k"], truth: Int[Tensor, " n"], weights: Float[Tensor, " groups"]
) -> Float[Tensor, ""]:
    """Minus log of a finding's share among ordinary tissue, in the mean map of its own concept.

    ``means`` are cosines with the mean prototype of each concept, ``truth`` the concept of each vector, or K for
    ordinary tissue. The contrastive loss compares concepts at one place; here places are compared in one concept's map,
    which is what pointing at its highest place does. Tissue counts as if there were ``RIVALS`` patches of it, however
    many a batch holds.
    """
    ordinary = truth == means.shape[1]
    if not ordinary.any():
        return means.new_zeros(())
    tissue = torch.logsumexp(POINTING_SCALE * means[ordinary], dim=0) + math.log(RIVALS / int(ordinary.sum()))
    found, concepts = means[~ordinary], truth[~ordinary]
    own = POINTING_SCALE * found.gather(1, concepts.unsqueeze(1)).squeeze(1)
    return (weights[concepts] * (torch.logaddexp(own, tissue[concepts]) - own)).sum() / len(truth)


def detection_loss(maps: Float[Tensor, "b k h w"], labels: Float[Tensor, "b k"]) -> Float[Tensor, ""]:
    """Films with a finding should peak higher in its map than films without: every such pair of films is compared.

    What the AUC of a concept counts, made smooth: the peak by log-sum-exp, the order of a pair by a logistic curve. A
    label that is not known (NaN) is in no pair; concepts without any pair cost nothing.
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
    """How far cosines between prototypes of one concept exceed ``nearest``: what keeps them from being one vector."""
    cosines = torch.einsum("gmd,gnd->gmn", prototypes, prototypes)
    others = ~torch.eye(prototypes.shape[1], dtype=torch.bool, device=prototypes.device)
    if not others.any():
        return cosines.new_zeros(())
    return F.relu(cosines - nearest)[:, others].square().mean()


def masked_similarity(
    vectors: Float[Tensor, "n d"], prototypes: Float[Tensor, "groups m d"], sharpness: float, mask_above: float
) -> Float[Tensor, "n groups"]:
    """``soft_similarity`` in which a sample gives no gradient to prototypes that disagree about it too much."""
    return _softly(masked_cosines(vectors, prototypes, mask_above), sharpness)
