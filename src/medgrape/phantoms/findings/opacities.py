"""Opacities: nodule, mass, infiltration, pneumonia, consolidation, plate atelectasis."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from medgrape.phantoms.canvas import Layer, smooth
from medgrape.phantoms.chest import Chest
from medgrape.phantoms.findings.base import (
    Mask,
    Site,
    clear,
    clouded,
    direction_to,
    in_lung,
    mask_of,
    patch,
    scattered,
    shade,
)
from medgrape.phantoms.soft_tissue import hilum_of


def nodule(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A small round shadow, denser in its centre."""
    disc = patch(chest, site, random, 0.06, 0.07)
    layer = in_lung(chest, disc * (0.55 + 0.45 * chest.canvas.soften(disc, 0.22 * site.width)))
    shade(chest, layer, site.contrast)
    return mask_of(layer)


def mass(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A large lobulated shadow with spicules."""
    body = patch(chest, site, random, 0.16, 0.045)
    ball = body * (0.6 + 0.4 * chest.canvas.soften(body, 0.2 * min(site.width, site.height)))
    turn = np.linspace(0, 2 * np.pi, 18, endpoint=False) + random.normal(0, 0.12, 18)
    rays = np.stack([np.cos(turn), np.sin(turn)], axis=1) * site.half
    reach = random.uniform(1.02, 1.18, (18, 1))
    spicules = np.stack([rays * 0.8, rays * reach], axis=1) + np.asarray(site.centre)
    spikes = chest.canvas.soften(chest.canvas.strokes(spicules, 0.004), 0.0018)
    layer = in_lung(chest, clouded(chest, ball, random, 0.06))
    layer = np.maximum(layer, in_lung(chest, 0.35 * spikes))
    shade(chest, layer, site.contrast)
    return mask_of(layer)


def infiltration(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A faint haze with streaks along the bronchi and no clear border; a wide one lies in both lungs."""
    layer = clouded(chest, patch(chest, site, random, 0.12, 0.10), random, 0.30)
    layer = in_lung(chest, layer + 0.35 * layer * _streaks(chest, site, random))
    shade(chest, layer, site.contrast)
    return mask_of(layer)


def patches(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Pneumonia: confluent patches with dark bronchi inside."""
    count = int(random.integers(4, 8))
    centres = scattered(random, site, count, 0.66)
    layer = chest.canvas.blank()
    for x, y in centres.tolist():
        size = random.uniform(0.44, 0.68)
        small = replace(site, x=x, y=y, width=site.width * size, height=site.height * size)
        layer = np.maximum(layer, random.uniform(0.7, 1.0) * patch(chest, small, random, 0.30, 0.16))
    layer = in_lung(chest, clouded(chest, layer, random, 0.32))
    layer = layer * (1 - 0.4 * _bronchi(chest, site, random, 3))
    shade(chest, layer, site.contrast)
    return mask_of(layer)


def consolidation(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A dense even shadow without vessels, with branching air bronchograms."""
    layer = patch(chest, site, random, 0.24, 0.085)
    layer = in_lung(chest, clouded(chest, layer, random, 0.12))
    clear(chest, layer, 0.8)
    mask = mask_of(layer)
    shade(chest, layer * (1 - 0.50 * _bronchi(chest, site, random, 4)), site.contrast)
    return mask


def plates(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Plate atelectasis: a few horizontal or slightly oblique bands in a little haze."""
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
    lines = chest.canvas.soften(chest.canvas.strokes(bands, thickness), 0.0026)
    layer = in_lung(chest, lines + 0.38 * patch(chest, site, random, 0.12, 0.14))
    shade(chest, layer, site.contrast)
    return mask_of(layer, 0.2)


def _bronchi(chest: Chest, site: Site, random: np.random.Generator, count: int) -> Layer:
    """Dark tubes that fan out away from the hilum and fork."""
    away = direction_to(hilum_of(chest.anatomy, site.side), site.centre)
    reach = min(0.5 * float(np.hypot(*site.half)), 0.07)
    count += int(60 * site.width * site.height)  # large shadows show more bronchi, not longer ones
    angles = away + np.linspace(-0.8, 0.8, count) + random.normal(0, 0.18, count)
    roots = scattered(random, site, count, 0.6) - _steps(angles, np.full(count, 0.6 * reach))
    forks = roots + _steps(angles, reach * random.uniform(0.35, 0.7, count))
    branches = [np.stack([roots, forks], axis=1)]
    for turn in (-0.45, 0.4):
        ends = forks + _steps(angles + turn, reach * random.uniform(0.3, 0.7, count))
        branches.append(np.stack([forks, ends], axis=1))
    width = float(np.clip(0.030 * min(site.width, site.height), 0.0032, 0.0050))
    return chest.canvas.soften(chest.canvas.strokes(np.concatenate(branches), width), 0.0018)


def _steps(angles: Float[np.ndarray, " n"], lengths: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 2"]:
    return np.stack([np.cos(angles) * lengths, np.sin(angles) * lengths], axis=1)


def _streaks(chest: Chest, site: Site, random: np.random.Generator) -> Layer:
    """Short lines that follow the bronchi."""
    starts = scattered(random, site, 22)
    hilum = np.array([hilum_of(chest.anatomy, -1 if x < 0.5 else 1) for x in starts[:, 0].tolist()])
    towards = (hilum - starts) * random.uniform(0.12, 0.3, (22, 1))
    paths = np.stack([starts, starts + towards / 2 + random.normal(0, 0.004, (22, 2)), starts + towards], axis=1)
    return chest.canvas.soften(chest.canvas.strokes(paths, 0.0045), 0.002)
