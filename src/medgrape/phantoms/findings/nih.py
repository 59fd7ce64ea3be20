"""The findings of the ``nih`` profile: opacities, and findings of the interstitium, the pleura and the heart."""

from dataclasses import replace

import numpy as np

from medgrape.phantoms.anatomy import SIDES, Anatomy
from medgrape.phantoms.canvas import Layer, Points, direction_to, ellipse, polar, ribbon, smooth
from medgrape.phantoms.chest import Chest, hilum_of
from medgrape.phantoms.cohort import nih_statistics
from medgrape.phantoms.findings.base import Mask, Site, Zone, add_shadow, finding, mask_of, patch, scattered


@finding("nodule", (0.12, 0.26))
def nodule(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A small round shadow, denser in its centre."""
    disc = patch(chest, site, random, 0.06, 0.07)
    return add_shadow(chest, disc * (0.55 + 0.45 * chest.canvas.soften(disc, 0.22 * site.width)), site)


@finding("mass", (0.28, 0.42))
def mass(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A large lobulated shadow with spicules."""
    body = patch(chest, site, random, 0.16, 0.045)
    ball = body * (0.6 + 0.4 * chest.canvas.soften(body, 0.2 * min(site.width, site.height)))
    turn = np.linspace(0, 2 * np.pi, 18, endpoint=False) + random.normal(0, 0.12, 18)
    rays = polar(turn) * site.half
    reach = random.uniform(1.02, 1.18, (18, 1))
    spicules = np.stack([rays * 0.8, rays * reach], axis=1) + np.asarray(site.centre)
    spikes = chest.canvas.strokes(spicules, 0.004, blur=0.0018)
    return add_shadow(chest, np.maximum(chest.clouded(ball, random, 0.06), 0.35 * spikes), site)


@finding("infiltration", (0.07, 0.18))
def infiltration(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A faint haze with streaks along the bronchi and no clear border; a wide one lies in both lungs."""
    layer = chest.clouded(patch(chest, site, random, 0.12, 0.10), random, 0.30)
    return add_shadow(chest, layer + 0.35 * layer * _streaks(chest, site, random), site)


@finding("pneumonia", (0.12, 0.24))
def pneumonia(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Confluent patches with dark bronchi inside."""
    count = int(random.integers(4, 8))
    centres = scattered(random, site, count, 0.66)
    layer = chest.canvas.blank()
    for x, y in centres.tolist():
        size = random.uniform(0.44, 0.68)
        small = replace(site, x=x, y=y, width=site.width * size, height=site.height * size)
        layer = np.maximum(layer, random.uniform(0.7, 1.0) * patch(chest, small, random, 0.30, 0.16))
    layer = chest.in_lung(chest.clouded(layer, random, 0.32))
    layer = layer * (1 - 0.4 * _bronchi(chest, site, random, 3))
    chest.shade(layer, site.contrast)
    return mask_of(layer)


@finding("upper_lobe_consolidation", (0.17, 0.32), Zone((1.2, 1.9), (0.080, 0.130), (0.080, 0.130)))
@finding("basal_pneumonia", (0.18, 0.32), Zone((9.0, 1.6), (0.150, 0.220), (0.130, 0.220), (0.2, 0.7)))
@finding("consolidation", (0.17, 0.31))
def consolidation(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A dense even shadow without vessels, with branching air bronchograms."""
    layer = patch(chest, site, random, 0.24, 0.085)
    layer = chest.in_lung(chest.clouded(layer, random, 0.12))
    chest.clear(layer, 0.8)
    mask = mask_of(layer)
    chest.shade(layer * (1 - 0.50 * _bronchi(chest, site, random, 4)), site.contrast)
    return mask


@finding("atelectasis", (0.27, 0.42))
def atelectasis(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A few horizontal or slightly oblique bands in a little haze."""
    x, y = site.centre
    wide, tall = site.half
    count = int(np.clip(round(site.height / 0.05), 1, 3))
    levels = np.linspace(-0.62, 0.62, count) if count > 1 else np.zeros(1)
    bands = []
    for level in (levels + random.normal(0, 0.08, count)).tolist():
        left, right = random.uniform(0.70, 1.0, 2) * wide
        slope = random.uniform(-0.32, 0.32) * tall
        middle = y + level * tall
        bow = random.uniform(-0.2, 0.1) * tall
        bands.append(smooth([(x - left, middle - slope), (x, middle + bow), (x + right, middle + slope)]))
    thickness = float(np.clip(0.08 * site.height, 0.0065, 0.015))
    lines = chest.canvas.strokes(bands, thickness, blur=0.0026)
    return add_shadow(chest, lines + 0.38 * patch(chest, site, random, 0.12, 0.14), site, share=0.2)


def _bronchi(chest: Chest, site: Site, random: np.random.Generator, count: int) -> Layer:
    """Dark tubes that fan out away from the hilum and fork."""
    away = direction_to(hilum_of(chest.anatomy, site.side), site.centre)
    reach = min(0.5 * float(np.hypot(*site.half)), 0.07)
    count += int(60 * site.width * site.height)  # large shadows show more bronchi, not longer ones
    angles = away + np.linspace(-0.8, 0.8, count) + random.normal(0, 0.18, count)
    roots = scattered(random, site, count, 0.6) - polar(angles, 0.6 * reach)
    forks = roots + polar(angles, reach * random.uniform(0.35, 0.7, count))
    branches = [np.stack([roots, forks], axis=1)]
    for turn in (-0.45, 0.4):
        ends = forks + polar(angles + turn, reach * random.uniform(0.3, 0.7, count))
        branches.append(np.stack([forks, ends], axis=1))
    width = float(np.clip(0.030 * min(site.width, site.height), 0.0032, 0.0050))
    return chest.canvas.strokes(np.concatenate(branches), width, blur=0.0018)


def _streaks(chest: Chest, site: Site, random: np.random.Generator) -> Layer:
    """Short lines that follow the bronchi."""
    starts = scattered(random, site, 22)
    hilum = np.array([hilum_of(chest.anatomy, -1 if x < 0.5 else 1) for x in starts[:, 0].tolist()])
    towards = (hilum - starts) * random.uniform(0.12, 0.3, (22, 1))
    paths = np.stack([starts, starts + towards / 2 + random.normal(0, 0.004, (22, 2)), starts + towards], axis=1)
    return chest.canvas.strokes(paths, 0.0045, blur=0.002)


def congested(anatomy: Anatomy, contrast: float, _random: np.random.Generator) -> Anatomy:
    """Return the anatomy with wide vessels."""
    return replace(anatomy, vascularity=anatomy.vascularity * (1.15 + contrast))


@finding("edema", (0.14, 0.26), changes=congested)
def edema(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Perihilar shadows that spare the periphery, and Kerley B lines at the lower chest wall."""
    outlines = []
    for side in SIDES:
        x, y = hilum_of(chest.anatomy, side)
        reach = site.half[0] * random.uniform(0.40, 0.48)
        outlines.append(ellipse((x + side * reach * 0.75, y + 0.05), reach, site.half[1], side * 0.12))
    wings = chest.in_lung(chest.clouded(chest.canvas.fill(*outlines, blur=0.028), random, 0.25))
    chest.shade(wings, site.contrast)
    lines = _kerley_lines(chest, random)
    chest.shade(lines, 0.55 * site.contrast)
    return np.asarray(mask_of(wings, 0.3) | mask_of(lines))


def _kerley_lines(chest: Chest, random: np.random.Generator) -> np.ndarray:
    """Short level lines that touch the pleura above the costophrenic angles."""
    lines = []
    for side in SIDES:
        heights = chest.anatomy.angle - 0.05 - 0.016 * np.arange(6) + random.normal(0, 0.002, 6)
        edges = chest.anatomy.edge(heights, side)
        inner = edges - random.uniform(0.02, 0.04, 6)
        ends = [np.stack([0.5 + side * edges, heights], 1), np.stack([0.5 + side * inner, heights + 0.002], 1)]
        lines.append(np.stack(ends, axis=1))
    return chest.in_lung(chest.canvas.strokes(np.concatenate(lines), 0.0032, blur=0.0012))


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


@finding("emphysema", (0.08, 0.15), changes=overinflated)
def emphysema(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Dark lungs with few vessels, and bullae with thin walls in the upper zones."""
    lungs = chest.field
    chest.clear(lungs, 0.40)
    chest.shade(lungs, -0.6 * site.contrast)
    for side in SIDES:
        x, y = hilum_of(chest.anatomy, side)
        spot = (x + side * random.uniform(0.05, 0.13), y - random.uniform(0.02, 0.13))
        outline = ellipse(spot, random.uniform(0.03, 0.055), random.uniform(0.03, 0.06))
        bulla = chest.in_lung(chest.canvas.fill(outline, blur=0.004))
        chest.clear(bulla, 0.9)
        chest.shade(bulla, -0.35 * site.contrast)
        chest.shade(chest.in_lung(chest.canvas.strokes([outline], 0.0026, closed=True)), 0.07)
    return np.asarray(lungs > 0.5)


@finding("fibrosis", (0.17, 0.30), Zone((9.0, 1.6), (0.120, 0.200), (0.130, 0.220), (0.55, 0.95)))
def fibrosis(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A net of short coarse lines and small rings below the pleura of the bases."""
    count = int(50 + 1900 * site.width * site.height)
    starts = scattered(random, site, count)
    turn = random.uniform(0, np.pi, count)
    length = random.uniform(0.010, 0.026, count)
    ends = starts + polar(turn, length)
    bends = (starts + ends) / 2 + random.normal(0, 0.003, (count, 2))
    net = chest.canvas.strokes(np.stack([starts, bends, ends], axis=1), 0.0034)
    rings = [ellipse((x, y), 0.0065, 0.006, count=10) for x, y in scattered(random, site, count // 4).tolist()]
    combs = chest.canvas.strokes(rings, 0.0028, closed=True)
    region = chest.in_lung(patch(chest, site, random, 0.18, 0.16))
    chest.shade(region * (chest.canvas.soften(np.maximum(net, combs), 0.0014) + 0.22), site.contrast)
    return mask_of(region, 0.3)


def compressed(anatomy: Anatomy, _contrast: float, random: np.random.Generator) -> Anatomy:
    """Return the anatomy with lungs that end where the box of the effusion ends, which is often high.

    ``random`` is in the same state as when the site is chosen, so this is the box that the site will have.
    """
    _, y, _, height = nih_statistics().boxes["effusion"].draw(random)
    higher = anatomy.angle - float(np.clip(y + height / 2, 0.56, anatomy.angle))
    return replace(anatomy, dome=(anatomy.dome[0] - higher, anatomy.dome[1] - higher), angle=anatomy.angle - higher)


@finding("effusion", (0.60, 0.95), changes=compressed)  # of the air, the share that fluid displaces
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
    fluid = chest.canvas.fill(region, blur=0.006) * chest.cavities[side]
    depth = np.clip(chest.canvas.soften(fluid, 0.02) * 1.4, 0, 1)
    chest.clear(fluid, 0.85)
    chest.air = chest.air * (1 - site.contrast * fluid * (0.45 + 0.55 * depth))
    chest.shade(fluid * chest.field, 0.05)
    return mask_of(fluid * chest.cavities[side], 0.35)


@finding("pneumothorax", (0.24, 0.36))
def pneumothorax(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Air without vessels along the wall, bounded by the bright line of the visceral pleura."""
    line = _visceral_pleura(chest.anatomy, site)
    lateral = 0.5 + site.side * 0.7
    beyond = np.concatenate([line, [(lateral, line[-1, 1]), (lateral, line[0, 1])]])
    gap = chest.canvas.fill(beyond, blur=0.0022) * chest.field * chest.cavities[site.side]
    chest.clear(gap)
    chest.shade(gap, -site.contrast)
    pleura = chest.canvas.strokes([line], 0.0036, blur=0.0012) * chest.field
    chest.shade(pleura, random.uniform(0.13, 0.20))
    # the lung that lost air next to it is a little denser
    chest.shade(chest.canvas.soften(gap, 0.04) * (1 - gap) * chest.field, 0.35 * site.contrast)
    return mask_of(gap, 0.5)


def _visceral_pleura(anatomy: Anatomy, site: Site) -> Points:
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


@finding("pleural_thickening", (0.20, 0.34))
def pleural_thickening(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A scar of uneven thickness along the wall or over the apex."""
    heights = np.linspace(max(site.y - site.half[1], chest.anatomy.apex + 0.015), site.y + site.half[1], 24)
    near = np.stack([0.5 + site.side * chest.anatomy.edge(heights, site.side), heights], axis=1)
    ragged = np.interp(np.linspace(0, 1, len(near)), np.linspace(0, 1, 6), [0.25, *random.uniform(0.65, 1.0, 4), 0.25])
    layer = chest.canvas.fill(ribbon(near, 2 * site.width * ragged), blur=0.003) * chest.cavities[site.side]
    chest.shade(layer * chest.field, site.contrast)
    chest.clear(layer, 0.7)
    return mask_of(layer, 0.35)


def enlarged(anatomy: Anatomy, contrast: float, random: np.random.Generator) -> Anatomy:
    """Return the anatomy with a cardiothoracic ratio of ``contrast`` and a tilted heart."""
    ratio = contrast + (0.02 if anatomy.ap else 0.0)
    tilt = min(1.0, anatomy.heart_tilt + float(random.uniform(0.1, 0.6)))
    return replace(anatomy, heart_width=ratio, heart_tilt=tilt, vascularity=1.15)


@finding("cardiomegaly", (0.60, 0.72), changes=enlarged)  # the cardiothoracic ratio; up to 0.50 is healthy
def cardiomegaly(chest: Chest, _site: Site, _random: np.random.Generator) -> Mask:
    """Return the whole heart, which the changed anatomy has drawn large already."""
    return np.asarray(chest.heart > 0.5)


@finding("hernia", (0.09, 0.16))
def hernia(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A round shadow behind the heart with air above a straight fluid level."""
    sack = chest.canvas.fill(ellipse(site.centre, *site.half), blur=0.004)
    inner = ellipse((site.x, site.y - 0.06 * site.height), site.half[0] * 0.82, site.half[1] * 0.80)
    level = site.y + random.uniform(-0.10, 0.12) * site.height
    inner[:, 1] = np.minimum(inner[:, 1], level)
    bubble = chest.canvas.fill(inner, blur=0.0022)
    chest.shade(sack * (1 - bubble), site.contrast)
    chest.shade(bubble, -1.25 * site.contrast)
    return mask_of(sack, 0.5)
