"""Findings of tuberculosis, active and healed."""

import numpy as np

from medgrape.phantoms.bones import chest_wall
from medgrape.phantoms.canvas import Points, blob, direction_to, polar, ribbon, smooth
from medgrape.phantoms.chest import Chest, hilum_of
from medgrape.phantoms.findings.base import Mask, Site, Zone, add_shadow, finding, mask_of, patch, scattered


@finding("cavity", (0.13, 0.27), Zone((1.3, 1.8), (0.075, 0.125), (0.075, 0.130)))
def cavity(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A thick uneven wall around air, in a little infiltrate, sometimes with a fluid level."""
    canvas = chest.canvas
    reach = (site.half[0] * 0.80, site.half[1] * 0.80)
    thin = random.uniform(0.52, 0.70)
    shift = random.normal(0, 0.06, 2) * reach
    middle = (site.x + float(shift[0]), site.y + float(shift[1]))
    outer = canvas.fill(blob(random, site.centre, *reach, 0.10))
    hole = blob(random, middle, reach[0] * thin, reach[1] * thin, 0.12)
    inner = canvas.fill(hole, blur=0.0022)
    around = chest.clouded(patch(chest, site, random, 0.15, 0.13), random, 0.4)
    wall_layer = canvas.soften(outer, 0.0045) * (1 - inner)
    layer = chest.in_lung(np.maximum(wall_layer, 0.42 * around * (1 - inner)))
    chest.clear(inner, 0.9)
    chest.shade(layer, site.contrast)
    chest.shade(chest.in_lung(inner), -0.22 * site.contrast)
    if random.random() < 0.25:
        level = np.stack([hole[:, 0], np.maximum(hole[:, 1], middle[1] + 0.45 * reach[1] * thin)], axis=1)
        chest.shade(chest.in_lung(canvas.fill(level)), 0.8 * site.contrast)
    return mask_of(np.maximum(layer, chest.in_lung(inner)))


@finding("nodular_opacities", (0.13, 0.25), Zone((1.3, 1.8), (0.080, 0.135), (0.080, 0.140)))
def nodular_opacities(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Several soft nodules of different sizes, some of which touch."""
    count = int(random.integers(6, 14))
    centres = scattered(random, site, count, 0.84)
    dots = chest.canvas.dots(centres, random.uniform(0.007, 0.015, count), blur=0.0048)
    return add_shadow(chest, dots + 0.22 * patch(chest, site, random, 0.15, 0.16), site, share=0.2)


@finding("upper_lobe_infiltrate", (0.14, 0.26), Zone((1.2, 1.9), (0.085, 0.135), (0.085, 0.135)))
def upper_lobe_infiltrate(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A mottled haze with small dense foci and strands towards the hilum."""
    haze = chest.clouded(patch(chest, site, random, 0.2, 0.13), random, 0.42)
    count = int(random.integers(5, 11))
    foci = chest.canvas.dots(scattered(random, site, count, 0.75), random.uniform(0.005, 0.011, count))
    strands = chest.canvas.strokes(_strands(chest, site, random, 5), 0.004)
    detail = chest.canvas.soften(np.maximum(foci, 0.7 * strands), 0.003)
    return add_shadow(chest, 0.75 * haze + 0.55 * detail * np.clip(haze * 2, 0, 1), site)


@finding("calcified_granulomas", (0.20, 0.42), Zone((1.2, 1.5), (0.060, 0.105), (0.060, 0.105)))
def calcified_granulomas(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Sharp, very dense specks."""
    count = int(random.integers(4, 10))
    centres = scattered(random, site, count, 0.90)
    dots = chest.canvas.dots(centres, random.uniform(0.0036, 0.0085, count))
    return add_shadow(chest, chest.canvas.soften(dots, 0.0011), site, gap=0.022)


@finding("fibrous_scar", (0.13, 0.27), Zone((1.2, 1.6), (0.070, 0.120), (0.070, 0.120)))
def fibrous_scar(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Straight strands that converge on the hilum, with a few calcified specks."""
    strands = _strands(chest, site, random, int(random.integers(7, 12)))
    lines = chest.canvas.strokes(strands, 0.0052, blur=0.0013)
    flecks = chest.canvas.dots(scattered(random, site, 4, 0.7), random.uniform(0.003, 0.0055, 4))
    layer = np.maximum(lines, 1.2 * flecks) + 0.14 * patch(chest, site, random, 0.15, 0.14)
    return add_shadow(chest, layer, site, gap=0.012)


@finding("volume_loss", (0.13, 0.26), Zone((1.1, 2.4), (0.075, 0.110), (0.065, 0.100), (0.3, 1.0)))
def volume_loss(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A shrunken, scarred apex: thick pleura and strands towards the hilum."""
    line = chest_wall(chest.anatomy, site.side)
    near = line[np.hypot(line[:, 0] - site.x, line[:, 1] - site.y) < 0.75 * max(site.width, site.height)]
    if len(near) < 4:
        return fibrous_scar(chest, site, random)
    ragged = np.interp(np.linspace(0, 1, len(near)), np.linspace(0, 1, 5), [0.3, *random.uniform(0.7, 1.2, 3), 0.3])
    rind = chest.canvas.fill(ribbon(near, 0.055 * ragged), blur=0.0035)
    lines = chest.canvas.strokes(_strands(chest, site, random, 6), 0.005, blur=0.0014)
    return add_shadow(chest, np.maximum(rind, 0.9 * lines), site, gap=0.012)


@finding("patchy_consolidation", (0.14, 0.28), Zone((1.1, 1.2), (0.120, 0.175), (0.120, 0.185)))
def patchy_consolidation(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Separate patches over a wide region, each around an open bronchus."""
    count = int(random.integers(8, 13))
    centres = scattered(random, site, count, 0.86)
    fluff = chest.canvas.dots(centres, random.uniform(0.014, 0.021, count), blur=0.0042)
    bronchi = chest.canvas.dots(centres, np.full(count, 0.0052), blur=0.0012)
    return add_shadow(chest, chest.clouded(fluff, random, 0.25) * (1 - 0.95 * bronchi), site, gap=0.022)


@finding("tree_in_bud", (0.15, 0.28), Zone((1.1, 1.2), (0.100, 0.145), (0.100, 0.150)))
def tree_in_bud(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Forked branches that end in small round buds."""
    count = int(random.integers(13, 20))
    roots = scattered(random, site, count, 0.80)
    away = direction_to(hilum_of(chest.anatomy, site.side), site.centre) + random.normal(0, 0.6, count)
    length = random.uniform(0.014, 0.022, count)
    forks = roots + polar(away, length)
    tips = [forks + polar(away + turn, 0.8 * length) for turn in (-0.7, 0.6)]
    twigs = np.concatenate(
        [np.stack([roots, forks], axis=1), *(np.stack([forks, tip], axis=1) for tip in tips)], axis=0
    )
    buds = np.concatenate(tips)
    dots = chest.canvas.dots(buds, random.uniform(0.0042, 0.0066, len(buds)))
    layer = chest.canvas.soften(np.maximum(dots, chest.canvas.strokes(twigs, 0.0040)), 0.0014)
    return add_shadow(chest, layer, site, gap=0.018)


@finding("miliary_nodules", (0.12, 0.22), Zone((1.1, 1.2), (0.090, 0.140), (0.090, 0.145)))
def miliary_nodules(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Very many small nodules of equal size."""
    count = int(40 + 4600 * site.width * site.height)
    grains = chest.canvas.dots(scattered(random, site, count), random.uniform(0.0030, 0.0046, count))
    fading = 0.35 + 0.65 * patch(chest, site, random, 0.15, 0.14)
    return add_shadow(chest, chest.canvas.soften(grains, 0.0013) * fading, site, gap=0.018)


def _strands(chest: Chest, site: Site, random: np.random.Generator, count: int) -> list[Points]:
    """Slightly bent lines across the site, all pointing at the hilum."""
    hilum = hilum_of(chest.anatomy, site.side)
    paths = []
    for x, y in scattered(random, site, count, 0.95).tolist():
        angle = direction_to((x, y), hilum) + random.normal(0, 0.22)
        half = 0.5 * (min(site.width, site.height) * random.uniform(0.30, 0.62))
        bend = angle + random.normal(0, 0.25)
        middle_x, middle_y = x + half * np.cos(angle), y + half * np.sin(angle)
        end = middle_x + half * np.cos(bend), middle_y + half * np.sin(bend)
        paths.append(smooth([(x, y), (middle_x, middle_y), end]))
    return paths
