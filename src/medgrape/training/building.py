"""A model before its first lesson: backbone with its weights, graph from the labels, anchors from the descriptions."""

from pathlib import Path

import torch

from medgrape.concepts import ConceptSet
from medgrape.config import Config
from medgrape.data.dataset import Dataset
from medgrape.data.labels import co_occurrence
from medgrape.model.backbone import build_backbone
from medgrape.model.cam import CamHead
from medgrape.model.checkpoint import load_run
from medgrape.model.grape import Grape
from medgrape.model.graph import ConceptGraph
from medgrape.spelling import nearest
from medgrape.training.films import TrainingError
from medgrape.vocabulary.text_encoder import TextEncoder

LIKE = "stages.concepts.like"
NOTHING = -20.0
"""A logit lower than any that a map reaches."""


def build_model(config: Config, dataset: Dataset, encoder: TextEncoder | None) -> Grape:
    """All parts; weights that no file brings are drawn with the config's seed."""
    torch.manual_seed(config.seed)
    graph = ConceptGraph(torch.from_numpy(co_occurrence(dataset).probability).float(), config.model.tau)
    text = None if encoder is None else encoder.encode([concept.description for concept in dataset.concepts])
    backbone = build_backbone(config.backbone)
    backbone.freeze_statistics = not config.stages.concepts.batch_statistics
    background = config.stages.prototypes.background
    model = Grape(backbone, config.model, graph, len(dataset.classes), text, background=background)
    if config.stages.concepts.like:
        _begin_like(model.cam, config, dataset.concepts)
    for weights in model.parameters():
        if weights.ndim == 4 and weights.shape[1] > 1:  # convolutions on a CPU take half the time
            weights.data = weights.data.contiguous(memory_format=torch.channels_last)
    return model


@torch.no_grad()
def _begin_like(cam: CamHead, config: Config, concepts: ConceptSet) -> None:
    """Let maps begin as the means of those that an earlier run has of findings which look alike."""
    weights = config.backbone.weights
    if not weights or not Path(weights).expanduser().is_dir():
        raise TrainingError(f"{LIKE} names findings of an earlier run; give that run's folder as backbone.weights.")
    earlier = load_run(Path(weights).expanduser()).run
    if earlier.model.cam.maps.in_channels != cam.maps.in_channels:
        raise TrainingError(f"{LIKE}: {weights} has another backbone, whose maps do not fit this one.")
    mapped = ConceptSet(tuple(earlier.concepts)[: earlier.model.cam.maps.out_channels])  # later ones have no map
    if config.stages.concepts.epochs == 0:  # a map that nobody speaks of, and that will not learn, sees nothing
        cam.maps.weight.zero_()
        cam.bias.fill_(NOTHING)
    for concept, findings in config.stages.concepts.like.items():
        place = _place(concept, concepts, "the data set")
        theirs = [_place(name, mapped, f"the run {weights}") for name in findings]
        for begun, known in zip(cam.maps.parameters(), earlier.model.cam.maps.parameters(), strict=True):
            begun[place] = known[theirs].mean(dim=0)


def _place(name: str, concepts: ConceptSet, where: str) -> int:
    if name not in concepts:
        raise TrainingError(f"{LIKE}: {where} has no concept {name!r}{nearest(name, concepts.names)}.")
    return concepts.index(name)


def grid_of(model: Grape, side: int) -> tuple[int, int]:
    """Rows and columns of patches for films of that side."""
    was_training = model.backbone.training
    model.backbone.eval()
    with torch.no_grad():
        height, width = model.backbone(torch.zeros(1, 1, side, side)).shape[-2:]
    model.backbone.train(was_training)
    return int(height), int(width)
