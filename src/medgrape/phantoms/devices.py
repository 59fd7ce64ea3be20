"""Devices on films: pacemaker, leads, wires, lines and side markers."""

from collections.abc import Callable

import numpy as np

from medgrape.phantoms.anatomy import LEFT, RIGHT, SIDES, Anatomy
from medgrape.phantoms.canvas import Canvas, Layer, Pair, ellipse, smooth, smooth_closed

Draw = Callable[[Canvas, Anatomy, np.random.Generator], Layer]
PERMANENT_DEVICES = frozenset({"nipple_shadows", "sternal_wires", "pacemaker"})  # same at every visit
METAL, PLASTIC = 0.62, 0.16
# Letters as one stroke each, one unit high
_L = np.array([(0.0, -1.0), (0.0, 0.0), (0.55, 0.0)])
_R = np.array(
    [
        (0, 0), (0, -1), (0.38, -1), (0.55, -0.9), (0.58, -0.72), (0.52, -0.56), (0.38, -0.48), (0, -0.48),
        (0.28, -0.48), (0.6, 0),
    ]
)  # fmt: skip


def pacemaker(canvas: Canvas, anatomy: Anatomy, random: np.random.Generator) -> Layer:
    """Draw a can below one clavicle, its header, and leads through the vein into the right heart."""
    side = LEFT if random.random() < 0.8 else RIGHT
    x, y = 0.5 + side * random.uniform(0.235, 0.275), anatomy.apex + random.uniform(0.115, 0.155)
    wide, tall = random.uniform(0.036, 0.046), random.uniform(0.034, 0.044)
    corners: list[Pair] = [
        (-1, -0.45), (-0.7, -1), (0.7, -1), (1, -0.4), (0.92, 0.5), (0.4, 1), (-0.4, 1), (-0.92, 0.5),
    ]  # fmt: skip
    can = canvas.fill(smooth_closed([(x + wide * a, y + tall * b) for a, b in corners]))
    battery = canvas.fill(ellipse((x, y + 0.25 * tall), 0.62 * wide, 0.5 * tall))
    floor, front = sum(anatomy.dome) / 2, anatomy.front()
    vein: list[Pair] = [
        (x - side * 0.5 * wide, y - 0.8 * tall), (x - side * 0.075, anatomy.apex + 0.075),
        (front - 0.028 + 0.02 * side, anatomy.apex + 0.115), (front - 0.044, anatomy.apex + 0.24),
        (front - 0.058, floor - 0.15),
    ]  # fmt: skip
    ventricle = smooth([*vein, (front - 0.02, floor - 0.045), (front + 0.085, floor - 0.028)])
    atrium = smooth([*vein, (front - 0.05, floor - 0.11), (front - 0.075, floor - 0.14)])
    leads = canvas.strokes([ventricle, atrium], 0.0036)
    tips = canvas.dots(np.stack([ventricle[-1], atrium[-1]]), np.array([0.0042, 0.0042]))
    return METAL * np.maximum(0.72 * can + 0.28 * battery, np.maximum(0.55 * leads, 0.8 * tips))


def ecg_leads(canvas: Canvas, anatomy: Anatomy, random: np.random.Generator) -> Layer:
    """Draw electrodes on the skin and cables that leave the film."""
    top = anatomy.apex + 0.10
    spots = random.normal(
        [(0.5 - 0.22, top), (0.5 + 0.22, top), (0.5 + 0.25, 0.72)], [(0.02, 0.02)] * 2 + [(0.02, 0.03)]
    )
    exit_x = random.uniform(0.25, 0.75)
    cables = [
        smooth(
            [
                (x, y), (x + random.normal(0, 0.04), y + 0.16), ((x + exit_x) / 2 + random.normal(0, 0.05), 0.82),
                (exit_x, 1.05),
            ]
        )
        for x, y in spots.tolist()
    ]  # fmt: skip
    discs, studs = canvas.dots(spots, np.full(3, 0.0095)), canvas.dots(spots, np.full(3, 0.0042))
    wires = canvas.strokes(cables, 0.0042)
    return np.asarray(PLASTIC * np.maximum(discs, 1.1 * wires) + 0.35 * studs)


def central_line(canvas: Canvas, anatomy: Anatomy, random: np.random.Generator) -> Layer:
    """Draw a line from the right side of the neck to where the caval vein meets the atrium."""
    front, apex = anatomy.front(), anatomy.apex
    start = (0.5 - 0.058 + random.normal(0, 0.008), -0.02)
    path = smooth(
        [
            start,
            (front - 0.055, apex - 0.03), (front - 0.040, apex + 0.08), (front - 0.042, apex + 0.20),
            (front - 0.046, apex + random.uniform(0.27, 0.33)),
        ]
    )  # fmt: skip
    return PLASTIC * 1.15 * canvas.strokes([path], 0.0058, blur=0.0008)


def sternal_wires(canvas: Canvas, anatomy: Anatomy, random: np.random.Generator) -> Layer:
    """Draw the loops that hold the sternum together after heart surgery."""
    heights = anatomy.apex + 0.12 + 0.062 * np.arange(6)
    loops = [
        ellipse((anatomy.front() + random.normal(0, 0.002), y), 0.011, 0.0068, random.normal(0, 0.25), count=14)
        for y in heights.tolist()
    ]
    return METAL * 0.62 * canvas.strokes(loops, 0.0034, closed=True)


def nipple_shadows(canvas: Canvas, anatomy: Anatomy, random: np.random.Generator) -> Layer:
    """Draw two small round shadows at about the same height over the lower lungs, easily mistaken for nodules."""
    low = 0.58 + 0.08 * anatomy.breast + random.normal(0, 0.012)
    across = anatomy.half_width * random.uniform(0.58, 0.72)
    spots = np.array([(0.5 + side * across, low + random.normal(0, 0.006)) for side in SIDES])
    return random.uniform(0.07, 0.12) * canvas.dots(spots, np.full(2, 0.0105), blur=0.0018)


def marker(canvas: Canvas, _anatomy: Anatomy, random: np.random.Generator) -> Layer:
    """Draw a lead letter on the correct side."""
    left = bool(random.random() < 0.6)
    x, y = random.uniform(0.90, 0.95) if left else random.uniform(0.05, 0.10), random.uniform(0.06, 0.20)
    height = random.uniform(0.028, 0.045)
    letter = (_L if left else _R) * height + (x - 0.3 * height, y)
    # fixed to the detector, so it does not tilt with the patient
    return 1.5 * Canvas(canvas.size).strokes([letter], 0.17 * height)


DEVICES: dict[str, Draw] = {
    draw.__name__: draw for draw in (pacemaker, ecg_leads, central_line, sternal_wires, nipple_shadows, marker)
}
