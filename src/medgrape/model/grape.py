"""GRAPE as a whole: backbone, CAM head, projector, atlas, graph, head. Film in, evidence and classes out."""

from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from medgrape.config import ModelSettings
from medgrape.model.atlas import Anchors, Atlas
from medgrape.model.backbones.backbone import Backbone
from medgrape.model.cam import CamHead
from medgrape.model.evidence import mean_maps, scores, strongest_maps
from medgrape.model.graph import ConceptGraph
from medgrape.model.heads.base import Standard
from medgrape.model.heads.heads import Head, build_head
from medgrape.model.projector import Projector


@dataclass(frozen=True)
class Prediction:
    """What the model says about a batch of films."""

    logits: Float[Tensor, "b classes"]
    scores: Float[Tensor, "b k m"]
    attention: Float[Tensor, "b judged judged"] | None

    @property
    def probabilities(self) -> Float[Tensor, "b classes"]:
        """Softmax over the classes."""
        return self.logits.softmax(dim=-1)


@dataclass(frozen=True)
class Maps:
    """Where the model sees each concept on a batch of films."""

    mean: Float[Tensor, "b k h w"]
    strongest: Float[Tensor, "b k h w"]
    cam: Float[Tensor, "b trained h w"]
    """Logits of the CAM head: only of the concepts that it was trained with, which are the first ones."""


@runtime_checkable
class ReadingModel(Protocol):
    """What reading films asks of a model, whoever computes it: torch here, or ONNX Runtime (``exported.py``)."""

    @property
    def atlas(self) -> Atlas:
        """The prototypes."""
        ...

    @property
    def judged(self) -> int:
        """How many concepts, counted from the first, the head judges by."""
        ...

    @property
    def runtime(self) -> str:
        """What computes it, in words."""
        ...

    def patches(self, films: Float[Tensor, "b 1 side side"]) -> Float[Tensor, "b d h w"]:
        """Every patch of the films, in the space of prototypes."""
        ...

    def judge(self, found: Float[Tensor, "b k m"]) -> Prediction:
        """Classes from score matrices: what a head does, without a film."""
        ...

    def look(self, films: Float[Tensor, "b 1 side side"]) -> tuple[Prediction, Float[Tensor, "b k h w"]]:
        """Classes and mean maps: all that reading many films needs."""
        ...

    def read(self, films: Float[Tensor, "b 1 side side"]) -> tuple[Prediction, Maps]:
        """Classes and maps from one pass."""
        ...


class Grape(nn.Module):
    """All parts under the names that the settings use for them.

    ``learnt_later`` counts concepts at the end of the vocabulary that were added after training: they have maps and
    scores, and no part in the classes until the head is grown.
    """

    def __init__(
        self,
        backbone: Backbone,
        settings: ModelSettings,
        graph: ConceptGraph,
        classes: int,
        text: Float[Tensor, "k t"] | None,
        *,
        background: bool = False,
        learnt_later: int = 0,
    ) -> None:
        super().__init__()
        concepts = graph.edges.shape[0]
        self.backbone = backbone
        self.mirror = settings.mirror
        self.cam = CamHead(backbone.features, concepts)
        self.projector = Projector(backbone.features, settings.width, smooth=settings.smooth)
        self.atlas = Atlas(concepts + learnt_later, settings.prototypes, settings.width, background=background)
        self.anchors = None if text is None else Anchors(text, settings.width)
        self.graph = graph
        self.standard = Standard(concepts, settings.prototypes)
        self.head = build_head(settings.head, concepts, settings.prototypes, classes, settings.dropout)

    @property
    def judged(self) -> int:
        """How many concepts, counted from the first, the head judges by."""
        return int(self.graph.edges.shape[0])

    @property
    def runtime(self) -> str:
        """What computes it, in words."""
        return "PyTorch"

    def features(self, films: Float[Tensor, "b 1 side side"]) -> Float[Tensor, "b c h w"]:
        """What the backbone makes of the films; with ``mirror``, averaged with what it makes of their mirror images."""
        maps: Tensor = self.backbone(films)
        if not self.mirror:
            return maps
        mirrored: Tensor = self.backbone(films.flip(-1))
        return (maps + mirrored.flip(-1)) / 2

    def patches(self, films: Float[Tensor, "b 1 side side"]) -> Float[Tensor, "b d h w"]:
        """Every patch of the films, in the space of prototypes."""
        return self.projector.patches(self.features(films))

    def judge(self, found: Float[Tensor, "b k m"]) -> Prediction:
        """Classes from score matrices: what a head does, without a film."""
        heard = self.atlas.heard(found)[:, : self.judged]
        verdict = cast(Head, self.head).judge(self.standard(heard), self.graph)
        return Prediction(verdict.logits, found, verdict.attention)

    def forward(self, films: Float[Tensor, "b 1 side side"]) -> Prediction:
        """Classes from films."""
        return self.judge(scores(self.patches(films), self.atlas.prototypes))

    def look(self, films: Float[Tensor, "b 1 side side"]) -> tuple[Prediction, Float[Tensor, "b k h w"]]:
        """Classes and mean maps: all that reading many films needs."""
        patches = self.patches(films)
        return self.judge(scores(patches, self.atlas.prototypes)), mean_maps(patches, self.atlas.in_use)

    def read(self, films: Float[Tensor, "b 1 side side"]) -> tuple[Prediction, Maps]:
        """Classes and maps from one pass."""
        features, prototypes = self.features(films), self.atlas.in_use
        patches = self.projector.patches(features)
        maps = Maps(mean_maps(patches, prototypes), strongest_maps(patches, prototypes), self.cam(features))
        return self.judge(scores(patches, self.atlas.prototypes)), maps
