"""A model before its first lesson: backbone with its weights, graph from the labels, anchors from the descriptions."""

import torch

from medgrape.config import Config
from medgrape.data.dataset import Dataset
from medgrape.data.labels import co_occurrence
from medgrape.model.backbone import build_backbone
from medgrape.model.grape import Grape
from medgrape.model.graph import ConceptGraph
from medgrape.vocabulary.text_encoder import TextEncoder


def build_model(config: Config, dataset: Dataset, encoder: TextEncoder | None) -> Grape:
    """All parts; weights that no file brings are drawn with the config's seed."""
    torch.manual_seed(config.seed)
    graph = ConceptGraph(torch.from_numpy(co_occurrence(dataset).probability).float(), config.model.tau)
    text = None if encoder is None else encoder.encode([concept.description for concept in dataset.concepts])
    backbone = build_backbone(config.backbone)
    backbone.freeze_statistics = not config.stages.concepts.batch_statistics
    background = config.stages.prototypes.background
    model = Grape(backbone, config.model, graph, len(dataset.classes), text, background=background)
    for weights in model.parameters():
        if weights.ndim == 4 and weights.shape[1] > 1:  # convolutions on a CPU take half the time
            weights.data = weights.data.contiguous(memory_format=torch.channels_last)
    return model


def grid_of(model: Grape, side: int) -> tuple[int, int]:
    """Rows and columns of patches for films of that side."""
    was_training = model.backbone.training
    model.backbone.eval()
    with torch.no_grad():
        height, width = model.backbone(torch.zeros(1, 1, side, side)).shape[-2:]
    model.backbone.train(was_training)
    return int(height), int(width)
