"""Findings of the pleura: effusion, pneumothorax, thickening."""

from dataclasses import replace

import numpy as np

from medgrape.phantoms.anatomy import Anatomy
from medgrape.phantoms.canvas import Points, ribbon, smooth
from medgrape.phantoms.chest import Chest
from medgrape.phantoms.findings.base import Mask, Site, clear, mask_of, shade
from medgrape.phantoms.profile import nih_statistics


def compressed(anatomy: Anatomy, contrast: float, random: np.random.Generator) -> Anatomy:
    """Return the anatomy with lungs that end where the box of the effusion ends, which is often high.

    ``random`` is in the same state as when the site is chosen, so this is the box that the site will have.
    """
    del contrast
    _, y, _, height = nih_statistics().boxes["effusion"].draw(random)
    higher = anatomy.angle - float(np.clip(y + height / 2, 0.56, anatomy.angle))
    return replace(anatomy, dome=(anatomy.dome[0] - higher, anatomy.dome[1] - higher), angle=anatomy.angle - higher)


def effusion(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Fluid that blunts the costophrenic angle; its upper border climbs along the chest wall as a meniscus."""
    anatomy, side = chest.anatomy, site.side
    top = site.y - site.half[1]
    outer = 0.5 + side * (float(anatomy.edge(anatomy.angle, side)) + 0.02)
    inner = outer - side * (site.width + 0.02)
    floor = anatomy.angle + 0.01
    share = np.array([0.0, 0.08, 0.22, 0.45, 0.75, 1.0])
    climb = np.array([0.0, 0.24, 0.42, 0.54, 0.60, 0.62])
    across = outer + (inner - outer) * share
    meniscus = smooth(np.stack([across, top + (floor - top) * climb * random.uniform(0.94, 1.0)], axis=1))
    region = np.concatenate([meniscus, [(inner, floor), (outer, floor)]])
    fluid = chest.canvas.soften(chest.canvas.fill(region), 0.006) * chest.cavities[side]
    depth = np.clip(chest.canvas.soften(fluid, 0.02) * 1.4, 0, 1)
    clear(chest, fluid, 0.85)
    chest.air = chest.air * (1 - site.contrast * fluid * (0.45 + 0.55 * depth))
    shade(chest, fluid * chest.field, 0.05)
    return mask_of(fluid * chest.cavities[side], 0.35)


def pneumothorax(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Air without vessels along the wall, bounded by the bright line of the visceral pleura."""
    line = _retracted(chest.anatomy, site)
    lateral = 0.5 + site.side * 0.7
    beyond = np.concatenate([line, [(lateral, line[-1, 1]), (lateral, line[0, 1])]])
    gap = chest.canvas.soften(chest.canvas.fill(beyond), 0.0022) * chest.field * chest.cavities[site.side]
    clear(chest, gap)
    shade(chest, gap, -site.contrast)
    pleura = chest.canvas.soften(chest.canvas.strokes([line], 0.0036), 0.0012) * chest.field
    shade(chest, pleura, random.uniform(0.13, 0.20))
    # the lung that lost air next to it is a little denser
    shade(chest, chest.canvas.soften(gap, 0.04) * (1 - gap) * chest.field, 0.35 * site.contrast)
    return mask_of(gap, 0.5)


def _retracted(anatomy: Anatomy, site: Site) -> Points:
    """The visceral pleura from the top to the bottom of the site, deepest near its upper third."""
    heights = np.linspace(max(site.y - site.half[1], anatomy.apex - 0.01), site.y + site.half[1], 9)
    edge = anatomy.edge(heights, site.side)
    if heights[0] < anatomy.apex + 0.06:  # over the apex the gap reaches towards the spine
        depth = site.width * np.array([0.85, 0.97, 1.0, 0.97, 0.90, 0.78, 0.60, 0.36, 0.05])
        depth[0] = max(depth[0], float(edge[0]) - 0.06)
    else:
        depth = site.width * np.array([0.03, 0.42, 0.75, 0.95, 1.0, 0.92, 0.72, 0.40, 0.03])
    across = np.maximum(edge - depth, 0.05)
    return smooth(np.stack([0.5 + site.side * across, heights], axis=1))


def thickening(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A scar of uneven thickness along the wall or over the apex."""
    heights = np.linspace(max(site.y - site.half[1], chest.anatomy.apex + 0.015), site.y + site.half[1], 24)
    near = np.stack([0.5 + site.side * chest.anatomy.edge(heights, site.side), heights], axis=1)
    ragged = np.interp(np.linspace(0, 1, len(near)), np.linspace(0, 1, 6), [0.25, *random.uniform(0.65, 1.0, 4), 0.25])
    rind = chest.canvas.fill(ribbon(near, 2 * site.width * ragged))
    layer = chest.canvas.soften(rind, 0.003) * chest.cavities[site.side]
    shade(chest, layer * chest.field, site.contrast)
    clear(chest, layer, 0.7)
    return mask_of(layer, 0.35)
