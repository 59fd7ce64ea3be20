"""Heart, great vessels, trachea and hila."""

import numpy as np

from medgrape.data.phantom.anatomy import LEFT, RIGHT, SIDES, Anatomy
from medgrape.data.phantom.canvas import Canvas, Layer
from medgrape.data.phantom.curve import Pair, Points, blob, ellipse, ribbon, smooth, smooth_closed


def heart(anatomy: Anatomy) -> Points:
    """The cardiac silhouette: right atrium, left ventricle to its apex, left auricle and pulmonary trunk."""
    middle = anatomy.front()
    total = anatomy.heart_width * 2 * anatomy.half_width
    right, left = total * 0.33, total * 0.67
    floor = (anatomy.dome[0] + anatomy.dome[1]) / 2
    tall = 0.275 - 0.035 * anatomy.heart_tilt + 0.25 * max(0.0, total - 0.32)
    top = floor - tall

    def at(across: float, down: float) -> Pair:
        return middle + across, top + down * (tall + 0.045)

    tilt = anatomy.heart_tilt
    return smooth_closed(
        [
            at(-0.045, 0.02),
            at(-right * 0.80, 0.24),
            at(-right * 1.00, 0.45),
            at(-right * 0.99, 0.62),
            at(-right * 0.80, 0.82),
            at(-right * 0.55, 0.97),
            at(left * 0.45, 1.02),
            at(left * 0.84, 0.99),
            at(left * 1.00, 0.87 - 0.03 * tilt),
            at(left * 0.95, 0.70 - 0.05 * tilt),
            at(left * 0.83, 0.49 - 0.04 * tilt),
            at(left * 0.61, 0.29),
            at(left * 0.44, 0.12),
            at(left * 0.30, 0.0),
        ]
    )


def great_vessels(anatomy: Anatomy) -> tuple[Points, Points]:
    """The band above the heart from caval vein to left subclavian artery, and the aortic knob."""
    front, floor = anatomy.front(), (anatomy.dome[0] + anatomy.dome[1]) / 2
    top, knob = anatomy.apex, anatomy.knob
    bottom = floor - 0.06
    arch = top + 0.205
    right: list[Pair] = [
        (-0.095, top - 0.04),
        (-0.062, top + 0.07),
        (-0.058, arch),
        (-0.064, arch + 0.1),
        (-0.06, bottom),
    ]
    left: list[Pair] = [
        (0.055, bottom),
        (0.070, arch + 0.12),
        (0.056, arch + 0.055),
        (0.050, arch - 0.03),
        (0.056, top + 0.07),
        (0.095, top - 0.04),
    ]
    band = smooth_closed([(front + x, y) for x, y in right[::-1]] + [(front + x, y) for x, y in left[::-1]])
    return band, ellipse((front + 0.036 + 0.25 * knob, arch), knob * 1.05, knob * 1.2)


def airways(canvas: Canvas, anatomy: Anatomy) -> Layer:
    """Trachea and main bronchi, as coverage."""
    carina = (anatomy.front() + 0.004, anatomy.apex + 0.235)
    trachea = smooth(
        [(0.5, -0.02), (0.5 + 0.01 * anatomy.turn, anatomy.apex), (carina[0] - 0.004, carina[1] - 0.06), carina]
    )
    right = smooth([carina, (carina[0] - 0.030, carina[1] + 0.035), (carina[0] - 0.052, carina[1] + 0.075)])
    left = smooth([carina, (carina[0] + 0.040, carina[1] + 0.035), (carina[0] + 0.075, carina[1] + 0.055)])
    width = 0.031 if not anatomy.female else 0.027
    tubes = [ribbon(trachea, width), ribbon(right, width * 0.72), ribbon(left, width * 0.62)]
    return canvas.soften(canvas.fill(*tubes), 0.003)


def hilum_of(anatomy: Anatomy, side: int) -> Pair:
    """The middle of one hilum; the left stands higher."""
    lift = 0.012 if side == LEFT else 0.0
    out = 0.073 if side == RIGHT else 0.080
    return anatomy.front() + side * out, anatomy.apex + 0.285 - lift


def hila(canvas: Canvas, anatomy: Anatomy, random: np.random.Generator) -> Layer:
    """The pulmonary arteries where they enter the lungs: a few overlapping lobulated shadows."""
    outlines = []
    for side in SIDES:
        x, y = hilum_of(anatomy, side)
        outlines.append(blob(random, (x, y), 0.020, 0.034, 0.25))
        outlines.append(blob(random, (x + side * 0.014, y + 0.045), 0.013, 0.042, 0.2))
        outlines.append(blob(random, (x + side * 0.012, y - 0.035), 0.012, 0.022, 0.25))
    return canvas.soften(canvas.fill(*outlines), 0.0075)
