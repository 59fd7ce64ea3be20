"""What each stage minimises. A slow twin of every equation is in ``tests/oracles``."""

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor

MOSTLY = 0.3
"""Share of a patch that a box must cover to count as covering it."""


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
    maps: Float[Tensor, "b k h w"], overlap: Float[Tensor, "b k h w"], judged: Bool[Tensor, "b k"], inside: float = 5.0
) -> Float[Tensor, ""]:
    """Binary cross-entropy at every patch: does a box of the concept cover much of it?

    ``judged`` says for which films and concepts the boxes tell the whole truth: it has a box, or the concept is
    absent. Patches inside are few, so each weighs ``inside`` times as much. The patch that is covered most always
    counts, so that a lesion between four patches, or smaller than one, is not taught to be nowhere.
    """
    most = overlap.amax(dim=(-2, -1), keepdim=True)
    covered = ((overlap > MOSTLY) | ((overlap == most) & (most > 0))).to(maps.dtype)
    weight = torch.tensor(inside, dtype=maps.dtype, device=maps.device)
    costs = F.binary_cross_entropy_with_logits(maps, covered, pos_weight=weight, reduction="none")
    return (costs * rearrange(judged, "b k -> b k 1 1")).sum() / maps.numel()


def soft_similarity(
    vectors: Float[Tensor, "n d"], prototypes: Float[Tensor, "groups m d"], sharpness: float
) -> Float[Tensor, "n groups"]:
    """Similarity to each concept: its prototypes' cosines, weighted by their own softmax (paper Eqs. 8, 9)."""
    cosines = torch.einsum("nd,gmd->ngm", vectors, prototypes)
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


def quiet_where_unsure(
    prototypes: Float[Tensor, "groups m d"], vectors: Float[Tensor, "n d"], mask_above: float
) -> Bool[Tensor, "n groups"]:
    """For each sample, the concepts whose prototypes disagree about it by more than ``mask_above`` (theta_U)."""
    with torch.no_grad():
        cosines = torch.einsum("nd,gmd->ngm", vectors, prototypes)
        return cosines.var(dim=-1, correction=0) > mask_above


def masked_similarity(
    vectors: Float[Tensor, "n d"], prototypes: Float[Tensor, "groups m d"], sharpness: float, mask_above: float
) -> Float[Tensor, "n groups"]:
    """``soft_similarity`` in which a sample gives no gradient to prototypes that disagree about it too much.

    The sample's own vector still learns from them; only the prototypes stand still.
    """
    learning = soft_similarity(vectors, prototypes, sharpness)
    still = soft_similarity(vectors, prototypes.detach(), sharpness)
    return torch.where(quiet_where_unsure(prototypes, vectors, mask_above), still, learning)
