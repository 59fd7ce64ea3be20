"""Ribs with their cortical edges, clavicles, shoulder blades, upper arms and the spine."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from medgrape.phantoms.anatomy import RIGHT, SIDES, Anatomy
from medgrape.phantoms.canvas import Canvas, Layer, Points, ellipse, ribbon, smooth, smooth_closed

RIBS = np.arange(1, 11)
BACK = np.linspace(0.02, 0.58, 17) * np.pi  # from the spine to the side
PARASPINAL = 0.042  # how far from the midline the lungs end beside the spine
FRONT = np.linspace(0.44, 0.88, 13) * np.pi  # from the side to the cartilage
Outlines = Sequence[Points] | Float[np.ndarray, "_ _ 2"]
CORTEX = 0.0026  # width of a cortical line
MARROW, EDGE = 0.64, 0.40  # the X-ray grazes the cortex at a bone's edge, which is why that is brighter
BLADE, ARM, SPINE, PROCESS = 0.66, 0.9, 0.66, 0.90  # how dense the others are beside a rib
# Half a vertebral body: waisted between its two plates
_BODY = np.array([(1, -1), (0.88, 0), (1, 1), (-1, 1), (-0.88, 0), (-1, -1)])


def ribs(
    anatomy: Anatomy, numbers: Float[np.ndarray, " n"] | Int[np.ndarray, " n"], angles: Float[np.ndarray, " m"]
) -> Float[np.ndarray, "2*n m 2"]:
    """Return the centre lines of a part of the ribs, right side first; angles go from 0 at the spine to pi in front."""
    start = anatomy.apex + 0.004 + anatomy.rib_pitch * (numbers - 1)
    drop = (0.062 + 0.027 * numbers) * anatomy.rib_drop
    forward = (1 - np.cos(angles)) / 2
    # the back part arches a little upwards before it falls
    arch = 0.010 * np.sin(2 * angles) * (angles < np.pi / 2)
    height = start[:, None] + drop[:, None] * forward + 0.014 * np.sin(angles) - arch
    middle = 0.5 + (anatomy.front() - 0.5) * forward + (anatomy.midline(start)[:, None] - 0.5) * (1 - forward)
    across = np.sin(angles) ** 0.82
    # the first ribs wrap the apex closely
    narrow = np.interp(numbers, [1, 2, 3, 4], [0.72, 0.90, 0.97, 1.0])
    both = []
    for side in SIDES:
        width = anatomy.edge(start + 0.5 * drop, side) * narrow + 0.35 * anatomy.rib_width
        both.append(np.stack([middle + side * width[:, None] * across, height], axis=-1))
    return np.concatenate(both)


def diaphragm(anatomy: Anatomy, side: int) -> Points:
    """Return the dome from the costophrenic angle to the midline."""
    dome, angle = anatomy.dome_of(side), anatomy.angle
    width = float(anatomy.edge(angle, side))
    top = 0.47 if side == RIGHT else 0.52
    shares = np.linspace(1.0, PARASPINAL / width, 18)
    lateral = np.clip((shares - top) / (1 - top), 0, 1) ** 2.6
    medial = np.clip((top - shares) / top, 0, 1) ** 2.0
    height = dome + (angle - dome) * (lateral + 0.38 * medial)
    return np.stack([0.5 + side * width * shares, height], axis=1)


def chest_wall(anatomy: Anatomy, side: int) -> Points:
    """Return the inner chest wall from the medial end of the apex down to the costophrenic angle."""
    apex, angle = anatomy.apex, anatomy.angle
    heights = apex + (angle - apex) * np.array([0.0, 0.012, 0.04, 0.09, 0.16, 0.26, 0.38, 0.52, 0.68, 0.84, 1.0])
    lateral = np.stack([0.5 + side * anatomy.edge(heights, side), heights], axis=1)
    width = anatomy.half_width
    medial = [(0.5 + side * PARASPINAL, apex + 0.09), (0.5 + side * 0.2 * width, apex + 0.018)]
    return smooth(np.concatenate([medial, lateral]))


def pleural_cavity(anatomy: Anatomy, side: int) -> Points:
    """Return the closed outline of one lung field, behind heart and mediastinum up to the midline."""
    return np.concatenate([chest_wall(anatomy, side), diaphragm(anatomy, side)])


def lung_point(anatomy: Anatomy, side: int, across: float, down: float) -> tuple[float, float]:
    """Return a point in a lung: ``across`` from the hilum (0) to the wall (1), ``down`` from apex to dome."""
    height = anatomy.apex + down * (anatomy.dome_of(side) - anatomy.apex)
    heart = anatomy.heart_width * anatomy.half_width * (0.75 if side == RIGHT else 1.15)
    inner = float(np.interp(down, [0.0, 0.35, 0.6, 1.0], [0.045, 0.06, 0.075, heart]))
    outer = float(anatomy.edge(height, side))
    return 0.5 + side * (inner + across * (outer - inner)), height


def body_contour(anatomy: Anatomy) -> Points:
    """Return the outline of the skin: neck, shoulders, flanks and the bottom of the film."""
    fat = 0.024 + 0.072 * anatomy.habitus
    flank = anatomy.half_width + fat
    half = [
        (anatomy.neck, -0.30), (anatomy.neck, -0.04), (anatomy.neck + 0.014, 0.02), (anatomy.neck + 0.055, 0.062),
        (0.22, anatomy.shoulder - 0.014), (0.32, anatomy.shoulder + 0.002), (0.42, anatomy.shoulder + 0.035),
        (0.47, anatomy.shoulder + 0.10), (0.475, 0.28), (max(flank, 0.40) + 0.010, 0.38), (flank + 0.004, 0.50),
        (flank, 0.64), (flank - 0.006, 0.82), (flank - 0.004, 1.10), (flank - 0.004, 1.40),
    ]  # fmt: skip
    right = [(0.5 - x, y) for x, y in half]
    left = [(0.5 + x, y) for x, y in half[::-1]]
    return smooth_closed(left + right)


def draw_skeleton(canvas: Canvas, anatomy: Anatomy) -> Layer:
    """Draw all bones; front and back ribs are separate layers, so that their shadows add up where they cross."""
    slim_at_the_spine = anatomy.rib_width * np.interp(np.linspace(0, 1, len(BACK)), [0, 0.8, 1], [0.72, 1.0, 0.6])
    rear = ribbon(ribs(anatomy, RIBS, BACK), slim_at_the_spine)
    fore = ribbon(ribs(anatomy, RIBS[:8], FRONT), anatomy.rib_width * 1.12)
    # towards the sternum bone gives way to cartilage, which casts no shadow
    columns = np.abs((np.arange(canvas.size, dtype=np.float32) + 0.5) / canvas.size - 0.5)
    fading = np.clip((columns - 0.11) / 0.13, 0, 0.72).astype(np.float32)
    return np.asarray(_draw_ribs(canvas, rear) + _draw_ribs(canvas, fore) * fading + _draw_others(canvas, anatomy))


def _draw_others(canvas: Canvas, anatomy: Anatomy) -> Layer:
    """Shoulder blades, arms, clavicles and spine in one layer, since they hardly overlap."""
    blades, ridges, arms, clavicles = (
        [outline(anatomy, side) for side in SIDES] for outline in (_blade, _blade_spine, _upper_arm, _clavicle)
    )
    bodies, eyes, processes = _spine(anatomy)
    solid = [*blades, *arms, *clavicles, *bodies, *processes]
    ink = [BLADE] * 2 + [ARM] * 2 + [1.0] * 2 + [SPINE] * len(bodies) + [PROCESS] * len(processes)
    borders = [np.concatenate([blade, blade[:1]]) for blade in blades]
    lines = canvas.graded_strokes(
        [
            (ridges, 0.011, 0.45), (borders, CORTEX * 1.4, 0.62), (_edges([*arms, *clavicles]), CORTEX, 1.0),
            (np.concatenate([bodies, bodies[:, :1]], axis=1), CORTEX, 0.45), (eyes, CORTEX, 0.5),
        ]
    )  # fmt: skip
    return MARROW * canvas.fill(*solid, ink=ink, blur=0.0024) + EDGE * lines


def _edges(outlines: Outlines) -> list[Points]:
    """The two long sides of each band."""
    return [half for line in outlines for half in (line[: len(line) // 2], line[len(line) // 2 :])]


def _draw_ribs(canvas: Canvas, outlines: Outlines) -> Layer:
    """Filled bands with brighter edges, but no edge across their ends."""
    return MARROW * canvas.fill(*outlines, blur=0.0022) + EDGE * canvas.strokes(_edges(outlines), CORTEX)


def draw_cartilages(canvas: Canvas, anatomy: Anatomy, random: np.random.Generator) -> Layer:
    """Draw calcified rib cartilage of old patients: specks beyond the front ends of the ribs."""
    ends = ribs(anatomy, np.array([1, 4, 5, 6, 7]), np.array([0.86, 0.93]) * np.pi)
    along = random.uniform(0, 1, (len(ends), 8, 1))
    points = (ends[:, :1] + along * (ends[:, 1:] - ends[:, :1])).reshape(-1, 2)
    points = points + random.normal(0, 0.006, points.shape)
    calcified = points[random.random(len(points)) < anatomy.calcified_cartilage]
    return canvas.dots(calcified, random.uniform(0.002, 0.005, len(calcified)), blur=0.002)


def _clavicle(anatomy: Anatomy, side: int) -> Points:
    """S-shaped, thick at the sternum and flat at the shoulder."""
    inner, y, rise = anatomy.front() + side * 0.032, anatomy.apex + 0.075, anatomy.clavicle_rise
    path = smooth(
        [
            (inner, y + 0.012), (inner + side * 0.065, y - 0.004), (0.5 + side * 0.185, y - 0.35 * rise),
            (0.5 + side * 0.270, y - 0.95 * rise), (0.5 + side * 0.345, y - 1.05 * rise),
        ]
    )  # fmt: skip
    along = np.linspace(0, 1, len(path))
    width = np.interp(along, [0, 0.02, 0.12, 0.5, 0.85, 0.97, 1], [0.020, 0.031, 0.025, 0.020, 0.023, 0.026, 0.018])
    return ribbon(path, width)


def _blade(anatomy: Anatomy, side: int) -> Points:
    """From the glenoid down the lateral border to the lower tip and up the medial border."""
    y, inwards = anatomy.shoulder, 0.055 * anatomy.scapula_in
    half = [
        (0.375, y + 0.055), (0.382, y + 0.10), (0.352 - inwards, y + 0.19), (0.318 - inwards, y + 0.315),
        (0.298 - inwards, y + 0.335), (0.282 - inwards, y + 0.26), (0.272 - inwards, y + 0.13),
        (0.278 - inwards, y + 0.055), (0.315 - 0.5 * inwards, y + 0.045), (0.352, y + 0.050),
    ]  # fmt: skip
    return smooth_closed([(0.5 + side * x, h) for x, h in half])


def _blade_spine(anatomy: Anatomy, side: int) -> Points:
    y, inwards = anatomy.shoulder, 0.055 * anatomy.scapula_in
    half = [(0.276 - inwards, y + 0.105), (0.33, y + 0.055), (0.385, y + 0.018), (0.41, y + 0.022)]
    return smooth([(0.5 + side * x, h) for x, h in half])


def _upper_arm(anatomy: Anatomy, side: int) -> Points:
    y = anatomy.shoulder
    far = (0.50, y + 0.42) if anatomy.ap else (0.62, y + 0.27)
    path = smooth([(0.405, y + 0.055), (0.425, y + 0.085), (0.455, y + 0.16), far])
    along = np.linspace(0, 1, len(path))
    width = np.interp(along, [0, 0.04, 0.12, 0.35, 0.5, 1], [0.02, 0.048, 0.062, 0.050, 0.032, 0.030])
    return np.asarray(ribbon(path, width) * (side, 1) + (0.5, 0))


def _spine(
    anatomy: Anatomy,
) -> tuple[Float[np.ndarray, "n 6 2"], Float[np.ndarray, "2*n m 2"], Float[np.ndarray, "n m 2"]]:
    """Vertebral bodies, their pedicles like eyes, and the spinous processes."""
    levels = np.arange(-3, 17)
    heights = anatomy.apex - 0.01 + anatomy.rib_pitch * levels * (1 + 0.006 * levels)
    centres = np.stack([anatomy.midline(heights), heights], axis=1)[:, None]
    wide = (0.026 + 0.010 * heights)[:, None, None]
    bodies = centres + _BODY * np.concatenate([wide, np.full_like(wide, anatomy.rib_pitch * 0.41)], axis=2)
    eye = ellipse((0.0, -0.006), 0.0058, 0.0085, count=14)
    eyes = [centres + eye + np.concatenate([side * wide * 0.58, np.zeros_like(wide)], axis=2) for side in SIDES]
    processes = centres + ellipse((0.012 * anatomy.turn, 0.020), 0.0050, 0.0115, count=14)
    return bodies, np.concatenate(eyes), processes
