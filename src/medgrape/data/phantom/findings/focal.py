"""Round shadows: nodules and masses."""

import numpy as np

from medgrape.data.phantom.chest import Chest
from medgrape.data.phantom.findings.brush import Mask, clouded, in_lung, mask_of, patch, shade
from medgrape.data.phantom.findings.site import Site


def nodule(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Small and round, denser in its middle as a ball is."""
    disc = patch(chest, site, random, 0.06, 0.07)
    layer = in_lung(chest, disc * (0.55 + 0.45 * chest.canvas.soften(disc, 0.22 * site.width)))
    shade(chest, layer, site.contrast)
    return mask_of(layer)


def mass(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Large, lobulated, with spicules that reach into the lung around it."""
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
