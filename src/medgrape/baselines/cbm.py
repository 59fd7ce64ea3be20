"""The concept bottleneck model (Koh et al., 2020), learnt jointly: a film's classes follow from its findings alone."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from medgrape.baselines.baseline import Baseline, Seen
from medgrape.model.backbone import Backbone
from medgrape.model.cam import CamHead, pool


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
