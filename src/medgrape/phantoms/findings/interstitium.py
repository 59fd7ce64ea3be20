"""Findings of the interstitium: edema, emphysema, fibrosis."""

from dataclasses import replace

import numpy as np

from medgrape.phantoms.anatomy import SIDES, Anatomy
from medgrape.phantoms.canvas import ellipse
from medgrape.phantoms.chest import Chest
from medgrape.phantoms.findings.base import Mask, Site, clear, clouded, in_lung, mask_of, patch, scattered, shade
from medgrape.phantoms.soft_tissue import hilum_of


def congested(anatomy: Anatomy, contrast: float, random: np.random.Generator) -> Anatomy:
    """Return the anatomy with wide vessels."""
    del random
    return replace(anatomy, vascularity=anatomy.vascularity * (1.15 + contrast))


def edema(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Perihilar shadows that spare the periphery, and Kerley B lines at the lower chest wall."""
    outlines = []
    for side in SIDES:
        x, y = hilum_of(chest.anatomy, side)
        reach = site.half[0] * random.uniform(0.40, 0.48)
        outlines.append(ellipse((x + side * reach * 0.75, y + 0.05), reach, site.half[1], side * 0.12))
    wings = chest.canvas.soften(chest.canvas.fill(*outlines), 0.028)
    wings = in_lung(chest, clouded(chest, wings, random, 0.25))
    shade(chest, wings, site.contrast)
    lines = _kerley(chest, random)
    shade(chest, lines, 0.55 * site.contrast)
    return np.asarray(mask_of(wings, 0.3) | mask_of(lines))


def _kerley(chest: Chest, random: np.random.Generator) -> np.ndarray:
    """Short level lines that touch the pleura above the costophrenic angles."""
    lines = []
    for side in SIDES:
        heights = chest.anatomy.angle - 0.05 - 0.016 * np.arange(6) + random.normal(0, 0.002, 6)
        edges = chest.anatomy.edge(heights, side)
        inner = edges - random.uniform(0.02, 0.04, 6)
        lines.append(
            np.stack(
                [
                    np.stack([0.5 + side * edges, heights], axis=1),
                    np.stack([0.5 + side * inner, heights + 0.002], axis=1),
                ],
                axis=1,
            )
        )
    return in_lung(chest, chest.canvas.soften(chest.canvas.strokes(np.concatenate(lines), 0.0032), 0.0012))


def overinflated(anatomy: Anatomy, contrast: float, random: np.random.Generator) -> Anatomy:
    """Return the anatomy with long lungs, flat diaphragms and a narrow heart."""
    lower = float(random.uniform(0.02, 0.03)) + 0.15 * contrast
    return replace(
        anatomy,
        dome=(anatomy.angle - 0.035 + lower, anatomy.angle - 0.028 + lower),
        angle=anatomy.angle + lower,
        heart_width=anatomy.heart_width * 0.86,
        heart_tilt=0.0,
        half_width=anatomy.half_width * 1.03,
        vascularity=anatomy.vascularity * 0.80,
    )


def emphysema(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Dark lungs with few vessels, and bullae with thin walls in the upper zones."""
    lungs = chest.field
    clear(chest, lungs, 0.40)
    shade(chest, lungs, -0.6 * site.contrast)
    for side in SIDES:
        x, y = hilum_of(chest.anatomy, side)
        spot = (x + side * random.uniform(0.05, 0.13), y - random.uniform(0.02, 0.13))
        outline = ellipse(spot, random.uniform(0.03, 0.055), random.uniform(0.03, 0.06))
        bulla = in_lung(chest, chest.canvas.soften(chest.canvas.fill(outline), 0.004))
        clear(chest, bulla, 0.9)
        shade(chest, bulla, -0.35 * site.contrast)
        ring = chest.canvas.strokes([outline], 0.0026, closed=True)
        shade(chest, in_lung(chest, ring), 0.07)
    return np.asarray(lungs > 0.5)


def fibrosis(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A net of short coarse lines and small rings below the pleura of the bases."""
    count = int(50 + 1900 * site.width * site.height)
    starts = scattered(random, site, count)
    turn = random.uniform(0, np.pi, count)
    length = random.uniform(0.010, 0.026, count)
    ends = starts + np.stack([np.cos(turn) * length, np.sin(turn) * length], axis=1)
    bends = (starts + ends) / 2 + random.normal(0, 0.003, (count, 2))
    net = chest.canvas.strokes(np.stack([starts, bends, ends], axis=1), 0.0034)
    rings = [ellipse((x, y), 0.0065, 0.006, count=10) for x, y in scattered(random, site, count // 4).tolist()]
    combs = chest.canvas.strokes(rings, 0.0028, closed=True)
    region = in_lung(chest, patch(chest, site, random, 0.18, 0.16))
    shade(chest, region * (chest.canvas.soften(np.maximum(net, combs), 0.0014) + 0.22), site.contrast)
    return mask_of(region, 0.3)
