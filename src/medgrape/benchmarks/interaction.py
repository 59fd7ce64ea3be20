"""A correction, which starts from evidence that is there already, against opening the film anew."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from medgrape.benchmarks.ratio import Ratio, race
from medgrape.concepts import ConceptSet
from medgrape.config import BackboneSettings, Config, parse_config
from medgrape.data.phantom import draw, plan
from medgrape.feedback.reader import Reader
from medgrape.feedback.study import Study
from medgrape.geometry import Box
from medgrape.model.backbone import build_backbone
from medgrape.model.checkpoint import LoadedRun, Run, UsualScores
from medgrape.model.exemplars import ExemplarFilms
from medgrape.model.grape import Grape
from medgrape.model.graph import ConceptGraph
from medgrape.model.manifest import Manifest

TARGETS = {"tbx11k": 1 / 20, "nih": 1 / 10}
"""Most that a correction may cost, in openings of the film, for 3 and for 14 concepts."""
SIDE = 224
CLASSES = ("healthy", "sick_non_tb", "active_tb")


def bench_interaction(rounds: int = 15, backbone: BackboneSettings = BackboneSettings()) -> Iterator[Ratio]:  # noqa: B008
    """A checked box, with the new classes and maps, for each vocabulary; the model has the paper's sizes."""
    config = parse_config({"backbone": backbone.model_dump(), "preprocessing": {"size": SIDE}})
    with tempfile.TemporaryDirectory() as name:
        film = Path(name) / "film.png"
        Image.fromarray(draw(plan("tb", 1, seed=0)[0], SIDE).pixels).save(film)
        for vocabulary, target in TARGETS.items():
            yield _race(unlearnt_reader(config, ConceptSet.built_in(vocabulary)), film, target, rounds)


def _race(reader: Reader, film: Path, target: float, rounds: int) -> Ratio:
    study = reader.open(film)
    timed = race(lambda: _corrected(study), lambda: _read(reader.open(film)), rounds)
    what = f"a box, its check, classes and maps, {len(reader.concepts)} concepts"
    return Ratio(what, "opening the film", *timed, target)


def _corrected(study: Study) -> None:
    concept = study.run.concepts.names[0]
    _read(study.apply(Box(30, 40, 110, 130), concept, confirmed=True))


def _read(study: Study) -> None:
    """Everything that a page shows anew."""
    _ = study.prediction, study.evidence.mean, study.evidence.disagreement


def unlearnt_reader(config: Config, concepts: ConceptSet) -> Reader:
    """A model that learnt nothing, in which every concept listens to every other: the dearest graph."""
    torch.manual_seed(config.seed)
    count, prototypes = len(concepts), config.model.prototypes
    graph = ConceptGraph(torch.ones(count, count), config.model.tau)
    model = Grape(build_backbone(config.backbone), config.model, graph, len(CLASSES), None)
    model.eval().requires_grad_(False)
    usual = UsualScores(torch.zeros(count, prototypes), torch.zeros(count), torch.ones(count))
    run = Run(config, concepts, CLASSES, model, usual, _no_films(count, prototypes), {}, ())
    return Reader(LoadedRun(Path("nowhere"), run, Manifest({}, {}, {})))


def _no_films(concepts: int, prototypes: int) -> ExemplarFilms:
    nothing = np.full((concepts, prototypes), -1)
    return ExemplarFilms((7, 7), (), np.zeros((0, 1, 1), np.uint8), nothing, nothing.copy(), np.zeros(nothing.shape))
