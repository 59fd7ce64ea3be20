"""Functions that several findings share: patches, texture, scattered points, and masks."""

from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Bool, Float

from medgrape.phantoms.anatomy import LEFT, RIGHT
from medgrape.phantoms.canvas import Layer, Pair, blob
from medgrape.phantoms.chest import Chest


@dataclass(frozen=True)
class Site:
    """A box in unit coordinates of the upright chest, which the finding fills as far as there is lung."""

    x: float
    y: float
    width: float
    height: float
    contrast: float

    @property
    def centre(self) -> Pair:
        """Centre of the box."""
        return self.x, self.y

    @property
    def half(self) -> Pair:
        """Half the width and half the height."""
        return self.width / 2, self.height / 2

    @property
    def side(self) -> int:
        """The patient's right (-1) or left (+1) side."""
        return RIGHT if self.x < 0.5 else LEFT

    def shared(self, other: "Site") -> float:
        """Return the area in which two sites overlap."""
        across = min(self.x + self.half[0], other.x + other.half[0]) - max(
            self.x - self.half[0], other.x - other.half[0]
        )
        down = min(self.y + self.half[1], other.y + other.half[1]) - max(self.y - self.half[1], other.y - other.half[1])
        return max(across, 0.0) * max(down, 0.0)

    @property
    def bilateral(self) -> bool:
        """Whether it reaches into both lungs."""
        return self.width > 0.42


Mask = Bool[np.ndarray, "size size"]
VISIBLE = 0.25  # share of its densest part down to which a shadow counts as the lesion


def in_lung(chest: Chest, layer: Layer) -> Layer:
    """Return the part of a shadow in the lungs; a little also shows through the heart."""
    return np.asarray(layer * (0.15 * chest.cavity() + 0.85 * chest.field), np.float32)


def patch(chest: Chest, site: Site, random: np.random.Generator, roughness: float, softness: float) -> Layer:
    """Return an irregular patch that fills the site; the ``softness`` of its edge is relative to its smaller side."""
    outline = blob(random, site.centre, site.half[0] * 0.98, site.half[1] * 0.98, roughness)
    return chest.canvas.soften(chest.canvas.fill(outline), softness * min(site.width, site.height))


def clouded(chest: Chest, layer: Layer, random: np.random.Generator, amount: float) -> Layer:
    """Return the layer with the uneven density of partly filled air spaces."""
    down, right = random.integers(0, chest.canvas.size, 2)
    # mirrored at its edges, because a texture that does not repeat would leave a straight seam where it is rolled
    across = np.concatenate([chest.clouds[down:], chest.clouds[::-1][: int(down)]])
    shifted = np.concatenate([across[:, right:], across[:, ::-1][:, : int(right)]], axis=1)
    return np.asarray(layer * np.clip(1 + amount * shifted, 0.1, 1.9), np.float32)


def shade(chest: Chest, layer: Layer, contrast: float) -> None:
    """Add a shadow to the film."""
    chest.dense = chest.dense + np.float32(contrast) * layer


def clear(chest: Chest, region: Layer, share: float = 1.0) -> None:
    """Remove vessels from a region."""
    chest.vessels = chest.vessels * (1 - np.float32(share) * region)


def mask_of(layer: Layer, share: float = VISIBLE) -> Mask:
    """Return the pixels above a share of the maximum."""
    return np.asarray(layer > share * float(layer.max()))


def filled_mask(layer: Layer, reach: int) -> Mask:
    """Return the mask of scattered specks with gaps of up to ``reach`` pixels closed."""
    specks = mask_of(layer).astype(np.uint8)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
    closed = cv2.morphologyEx(
        cv2.copyMakeBorder(specks, reach, reach, reach, reach, cv2.BORDER_CONSTANT, value=0), cv2.MORPH_CLOSE, kernel
    )
    return np.asarray(closed[reach:-reach, reach:-reach] > 0)


def scattered(random: np.random.Generator, site: Site, count: int, spread: float = 1.0) -> Float[np.ndarray, "count 2"]:
    """Return random points in the ellipse that fills the site."""
    turn = random.uniform(0, 2 * np.pi, count)
    radius = np.sqrt(random.uniform(0.02, 1.0, count)) * spread
    disc = np.stack([np.cos(turn) * radius, np.sin(turn) * radius], axis=1)
    return np.asarray(disc * site.half + np.asarray(site.centre))


def direction_to(start: Pair, goal: Pair) -> float:
    """Return the angle of the direction from one point to another."""
    return float(np.arctan2(goal[1] - start[1], goal[0] - start[0]))
