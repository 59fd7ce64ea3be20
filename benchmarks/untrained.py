"""An untrained model with the paper's sizes: as fast as a trained one, and made in a second."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from medgrape.concepts import ConceptSet
from medgrape.config import Config
from medgrape.model.backbones import build_backbone
from medgrape.model.grape import Grape
from medgrape.model.graph import ConceptGraph
from medgrape.reader import Reader
from medgrape.runs.checkpoint import LoadedRun, ReferenceScores, Run
from medgrape.runs.exemplars import ExemplarFilms
from medgrape.runs.manifest import Manifest

CLASSES = ("healthy", "sick_non_tb", "active_tb")


def untrained_run(config: Config, concepts: ConceptSet, classes: tuple[str, ...] = CLASSES) -> Run:
    """Return an untrained run; every concept listens to every other, which is the most expensive graph."""
    torch.manual_seed(config.seed)
    count, prototypes = len(concepts), config.model.prototypes
    graph = ConceptGraph(torch.ones(count, count), config.model.tau)
    model = Grape(build_backbone(config.backbone), config.model, graph, len(classes), None)
    model.eval().requires_grad_(False)
    reference_scores = ReferenceScores(torch.zeros(count, prototypes), torch.zeros(count), torch.ones(count))
    metrics: dict[str, Any] = {"untrained_concepts": [], "validation": {}, "text_encoder": None}
    return Run(config, concepts, classes, model, reference_scores, _no_films(count, prototypes), metrics, ())


def untrained_reader(config: Config, concepts: ConceptSet) -> Reader:
    """Return a reader of an untrained run, which is on no disk."""
    return Reader(LoadedRun(Path("nowhere"), untrained_run(config, concepts), Manifest({}, {}, {})))


def _no_films(concepts: int, prototypes: int) -> ExemplarFilms:
    nobody = np.full((concepts, prototypes), -1)
    return ExemplarFilms((7, 7), (), np.zeros((0, 1, 1), np.uint8), nobody, nobody.copy(), np.zeros(nobody.shape))
