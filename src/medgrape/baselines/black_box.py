"""The plain backbone: the mean of its patches, one linear layer, classes. No concept anywhere."""

import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.baselines.baseline import Baseline, Seen
from medgrape.model.backbone import Backbone
from medgrape.model.cam import CamHead, pool


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
