"""A film that can be computed by hand, boxes on it, and a model with random weights."""

import numpy as np
import torch
from hypothesis import strategies as st

from medgrape.concepts import Concept, ConceptSet
from medgrape.config import parse_config
from medgrape.films.film import Film, FilmFacts
from medgrape.geometry import Box, FilmSize, PatchGrid
from medgrape.model.backbones import build_backbone
from medgrape.model.evidence import Evidence
from medgrape.model.grape import Grape
from medgrape.model.graph import ConceptGraph
from medgrape.runs.checkpoint import ReferenceScores, Run
from medgrape.runs.exemplars import ExemplarFilms
from medgrape.study import Study

FILM = FilmSize(200, 200)
CONCEPTS = ConceptSet(
    (
        Concept("cavity", "Cavity", "A thick-walled lucency."),
        Concept("effusion", "Pleural effusion", "Fluid at the base of the lung."),
        Concept("nodule", "Nodule", "A small round opacity."),
    )
)
CLASSES = ("healthy", "ill")
LEFT, RIGHT = Box(0, 0, 100, 200), Box(100, 0, 200, 200)


def evidence(maps, spread=0.01):
    """Return evidence of two prototypes per concept, ``spread`` above and below its map, so that U is its square."""
    mean = torch.tensor(maps, dtype=torch.float32)
    similarity = torch.stack([mean - spread, mean + spread], dim=1)
    return Evidence(CONCEPTS, PatchGrid(FILM, *mean.shape[1:]), similarity)


def cavity_left_effusion_right(spread=0.01):
    """Return a 2 x 2 film: cavity in the left half, effusion in the right half, a little nodule everywhere."""
    cavity, effusion, nodule = [[0.8, 0.1]] * 2, [[0.1, 0.7]] * 2, [[0.3, 0.3]] * 2
    return evidence([cavity, effusion, nodule], spread)


def anything(seed, rows=3, columns=4):
    """Return random cosines, also negative ones."""
    chance = torch.Generator().manual_seed(seed)
    similarity = torch.rand(3, 2, rows, columns, generator=chance) * 2 - 1
    return Evidence(CONCEPTS, PatchGrid(FILM, rows, columns), similarity)


def untaught(**changes):
    """Return a run with random weights, so that every score has an effect."""
    torch.manual_seed(3)
    settings = {"prototypes": 2, "width": 8, "standardise": False}
    config = parse_config({"backbone": {"pretrained": False, "leave_off": 1}, "model": settings})
    model = Grape(build_backbone(config.backbone), config.model, ConceptGraph(torch.ones(3, 3), 0.1), 2, None)
    model.eval().requires_grad_(False)
    reference_scores = ReferenceScores(torch.full((3, 2), -0.4), torch.full((3,), 0.2), torch.full((3,), 0.8))
    nobody = np.full((3, 2), -1)
    films = ExemplarFilms((2, 2), (), np.zeros((0, 8, 8), np.uint8), nobody, nobody, np.zeros((3, 2)))
    told = {"metrics": {}, "learnt_from": ()} | changes
    return Run(config, CONCEPTS, CLASSES, model, reference_scores, films, **told)


def study(run, seen=None):
    """Return a study of the film."""
    film = Film(
        FilmFacts(format="PNG", size=FILM, bits=8, photometric="L"), np.tile(np.arange(200, dtype=np.uint8), (200, 1))
    )
    return Study(run, film, seen or cavity_left_effusion_right())


@st.composite
def boxes(draw, whole=False):
    """Draw boxes anywhere, also over the edges of the film; with ``whole``, corners are whole numbers on the film."""
    low, number = (0, st.integers) if whole else (-60, st.floats)
    least = 1 if whole else 0.01
    x1, y1 = draw(number(low, 199)), draw(number(low, 199))
    wide, high = draw(number(least, 220)), draw(number(least, 220))
    return Box(x1, y1, min(max(x1, 0) + wide, 260), min(max(y1, 0) + high, 260))
