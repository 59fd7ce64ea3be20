"""The GRAPE model: backbone, CAM head, projector, atlas, graph and head. Films in, evidence and classes out.

Its head can be extended to more concepts: the old head, plus a new one over all concepts whose last layer starts at
zero. Until the new head is trained, it adds exactly zero to the logits of the old one. So the classes stay the same, to
the last bit, for every kind of head.
"""

from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from medgrape.config import ModelSettings
from medgrape.model.atlas import Anchors, Atlas
from medgrape.model.backbones import Backbone
from medgrape.model.cam import CamHead
from medgrape.model.evidence import mean_maps, scores, strongest_maps
from medgrape.model.graph import ConceptGraph
from medgrape.model.heads import build_head
from medgrape.model.heads.base import AttentionHead, Head, HeadOutput, ScoreNormalizer
from medgrape.model.projector import Projector
from medgrape.plugins import PluginError


@dataclass(frozen=True)
class Prediction:
    """The output of the model for a batch of films."""

    logits: Float[Tensor, "b classes"]
    scores: Float[Tensor, "b k m"]
    attention: Float[Tensor, "b used used"] | None

    @property
    def probabilities(self) -> Float[Tensor, "b classes"]:
        """Softmax over the classes."""
        return self.logits.softmax(dim=-1)


@dataclass(frozen=True)
class Maps:
    """Maps of each concept for a batch of films."""

    mean: Float[Tensor, "b k h w"]
    strongest: Float[Tensor, "b k h w"]
    cam: Float[Tensor, "b trained h w"]  # Logits of the CAM head, for the concepts that it was trained with


@runtime_checkable
class ReadingModel(Protocol):
    """A model for inference: in torch here, or in ONNX Runtime (``runs/exported.py``)."""

    @property
    def atlas(self) -> Atlas:
        """The prototypes."""

    @property
    def head_concepts(self) -> int:
        """Number of concepts, counted from the first, that the head uses."""

    @property
    def runtime(self) -> str:
        """Name of the library that computes it."""

    def patches(self, films: Float[Tensor, "b 1 side side"]) -> Float[Tensor, "b d h w"]:
        """Return every patch of the films in the space of prototypes."""

    def classify(self, found: Float[Tensor, "b k m"]) -> Prediction:
        """Return the classes for score matrices: the head alone, without a film."""

    def predict_with_mean_maps(
        self, films: Float[Tensor, "b 1 side side"]
    ) -> tuple[Prediction, Float[Tensor, "b k h w"]]:
        """Return classes and mean maps, which suffice for bulk reading."""

    def predict_with_all_maps(self, films: Float[Tensor, "b 1 side side"]) -> tuple[Prediction, Maps]:
        """Return classes and all maps from one pass."""


class Grape(nn.Module):
    """The whole model; its parts have the names that the settings use for them.

    ``learnt_later`` is the number of concepts at the end of the vocabulary that were added after training: they have
    maps and scores, but no effect on the classes until the head is grown.
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
        self.standard = ScoreNormalizer(concepts, settings.prototypes)
        self.head = build_head(settings.head, concepts, settings.prototypes, classes, settings.dropout)

    @property
    def head_concepts(self) -> int:
        """Number of concepts, counted from the first, that the head uses."""
        return int(self.graph.edges.shape[0])

    @property
    def runtime(self) -> str:
        """Name of the library that computes it."""
        return "PyTorch"

    def features(self, films: Float[Tensor, "b 1 side side"]) -> Float[Tensor, "b c h w"]:
        """Return the backbone's features; with ``mirror``, their mean with those of the mirrored films."""
        maps: Tensor = self.backbone(films)
        if not self.mirror:
            return maps
        mirrored: Tensor = self.backbone(films.flip(-1))
        return (maps + mirrored.flip(-1)) / 2

    def patches(self, films: Float[Tensor, "b 1 side side"]) -> Float[Tensor, "b d h w"]:
        """Return every patch of the films in the space of prototypes."""
        return self.projector.patches(self.features(films))

    def classify(self, found: Float[Tensor, "b k m"]) -> Prediction:
        """Return the classes for score matrices: the head alone, without a film."""
        masked = self.atlas.mask_discarded(found)[:, : self.head_concepts]
        output = cast(Head, self.head).classify(self.standard(masked), self.graph)
        return Prediction(output.logits, found, output.attention)

    def forward(self, films: Float[Tensor, "b 1 side side"]) -> Prediction:
        """Return the classes for films."""
        return self.classify(scores(self.patches(films), self.atlas.prototypes))

    def predict_with_mean_maps(
        self, films: Float[Tensor, "b 1 side side"]
    ) -> tuple[Prediction, Float[Tensor, "b k h w"]]:
        """Return classes and mean maps, which suffice for bulk reading."""
        patches = self.patches(films)
        return self.classify(scores(patches, self.atlas.prototypes)), mean_maps(patches, self.atlas.in_use)

    def predict_with_all_maps(self, films: Float[Tensor, "b 1 side side"]) -> tuple[Prediction, Maps]:
        """Return classes and all maps from one pass."""
        features, prototypes = self.features(films), self.atlas.in_use
        patches = self.projector.patches(features)
        maps = Maps(mean_maps(patches, prototypes), strongest_maps(patches, prototypes), self.cam(features))
        return self.classify(scores(patches, self.atlas.prototypes)), maps


class GrownHead(AttentionHead):
    """The sum of the old head on the concepts that it knows and of a new head on all concepts."""

    def __init__(self, before: nn.Module, graph: ConceptGraph, added: nn.Module) -> None:
        super().__init__()
        self.before, self.graph, self.added = before, graph, added
        for weights in _last_layer(added).parameters():
            nn.init.zeros_(weights)

    def classify(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> HeadOutput:
        """Attention is the mean of both heads; while the new head is untrained, that of the old one alone."""
        known = self.graph.edges.shape[0]
        old = cast(Head, self.before).classify(scores[:, :known].contiguous(), self.graph)
        new = cast(Head, self.added).classify(scores, graph)
        if old.attention is None or new.attention is None:
            return HeadOutput(old.logits + new.logits, None)
        attention = torch.eye(len(graph.edges), dtype=old.attention.dtype, device=old.attention.device)
        attention = attention.expand_as(new.attention).clone()
        attention[:, :known, :known] = old.attention
        mean = torch.where(self.is_trained, (attention + new.attention) / 2, attention)
        return HeadOutput(old.logits + new.logits, mean)

    @property
    def is_trained(self) -> Bool[Tensor, ""]:
        """Whether the new head is trained, as a tensor."""
        return _last_layer(self.added).weight.any()


def grow_head(model: Grape, settings: ModelSettings, probability: Float[Tensor, "k k"], classes: int) -> None:
    """Extend the head of ``model`` to all concepts of ``probability``, without any effect on the classes yet."""
    graph, known = ConceptGraph(probability, settings.tau), model.head_concepts
    added = build_head(settings.head, len(probability), settings.prototypes, classes, settings.dropout)
    head = GrownHead(model.head, model.graph, added)
    _refuse_nonzero(added, graph, settings)
    normalizer = ScoreNormalizer(len(probability), settings.prototypes)
    normalizer.mean[:known] = model.standard.mean
    normalizer.spread[:known] = model.standard.spread
    model.head, model.graph, model.standard = head, graph, normalizer


def head_sizes(head: nn.Module, concepts: int) -> list[int]:
    """Return the number of concepts of each head in the sum, oldest first; this suffices to build it again."""
    if not isinstance(head, GrownHead):
        return [concepts]
    return [*head_sizes(head.before, int(head.graph.edges.shape[0])), concepts]


def _last_layer(head: nn.Module) -> nn.Linear:
    layers = [layer for layer in head.modules() if isinstance(layer, nn.Linear)]
    if not layers:
        raise _cannot_grow()
    return layers[-1]


@torch.no_grad()
def _refuse_nonzero(added: nn.Module, graph: ConceptGraph, settings: ModelSettings) -> None:
    """Refuse a plugin head that does not end in a linear layer: it would change the classes at once."""
    was_training = added.training
    output = cast(Head, added.eval()).classify(torch.ones(1, len(graph.edges), settings.prototypes), graph)
    added.train(was_training)
    if output.logits.any():
        raise _cannot_grow()


def _cannot_grow() -> PluginError:
    return PluginError(
        "This run's head comes from another package and does not end in a torch.nn.Linear, so it cannot be extended to "
        "one more concept without changing the classes; the concept has its map and scores all the same."
    )
