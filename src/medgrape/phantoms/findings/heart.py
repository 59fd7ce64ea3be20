"""Cardiomegaly and hiatal hernia."""

from dataclasses import replace

import numpy as np

from medgrape.phantoms.anatomy import Anatomy
from medgrape.phantoms.canvas import ellipse
from medgrape.phantoms.chest import Chest
from medgrape.phantoms.findings.base import Mask, Site, mask_of, shade


def enlarged(anatomy: Anatomy, contrast: float, random: np.random.Generator) -> Anatomy:
    """Return the anatomy with a cardiothoracic ratio of ``contrast`` and a tilted heart."""
    ratio = contrast + (0.02 if anatomy.ap else 0.0)
    tilt = min(1.0, anatomy.heart_tilt + float(random.uniform(0.1, 0.6)))
    return replace(anatomy, heart_width=ratio, heart_tilt=tilt, vascularity=1.15)


def cardiomegaly(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """Return the whole heart, which the changed anatomy has drawn large already."""
    del site, random
    return np.asarray(chest.heart > 0.5)


def hernia(chest: Chest, site: Site, random: np.random.Generator) -> Mask:
    """A round shadow behind the heart with air above a straight fluid level."""
    sack = chest.canvas.soften(chest.canvas.fill(ellipse(site.centre, *site.half)), 0.004)
    inner = ellipse((site.x, site.y - 0.06 * site.height), site.half[0] * 0.82, site.half[1] * 0.80)
    level = site.y + random.uniform(-0.10, 0.12) * site.height
    inner[:, 1] = np.minimum(inner[:, 1], level)
    bubble = chest.canvas.soften(chest.canvas.fill(inner), 0.0022)
    shade(chest, sack * (1 - bubble), site.contrast)
    shade(chest, bubble, -1.25 * site.contrast)
    return mask_of(sack, 0.5)
