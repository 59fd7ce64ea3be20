"""A model before its first lesson: backbone with its weights, graph from the labels, anchors from the descriptions."""

from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from medgrape.baselines.methods import Baseline, build_baseline
from medgrape.concepts import ConceptSet
from medgrape.config import Config
from medgrape.datasets.dataset import Dataset
from medgrape.datasets.statistics import co_occurrence
from medgrape.errors import nearest
from medgrape.model.backbones import Backbone, build_backbone
from medgrape.model.cam import CamHead
from medgrape.model.grape import Grape
from medgrape.model.graph import ConceptGraph
from medgrape.runs.checkpoint import load_run
from medgrape.training.films import TrainingError
from medgrape.vocabulary.encoders import TextEncoder

Module = TypeVar("Module", bound=nn.Module)
LIKE, CUT = "stages.concepts.like", "model.cut"
NOTHING = -20.0
"""A logit lower than any that a map reaches."""


def build_model(config: Config, dataset: Dataset, encoder: TextEncoder | None) -> Grape:
    """All parts; weights that no file brings are drawn with the config's seed."""
    text = None if encoder is None else encoder.encode([concept.description for concept in dataset.concepts])
    torch.manual_seed(config.seed)  # after the text: whether a model reads any is no reason for another first stage
    graph = ConceptGraph(
        torch.from_numpy(co_occurrence(dataset).probability).float(), config.model.tau, _cut(config, dataset.concepts)
    )
    backbone = build_backbone(config.backbone)
    backbone.freeze_statistics = not config.stages.concepts.batch_statistics
    background = config.stages.prototypes.background
    model = Grape(backbone, config.model, graph, len(dataset.classes), text, background=background)
    if config.stages.concepts.like:
        _begin_like(model.cam, config, dataset.concepts)
    return laid_out(model)


def build_compared(config: Config, dataset: Dataset) -> Baseline:
    """A baseline, with weights drawn in the same way."""
    torch.manual_seed(config.seed)
    backbone = build_backbone(config.backbone)
    backbone.freeze_statistics = not config.stages.concepts.batch_statistics
    return laid_out(build_baseline(config, backbone, len(dataset.concepts), len(dataset.classes)))


def laid_out(model: Module) -> Module:
    """The same with weights in the order in which convolutions on a CPU take half the time."""
    for weights in model.parameters():
        if weights.ndim == 4 and weights.shape[1] > 1:
            weights.data = weights.data.contiguous(memory_format=torch.channels_last)
    return model


def _cut(config: Config, concepts: ConceptSet) -> list[tuple[int, int]]:
    """Listener and speaker of every edge that is to be taken out."""
    found = []
    for edge in config.model.cut:
        speaker, arrow, listener = (part.strip() for part in edge.partition("->"))
        if not arrow:
            raise TrainingError(f"{CUT} takes edges such as 'active_tb -> obsolete_tb', not {edge!r}.")
        found.append((_place(listener, concepts, CUT, "the data set"), _place(speaker, concepts, CUT, "the data set")))
    return found


@torch.no_grad()
def _begin_like(cam: CamHead, config: Config, concepts: ConceptSet) -> None:
    """Let maps begin as the means of those that an earlier run has of findings which look alike."""
    weights = config.backbone.weights
    if not weights or not Path(weights).expanduser().is_dir():
        raise TrainingError(f"{LIKE} names findings of an earlier run; give that run's folder as backbone.weights.")
    earlier = load_run(Path(weights).expanduser()).run
    if earlier.grape.cam.maps.in_channels != cam.maps.in_channels:
        raise TrainingError(f"{LIKE}: {weights} has another backbone, whose maps do not fit this one.")
    mapped = ConceptSet(tuple(earlier.concepts)[: earlier.grape.cam.maps.out_channels])  # later ones have no map
    if config.stages.concepts.epochs == 0:  # a map that nobody speaks of, and that will not learn, sees nothing
        cam.maps.weight.zero_()
        cam.bias.fill_(NOTHING)
    for concept, findings in config.stages.concepts.like.items():
        place = _place(concept, concepts, LIKE, "the data set")
        theirs = [_place(name, mapped, LIKE, f"the run {weights}") for name in findings]
        for begun, known in zip(cam.maps.parameters(), earlier.grape.cam.maps.parameters(), strict=True):
            begun[place] = known[theirs].mean(dim=0)


def _place(name: str, concepts: ConceptSet, key: str, where: str) -> int:
    if name not in concepts:
        raise TrainingError(f"{key}: {where} has no concept {name!r}{nearest(name, concepts.names)}.")
    return concepts.index(name)


def grid_of(backbone: Backbone, side: int) -> tuple[int, int]:
    """Rows and columns of patches for films of that side."""
    return backbone.grid(side)
