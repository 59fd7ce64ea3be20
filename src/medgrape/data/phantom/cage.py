"""The bony cage as curves in space seen from the front, and the lung fields that it encloses.

A rib is half a tilted ellipse: it leaves the spine level, falls while it turns forward at the chest wall and runs back
towards the sternum below where it began. Seen from the front its back and front parts cross those of its neighbours.
"""

import numpy as np
from jaxtyping import Float, Int

from medgrape.data.phantom.anatomy import RIGHT, SIDES, Anatomy
from medgrape.data.phantom.curve import Points, smooth, smooth_closed

RIBS = np.arange(1, 11)
BACK = np.linspace(0.02, 0.58, 17) * np.pi  # from the spine to the side
PARASPINAL = 0.042  # how far from the midline the lungs end beside the spine
FRONT = np.linspace(0.44, 0.88, 13) * np.pi  # from the side to the cartilage


def ribs(
    anatomy: Anatomy, numbers: Float[np.ndarray, " n"] | Int[np.ndarray, " n"], angles: Float[np.ndarray, " m"]
) -> Float[np.ndarray, "2*n m 2"]:
    """The middle lines of a part of the ribs, right ones first; angles go from 0 at the spine to pi in front."""
    start = anatomy.apex + 0.004 + anatomy.rib_pitch * (numbers - 1)
    drop = (0.062 + 0.027 * numbers) * anatomy.rib_drop
    forward = (1 - np.cos(angles)) / 2
    # the back part arches a little upwards before it falls
    arch = 0.010 * np.sin(2 * angles) * (angles < np.pi / 2)
    height = start[:, None] + drop[:, None] * forward + 0.014 * np.sin(angles) - arch
    middle = 0.5 + (anatomy.front() - 0.5) * forward + (anatomy.midline(start)[:, None] - 0.5) * (1 - forward)
    across = np.sin(angles) ** 0.82
    both = []
    for side in SIDES:
        # the first ribs wrap the apex closely
        narrow = np.interp(numbers, [1, 2, 3, 4], [0.72, 0.90, 0.97, 1.0])
        width = anatomy.edge(start + 0.5 * drop, side) * narrow + 0.35 * anatomy.rib_width
        both.append(np.stack([middle + side * width[:, None] * across, height], axis=-1))
    return np.concatenate(both)


def diaphragm(anatomy: Anatomy, side: int) -> Points:
    """The dome from the costophrenic angle to the midline."""
    dome, angle = anatomy.dome_of(side), anatomy.angle
    width = float(anatomy.edge(angle, side))
    top = 0.47 if side == RIGHT else 0.52
    shares = np.linspace(1.0, PARASPINAL / width, 18)
    lateral = np.clip((shares - top) / (1 - top), 0, 1) ** 2.6
    medial = np.clip((top - shares) / top, 0, 1) ** 2.0
    height = dome + (angle - dome) * (lateral + 0.38 * medial)
    return np.stack([0.5 + side * width * shares, height], axis=1)


def wall(anatomy: Anatomy, side: int) -> Points:
    """The inner chest wall from the apex's medial end down to the costophrenic angle."""
    apex, angle = anatomy.apex, anatomy.angle
    heights = apex + (angle - apex) * np.array([0.0, 0.012, 0.04, 0.09, 0.16, 0.26, 0.38, 0.52, 0.68, 0.84, 1.0])
    lateral = np.stack([0.5 + side * anatomy.edge(heights, side), heights], axis=1)
    width = anatomy.half_width
    medial = [(0.5 + side * PARASPINAL, apex + 0.09), (0.5 + side * 0.2 * width, apex + 0.018)]
    return smooth(np.concatenate([medial, lateral]))


def pleural_cavity(anatomy: Anatomy, side: int) -> Points:
    """The closed outline of one lung field, behind heart and mediastinum up to the midline."""
    return np.concatenate([wall(anatomy, side), diaphragm(anatomy, side)])


def lung_place(anatomy: Anatomy, side: int, across: float, down: float) -> tuple[float, float]:
    """A place in a lung: ``across`` from the hilum's side (0) to the wall (1), ``down`` from apex to dome."""
    height = anatomy.apex + down * (anatomy.dome_of(side) - anatomy.apex)
    heart = anatomy.heart_width * anatomy.half_width * (0.75 if side == RIGHT else 1.15)
    inner = float(np.interp(down, [0.0, 0.35, 0.6, 1.0], [0.045, 0.06, 0.075, heart]))
    outer = float(anatomy.edge(height, side))
    return 0.5 + side * (inner + across * (outer - inner)), height


def body_contour(anatomy: Anatomy) -> Points:
    """The skin: neck, shoulders, flanks and the bottom of the film."""
    fat = 0.024 + 0.072 * anatomy.habitus
    flank = anatomy.half_width + fat
    half = [
        (anatomy.neck, -0.30),
        (anatomy.neck, -0.04),
        (anatomy.neck + 0.014, 0.02),
        (anatomy.neck + 0.055, 0.062),
        (0.22, anatomy.shoulder - 0.014),
        (0.32, anatomy.shoulder + 0.002),
        (0.42, anatomy.shoulder + 0.035),
        (0.47, anatomy.shoulder + 0.10),
        (0.475, 0.28),
        (max(flank, 0.40) + 0.010, 0.38),
        (flank + 0.004, 0.50),
        (flank, 0.64),
        (flank - 0.006, 0.82),
        (flank - 0.004, 1.10),
        (flank - 0.004, 1.40),
    ]
    right = [(0.5 - x, y) for x, y in half]
    left = [(0.5 + x, y) for x, y in half[::-1]]
    return smooth_closed(left + right)
