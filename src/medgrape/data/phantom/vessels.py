"""The branching, tapering vessels of both lungs."""

import numpy as np
from jaxtyping import Float

from medgrape.data.phantom.anatomy import SIDES, Anatomy
from medgrape.data.phantom.canvas import Canvas, Layer
from medgrape.data.phantom.mediastinum import hilum_of

STEPS = (5, 4, 4, 3, 3, 3)  # points along a branch of each generation
TRUNKS = 8  # vessels that leave each hilum
CALIBRE, TAPER = 0.0092, 0.70  # of a trunk, and from one generation to the next

Branches = Float[np.ndarray, "_ _ 2"]
Each = Float[np.ndarray, " n"]


def draw_vessels(canvas: Canvas, anatomy: Anatomy, random: np.random.Generator) -> Layer:
    """All vessels of both lungs, thin ones first; what is thinner than a pixel is fainter instead."""
    tree = _grow(anatomy, random)
    groups = [
        (branches, CALIBRE * TAPER**generation * anatomy.vascularity, 1.0) for generation, branches in enumerate(tree)
    ]
    return canvas.soften(canvas.graded_strokes(groups[::-1]), 0.0022)


def _grow(anatomy: Anatomy, random: np.random.Generator) -> list[Branches]:
    """Split every branch in two, five times over, outwards from the hila."""
    count = TRUNKS * len(SIDES)
    outwards = np.repeat(np.array(SIDES, np.float64), TRUNKS)
    direction = np.tile(np.linspace(-1.30, 1.65, TRUNKS), len(SIDES)) + random.normal(0, 0.07, count)
    hila = np.repeat(np.array([hilum_of(anatomy, side) for side in SIDES]), TRUNKS, axis=0)
    along = 0.022 * direction + random.normal(0, 0.008, count)
    heads = hila + np.stack([outwards * random.uniform(-0.005, 0.012, count), along], axis=1)
    length = random.uniform(0.055, 0.085, count) * np.where(direction > 0.9, 1.3, 1.0)
    tree = []
    for steps in STEPS:
        branches = _curved(heads, direction, length, outwards, steps, random)
        tree.append(branches)
        heads = np.concatenate([branches[:, -1]] * 2)
        direction, length = _split(direction, length, random)
        outwards = np.concatenate([outwards] * 2)
    return tree


def _curved(
    heads: Float[np.ndarray, "n 2"],
    direction: Each,
    length: Each,
    outwards: Each,
    steps: int,
    random: np.random.Generator,
) -> Branches:
    """Branches as gentle arcs that start at ``heads``; a direction of 0 is straight outwards."""
    bend = random.normal(0, 0.42, len(heads))[:, None]
    angle = direction[:, None] + bend * np.linspace(0, 1, steps)
    step = length[:, None] / (steps - 1)
    move = np.stack([outwards[:, None] * np.cos(angle) * step, np.sin(angle) * step], axis=2)
    move[:, 0] = 0
    return np.asarray(heads[:, None] + np.cumsum(move, axis=1))


def _split(
    direction: Each, length: Each, random: np.random.Generator
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Two children for each branch, one nearly straight on and one turning off."""
    count = len(direction)
    turn = random.choice([-1.0, 1.0], count)
    straight = direction - turn * random.uniform(0.05, 0.28, count)
    aside = direction + turn * random.uniform(0.30, 0.75, count)
    shorter = length * random.uniform(0.70, 0.95, count)
    return np.concatenate([straight, aside]), np.concatenate([shorter, shorter * 0.8])
