"""What surrounds and separates the lungs: skin, muscle, breasts, arms, abdomen; and the air itself."""

import numpy as np

from medgrape.data.phantom.anatomy import LEFT, RIGHT, SIDES, Anatomy
from medgrape.data.phantom.cage import body_contour, diaphragm
from medgrape.data.phantom.canvas import Canvas, Layer
from medgrape.data.phantom.curve import Pair, blob, ellipse, smooth_closed


def body(canvas: Canvas, anatomy: Anatomy) -> Layer:
    """Thickness of the trunk, neck, shoulders and arms; 1 is the middle of the trunk."""
    trunk = canvas.fill(body_contour(anatomy))
    inner = canvas.soften(trunk, 0.045)
    rows = (np.arange(canvas.size, dtype=np.float32) + 0.5) / canvas.size
    lengthwise = np.interp(rows, [0, 0.10, 0.25, 0.6, 1.0], [0.50, 0.60, 0.74, 0.88, 1.0]).astype(np.float32)
    thickness = trunk * (0.30 + 0.70 * inner * inner) * lengthwise[:, None]
    arms = canvas.fill(*(_arm(anatomy, side) for side in SIDES))
    round_off = canvas.soften(arms, 0.030)
    limb = arms * (0.10 + 0.38 * round_off * round_off)
    return np.asarray(np.maximum(thickness, limb) + 0.35 * np.minimum(thickness, limb))


def _arm(anatomy: Anatomy, side: int) -> np.ndarray:
    """Raised sideways before the detector, or hanging beside a patient in bed."""
    top = anatomy.shoulder
    flank = anatomy.half_width + 0.034 + 0.075 * anatomy.habitus
    if anatomy.ap:
        half: list[Pair] = [
            (0.36, top + 0.02),
            (0.44, top + 0.03),
            (0.505, top + 0.10),
            (0.56, 0.40),
            (0.60, 1.05),
            (flank + 0.055, 1.05),
            (flank + 0.035, 0.60),
            (0.40, 0.36),
        ]
    else:
        half = [
            (0.36, top + 0.02),
            (0.43, top + 0.025),
            (0.50, top + 0.08),
            (0.60, 0.26),
            (0.68, 0.40),
            (0.60, 0.52),
            (0.47, 0.40),
            (0.39, 0.34),
        ]
    return smooth_closed([(0.5 + side * x, y) for x, y in half])


def breasts(canvas: Canvas, anatomy: Anatomy) -> Layer:
    """Shadows over the lower lungs that end in a soft lower fold."""
    if anatomy.breast == 0:
        return canvas.blank()
    size = 0.085 + 0.085 * anatomy.breast
    low = 0.60 + 0.06 * anatomy.breast
    outlines = [_breast(anatomy, side, size, low) for side in SIDES]
    shadow = canvas.soften(canvas.fill(*outlines), 0.007)
    return np.asarray(shadow * canvas.soften(shadow, 0.05))


def _breast(anatomy: Anatomy, side: int, size: float, low: float) -> np.ndarray:
    centre = 0.5 + side * (anatomy.half_width * 0.70 + 0.02 * anatomy.breast)
    droop = 0.012 * side * anatomy.turn
    return ellipse((centre, low + droop), size * 1.05, size * 1.1, side * 0.25)


def abdomen(canvas: Canvas, anatomy: Anatomy) -> Layer:
    """Everything below the two domes, as coverage."""
    right = diaphragm(anatomy, RIGHT)
    left = diaphragm(anatomy, LEFT)[::-1]
    corners = np.array([(1.4, anatomy.angle), (1.4, 1.4), (-0.4, 1.4), (-0.4, anatomy.angle)])
    return canvas.fill(np.concatenate([right, left, corners]))


def gas(canvas: Canvas, anatomy: Anatomy, random: np.random.Generator) -> Layer:
    """The stomach bubble under the left dome, flat below when upright, and gas in the bends of the colon."""
    dome = anatomy.dome_of(LEFT)
    wide = 0.025 + 0.058 * random.uniform(0, 1)
    high = wide * random.uniform(0.6, 0.9)
    centre = (0.5 + anatomy.half_width * random.uniform(0.36, 0.52), dome + 0.016 + high)
    bubble = blob(random, centre, wide, high, 0.10)
    if anatomy.upright:
        bubble[:, 1] = np.minimum(bubble[:, 1], centre[1] + random.uniform(0.2, 0.7) * high)
    start = np.array([0.5 + random.choice([-0.8, 0.75]) * anatomy.half_width, dome + 0.11])
    lobes = start + np.cumsum(random.normal(0, 0.024, (int(random.integers(0, 6)), 2)), axis=0)
    colon = [blob(random, (x, y), 0.024, 0.020, 0.15) for x, y in lobes.tolist()]
    return canvas.soften(canvas.fill(bubble, *colon), 0.0045)


def air(canvas: Canvas, field: Layer) -> Layer:
    """Depth of air behind each point of a lung field: thin along its rim, deep in its middle."""
    rim = canvas.soften(field, 0.016)
    deep = canvas.soften(field, 0.055)
    return np.asarray(field * (0.34 * rim + 0.66 * np.sqrt(np.clip(rim * deep, 0, 1))))
