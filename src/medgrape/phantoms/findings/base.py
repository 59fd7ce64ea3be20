"""What findings share: position and contrast, patches, texture, scattered points, and masks.

Eight findings of the ``nih`` profile follow the published boxes. All others follow anatomy, mostly by a zone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Bool, Float

from medgrape.phantoms.anatomy import LEFT, RIGHT, Anatomy
from medgrape.phantoms.bones import lung_point
from medgrape.phantoms.canvas import Layer, Pair, blob, polar
from medgrape.phantoms.chest import Chest
from medgrape.phantoms.cohort import nih_statistics

Mask = Bool[np.ndarray, "size size"]
CONTRAST_FACTOR = 1.4  # multiplies the contrast of every finding but cardiomegaly
VISIBLE = 0.25  # share of its densest part down to which a shadow counts as the lesion
TRIES = 12  # sites tried before a lesion may overlap another


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

    def overlap(self, other: "Site") -> float:
        """Return the area in which two sites overlap."""
        low = np.maximum(np.subtract(self.centre, self.half), np.subtract(other.centre, other.half))
        high = np.minimum(np.add(self.centre, self.half), np.add(other.centre, other.half))
        return float(np.prod(np.maximum(high - low, 0.0)))


@dataclass(frozen=True)
class Zone:
    """A part of either lung: ``down`` is a beta distribution from apex (0) to dome (1), sizes are ranges."""

    down: tuple[float, float]
    width: tuple[float, float]
    height: tuple[float, float]
    across: tuple[float, float] = (0.12, 0.92)


Draw = Callable[[Chest, Site, np.random.Generator], Mask]
ChangeAnatomy = Callable[[Anatomy, float, np.random.Generator], Anatomy]


@dataclass(frozen=True)
class Finding:
    """A finding that can be drawn."""

    draw: Draw  # draws on a chest at a site and returns its mask
    contrast: tuple[float, float]  # easily missed, and obvious
    zone: Zone | None  # None where the site follows the published boxes or the anatomy
    changes: ChangeAnatomy | None  # changes the anatomy before the chest is drawn


FINDINGS: dict[str, Finding] = {}


def finding(
    name: str, contrast: tuple[float, float], zone: Zone | None = None, changes: ChangeAnatomy | None = None
) -> Callable[[Draw], Draw]:
    """Register the decorated function as a finding."""

    def add(draw: Draw) -> Draw:
        FINDINGS[name] = Finding(draw, contrast, zone, changes)
        return draw

    return add


def patch(chest: Chest, site: Site, random: np.random.Generator, roughness: float, softness: float) -> Layer:
    """Return an irregular patch that fills the site; the ``softness`` of its edge is relative to its smaller side."""
    outline = blob(random, site.centre, site.half[0] * 0.98, site.half[1] * 0.98, roughness)
    return chest.canvas.fill(outline, blur=softness * min(site.width, site.height))


def mask_of(layer: Layer, share: float = VISIBLE) -> Mask:
    """Return the pixels above a share of the maximum."""
    return np.asarray(layer > share * float(layer.max()))


def add_shadow(chest: Chest, layer: Layer, site: Site, *, share: float = VISIBLE, gap: float = 0.0) -> Mask:
    """Add the part of a shadow in the lungs; return its mask, with gaps of up to ``gap`` between specks closed."""
    shadow = chest.in_lung(layer)
    chest.shade(shadow, site.contrast)
    mask = mask_of(shadow, share)
    if not gap:
        return mask
    reach = max(2, round(gap * chest.canvas.size))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
    closed = cv2.morphologyEx(np.pad(mask.astype(np.uint8), reach), cv2.MORPH_CLOSE, kernel)
    return np.asarray(closed[reach:-reach, reach:-reach] > 0)


def scattered(random: np.random.Generator, site: Site, count: int, spread: float = 1.0) -> Float[np.ndarray, "count 2"]:
    """Return random points in the ellipse that fills the site."""
    turn = random.uniform(0, 2 * np.pi, count)
    radius = np.sqrt(random.uniform(0.02, 1.0, count)) * spread
    return np.asarray(polar(turn, radius) * site.half + np.asarray(site.centre))


def contrast_of(name: str, random: np.random.Generator) -> float:
    """Return a random contrast; the middle of the range is a little more frequent than its ends."""
    subtle, obvious = FINDINGS[name].contrast
    contrast = subtle + (obvious - subtle) * float(random.beta(1.5, 1.4))
    return contrast if name == "cardiomegaly" else CONTRAST_FACTOR * contrast


def choose_site(
    name: str, anatomy: Anatomy, contrast: float, random: np.random.Generator, taken: Sequence[Site] = ()
) -> Site:
    """Return a site for one lesion of this patient; lesions that follow anatomy avoid the sites that are taken."""
    zone = FINDINGS[name].zone
    if zone is not None:
        overlaps = {}
        for _ in range(TRIES):
            site = _in_zone(zone, anatomy, contrast, random)
            overlaps[site] = sum(site.overlap(other) for other in taken)
            if overlaps[site] == 0:
                break
        return min(overlaps, key=overlaps.__getitem__)
    boxes = nih_statistics().boxes
    boxed = "pneumonia" if name == "consolidation" else name  # it was not boxed, and lies where pneumonia lies
    if boxed in boxes:
        x, y, width, height = boxes[boxed].draw(random)
        return _anchored(Site(x, y, width, height, contrast), boxed, anatomy)
    return _anatomical(name, anatomy, contrast, random)


def _in_zone(zone: Zone, anatomy: Anatomy, contrast: float, random: np.random.Generator) -> Site:
    """A site in the zone where at most a third of the lesion lies outside the lung."""
    side = RIGHT if random.random() < 0.53 else LEFT
    width, height = float(random.uniform(*zone.width)), float(random.uniform(*zone.height))
    room = (anatomy.dome_of(side) - 0.3 * height - anatomy.apex) / (anatomy.dome_of(side) - anatomy.apex)
    down = min(0.06 + 0.90 * float(random.beta(*zone.down)), room)
    x, y = lung_point(anatomy, side, float(random.uniform(*zone.across)), down)
    inner, outer = (abs(lung_point(anatomy, side, across, down)[0] - 0.5) for across in (0.0, 1.0))
    away = float(np.clip(abs(x - 0.5), inner + 0.3 * width, max(inner, outer - 0.3 * width)))
    return Site(0.5 + side * away, y, width, height, contrast)


def _anchored(site: Site, finding: str, anatomy: Anatomy) -> Site:
    """The site moved as little as needed for its centre to lie in a lung."""
    top = anatomy.apex + 0.03
    if finding == "effusion":  # from the box's upper edge down to the costophrenic angle
        highest = float(np.clip(site.y - site.half[1], top + 0.03, anatomy.angle - 0.07))
        return Site(site.x, (highest + anatomy.angle) / 2, site.width, anatomy.angle - highest, site.contrast)
    y = float(np.clip(site.y, top, anatomy.dome_of(site.side) - 0.02))
    if site.width > 0.42:  # it reaches into both lungs
        return Site(site.x, y, site.width, site.height, site.contrast)
    down = (y - anatomy.apex) / (anatomy.dome_of(site.side) - anatomy.apex)
    inner, outer = (abs(lung_point(anatomy, site.side, across, down)[0] - 0.5) for across in (0.08, 0.92))
    x = 0.5 + site.side * float(np.clip(abs(site.x - 0.5), min(inner, outer), outer))
    return Site(x, y, max(site.width, 0.035), max(site.height, 0.035), site.contrast)


def _anatomical(finding: str, anatomy: Anatomy, contrast: float, random: np.random.Generator) -> Site:
    """Sites of the findings whose position is fixed by anatomy."""
    floor = sum(anatomy.dome) / 2
    if finding == "hernia":
        size = float(random.uniform(0.11, 0.17))
        return Site(0.5 + float(random.normal(0.02, 0.015)), floor - 0.25 * size, size, size * 0.92, contrast)
    if finding == "pleural_thickening":
        height = float(random.uniform(0.13, 0.30))
        side = RIGHT if random.random() < 0.5 else LEFT
        y = float(random.uniform(anatomy.apex + 0.3 * height, anatomy.angle - 0.5 * height))
        return Site(0.5 + side * 0.3, y, float(random.uniform(0.012, 0.024)), height, contrast)
    # edema and emphysema take both lungs
    return Site(0.5, 0.45, float(random.uniform(0.52, 0.68)), float(random.uniform(0.24, 0.36)), contrast)
