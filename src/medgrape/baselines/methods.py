"""PIP-Net (Nauta et al., 2023): every patch is one of few parts, a film has a part or not, parts vote for classes.

Its prototypes are channels: a softmax over them at every patch says which part the patch is, the maximum over patches
whether the film has the part. Two views of a film teach patches to be the same part in both (alignment), and parts to
turn up at all (tanh). A sparse layer of weights that are never negative leads from parts to classes.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from einops import reduce
from jaxtyping import Float, Int
from torch import Tensor, nn

from medgrape.model.backbones import Backbone
from medgrape.model.cam import CamHead, pool


class Seen(NamedTuple):
    """What a method says about a batch of films; a tuple, because Lightning passes no frozen dataclass on."""

    logits: Float[Tensor, "b classes"]
    maps: Float[Tensor, "b k h w"]
    """Where it sees each concept, on a scale of its own: only places on one map can be compared."""


class Baseline(nn.Module, ABC):
    """A backbone and what a method puts on top of it."""

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    @abstractmethod
    def judge(self, features: Float[Tensor, "b c h w"]) -> Seen:
        """Classes and maps from what the backbone makes of films."""

    def forward(self, activations: Float[Tensor, "b c1 h1 w1"]) -> Seen:
        """The same from what the backbone's frozen parts make of films, as in training."""
        return self.judge(self.backbone.late(activations))

    def read(self, films: Float[Tensor, "b 1 side side"]) -> Seen:
        """Classes and maps from films."""
        return self.judge(self.backbone(films))


class BlackBox(Baseline):
    """The linear layer is applied to every patch and then averaged, which is the same, and leaves a map (a CAM).

    It knows no findings. Whichever one is asked for, its map is that of the class that it answers.
    """

    def __init__(self, backbone: Backbone, concepts: int, classes: int) -> None:
        super().__init__(backbone)
        self._concepts = concepts
        self.classifier = CamHead(backbone.features, classes)

    def judge(self, features: Float[Tensor, "b c h w"]) -> Seen:
        """Classes, and the answered one's map for every concept alike."""
        maps = self.classifier(features)
        logits = pool(maps, "mean")
        answered = maps[torch.arange(len(maps)), logits.argmax(dim=1)]
        alike: Tensor = answered.unsqueeze(1).expand(-1, self._concepts, -1, -1)
        return Seen(logits, alike)


class ConceptBottleneck(Baseline):
    """One logit for each finding, and a linear layer from those logits to the classes."""

    def __init__(self, backbone: Backbone, concepts: int, classes: int) -> None:
        super().__init__(backbone)
        self.findings = CamHead(backbone.features, concepts)
        self.classifier = nn.Linear(concepts, classes)

    def judge(self, features: Float[Tensor, "b c h w"]) -> Seen:
        """Classes by way of the bottleneck, and the findings' class activation maps."""
        maps = self.findings(features)
        return Seen(self.classifier(self.bottleneck(maps)), maps)

    @staticmethod
    def bottleneck(maps: Float[Tensor, "b k h w"]) -> Float[Tensor, "b k"]:
        """The logit of each finding: all that the classes are judged by."""
        return pool(maps, "mean")


def classes_loss(
    logits: Float[Tensor, "b classes"], classes: Int[Tensor, " b"], weights: Float[Tensor, " classes"], unknown: int
) -> Float[Tensor, ""]:
    """Cross-entropy with rare classes weighed up; a batch in which no class is known costs nothing."""
    if not bool((classes != unknown).any()):
        return 0.0 * logits.sum()
    return F.cross_entropy(logits, classes, weight=weights, ignore_index=unknown)


ABSENT = 0.1
"""A part that is less present than this counts as absent when films are read."""
HEAD_PACE = 100.0
"""How much faster than the rest the weights to the classes learn: 0.05 against 0.0005, as published."""
LITTLE = 1e-8


class PipNet(Baseline):
    """Parts have no names. A concept's map is the sum of the parts' maps, each by how well it goes with the concept."""

    goes_with: Tensor

    def __init__(self, backbone: Backbone, concepts: int, classes: int, parts: int) -> None:
        super().__init__(backbone)
        self.parts = nn.Conv2d(backbone.features, parts, kernel_size=1) if parts else nn.Identity()
        count = parts or backbone.features
        self.votes = nn.Parameter(torch.empty(classes, count).normal_(1.0, 0.1) / HEAD_PACE)
        self.register_buffer("goes_with", torch.zeros(concepts, count))

    @property
    def weights(self) -> Float[Tensor, "classes parts"]:
        """From parts to classes, never negative. AdamW's steps do not depend on scale: scaled up, they are longer."""
        return F.relu(HEAD_PACE * self.votes)

    def which_part(self, features: Float[Tensor, "b c h w"]) -> Float[Tensor, "b parts h w"]:
        """How much each patch is each part; sums to one at every patch."""
        return torch.softmax(self.parts(features), dim=1)

    def classes(self, present: Float[Tensor, "b parts"]) -> Float[Tensor, "b classes"]:
        """Votes are squared and put on a logarithm's scale, which lets small weights die out (published Eq. 5)."""
        return torch.log1p((present @ self.weights.T) ** 2)

    def judge(self, features: Float[Tensor, "b c h w"]) -> Seen:
        """Classes from the parts that are there, and the concepts' maps."""
        where = self.which_part(features)
        present = presence(where)
        if not self.training:
            present = torch.where(present < ABSENT, torch.zeros_like(present), present)
        return Seen(self.classes(present), torch.einsum("kp,bphw->bkhw", self.goes_with, where))

    def name_parts(self, present: Float[Tensor, "n parts"], labels: Float[Tensor, "n k"]) -> None:
        """Learn from films which parts go with which concepts: correlations, those below zero left out."""
        self.goes_with.copy_(torch.stack([_correlation(present, column) for column in labels.T]).clamp_min(0.0))


def presence(where: Float[Tensor, "b parts h w"]) -> Float[Tensor, "b parts"]:
    """Whether a film has each part anywhere, from 0 to 1."""
    return reduce(where, "b parts h w -> b parts", "max")


def alignment_loss(one: Float[Tensor, "b parts h w"], other: Float[Tensor, "b parts h w"]) -> Float[Tensor, ""]:
    """Patches at the same place of two views are to be the same part; each view learns from the other in turn."""
    return (_unlike(one, other.detach()) + _unlike(other, one.detach())) / 2


def presence_loss(present: Float[Tensor, "b parts"]) -> Float[Tensor, ""]:
    """Every part is to turn up on some film of the batch (the tanh loss), or one part could be all patches."""
    return -torch.log(torch.tanh(reduce(present, "b parts -> parts", "sum")) + LITTLE).mean()


def _unlike(one: Float[Tensor, "b parts h w"], other: Float[Tensor, "b parts h w"]) -> Float[Tensor, ""]:
    return -torch.log(reduce(one * other, "b parts h w -> b h w", "sum") + LITTLE).mean()


def _correlation(present: Float[Tensor, "n parts"], label: Float[Tensor, " n"]) -> Float[Tensor, " parts"]:
    """Of each part with one concept, over films on which the concept is known; 0 where either never changes."""
    known = ~label.isnan()
    shown, there = label[known], present[known]
    if len(shown) == 0:
        return present.new_zeros(present.shape[1])
    shown, there = shown - shown.mean(), there - there.mean(dim=0)
    spread = shown.norm() * there.norm(dim=0)
    return torch.where(spread > LITTLE, shown @ there / spread.clamp_min(LITTLE), torch.zeros_like(spread))
