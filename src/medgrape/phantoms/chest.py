"""The healthy chest of one exam as layers, which findings and devices then modify."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from medgrape.phantoms import soft_tissue
from medgrape.phantoms.anatomy import LEFT, RIGHT, SIDES, Anatomy, Exam
from medgrape.phantoms.bones import cartilages, pleural_cavity, skeleton
from medgrape.phantoms.canvas import Canvas, Layer
from medgrape.phantoms.soft_tissue import draw_vessels

# How much each tissue adds to the trunk's own thickness of 1
AIR, HEART, BONE = 0.58, 0.02, 0.150
VESSEL, HILUM, BREAST, GAS, AIRWAY, CALCIUM = 0.120, 0.15, 0.15, 0.24, 0.085, 0.12
BEHIND_HEART = 0.20  # share of the lung's air that shows through


@dataclass
class Chest:
    """Layers of one film while it is being drawn.

    ``air`` and ``vessels`` belong to the lungs and are removed where they are displaced; ``dense`` is everything that
    adds to the shadow; ``field`` is the visible lung, 0 to 1.
    """

    canvas: Canvas
    anatomy: Anatomy
    field: Layer
    cavities: dict[int, Layer]
    heart: Layer
    air: Layer
    vessels: Layer
    tissue: Layer
    dense: Layer
    clouds: Layer

    def attenuation(self) -> Layer:
        """Return the total attenuation of the beam."""
        return np.asarray(self.tissue - AIR * self.air + VESSEL * self.vessels + self.dense)

    def cavity(self) -> Layer:
        """Return both pleural cavities."""
        return np.asarray(np.maximum(self.cavities[RIGHT], self.cavities[LEFT]))


def build(exam: Exam, anatomy: Anatomy, size: int) -> Chest:
    """Draw the chest without any finding."""
    canvas = Canvas(size, anatomy.pose)
    heart = canvas.soften(canvas.fill(soft_tissue.heart(anatomy)), 0.0035)
    vessels_above = canvas.soften(canvas.fill(*soft_tissue.great_vessels(anatomy)), 0.0065)
    below = canvas.soften(soft_tissue.abdomen(canvas, anatomy), 0.0028)
    cavities = {side: canvas.soften(canvas.fill(pleural_cavity(anatomy, side)), 0.0035) for side in SIDES}
    solid = np.maximum(heart, vessels_above)
    cavity = np.maximum(cavities[RIGHT], cavities[LEFT])
    field = cavity * (1 - solid) * (1 - below)
    clouds = canvas.texture(exam.patient_random("parenchyma"), octaves=5)
    air = soft_tissue.air(canvas, cavity) * (1 - below) * (1 - (1 - BEHIND_HEART) * solid)
    air *= (1 + 0.034 * clouds) * _thin_apex(canvas, anatomy)
    vessels = draw_vessels(canvas, anatomy, exam.patient_random("vessels")) * (0.35 + 0.65 * field) * cavity
    tissue = _tissue(canvas, anatomy, clouds)
    # no bone outside the skin, and less to see of it where the shadow is dense already
    faded = np.minimum(5 * tissue, 1) * (1 - 0.45 * np.maximum(below, 0.9 * solid))
    return Chest(
        canvas=canvas,
        anatomy=anatomy,
        field=field,
        cavities=cavities,
        heart=heart,
        air=air,
        vessels=vessels * (1 - 0.9 * below),
        tissue=tissue,
        dense=_bones(canvas, anatomy, exam) * faded + _middle(canvas, anatomy, heart, below, exam),
        clouds=clouds,
    )


def _thin_apex(canvas: Canvas, anatomy: Anatomy) -> Float32[np.ndarray, "size 1"]:
    """Depth of air by row: the apex is thin from front to back, so it holds less air."""
    rows = (np.arange(canvas.size) + 0.5) / canvas.size
    depth = np.interp(rows, [anatomy.apex, anatomy.apex + 0.06, anatomy.apex + 0.20], [0.58, 0.80, 1.0])
    return depth.astype(np.float32)[:, None]


def _tissue(canvas: Canvas, anatomy: Anatomy, clouds: Layer) -> Layer:
    trunk = soft_tissue.body(canvas, anatomy)
    folds = soft_tissue.breasts(canvas, anatomy)
    return np.asarray(trunk * (1 + 0.012 * clouds) + BREAST * folds * (0.5 + anatomy.breast), np.float32)


def _bones(canvas: Canvas, anatomy: Anatomy, exam: Exam) -> Layer:
    bones = (BONE * anatomy.bone) * skeleton(canvas, anatomy)
    if anatomy.calcified_cartilage > 0.15:
        bones += CALCIUM * cartilages(canvas, anatomy, exam.patient_random("cartilage"))
    return bones


def _middle(canvas: Canvas, anatomy: Anatomy, heart: Layer, below: Layer, exam: Exam) -> Layer:
    return np.asarray(
        HEART * canvas.soften(heart, 0.02) * heart
        + HILUM * soft_tissue.hila(canvas, anatomy, exam.patient_random("hila")) * (1 - 0.75 * heart)
        - AIRWAY * soft_tissue.airways(canvas, anatomy)
        - GAS * soft_tissue.gas(canvas, anatomy, exam.visit_random("gas")) * below,
        np.float32,
    )
