"""One exam of one patient, and the measurements of the patient's chest in it.

Lengths are fractions of the film's side; heights count downwards. ``side`` is -1 for the patient's right lung, which is
on the film's left, and +1 for the left lung.
"""

import zlib
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from medgrape.phantoms.canvas import Pose


@dataclass(frozen=True)
class Exam:
    """One visit of one patient: how the film is taken, and what it must show.

    ``findings`` may contain a finding more than once; each is a separate lesion.
    """

    profile: str
    seed: int
    patient: int
    visit: int
    sex: Literal["M", "F"]
    age: int
    view: Literal["PA", "AP"]
    class_name: str
    findings: tuple[str, ...]
    concepts: tuple[str, ...]
    devices: tuple[str, ...]
    has_shortcut: bool = False

    @property
    def patient_id(self) -> str:
        """Identifier of the patient, which also depends on the seed."""
        cohort = self.profile if self.seed == 0 else f"{self.profile}{self.seed}"
        return f"{cohort}-{self.patient:06d}"

    @property
    def film_id(self) -> str:
        """Identifier of the film: patient and visit."""
        return f"{self.patient_id}-{self.visit:02d}"

    def patient_random(self, *topic: str | int) -> np.random.Generator:
        """Return a generator that is the same for every film of this patient."""
        return random_stream(self.seed, self.profile, self.patient, *topic)

    def visit_random(self, *topic: str | int) -> np.random.Generator:
        """Return a generator for this film alone."""
        return random_stream(self.seed, self.profile, self.patient, "visit", self.visit, *topic)


def random_stream(seed: int, *topic: str | int) -> np.random.Generator:
    """Return a random generator that depends on its arguments alone.

    Every topic has its own stream, so that leaving out one finding changes nothing else on the film.
    """
    words = [zlib.crc32(word.encode()) if isinstance(word, str) else word for word in topic]
    return np.random.default_rng([seed, *words])


RIGHT, LEFT = -1, 1
SIDES = (RIGHT, LEFT)
Heights = float | Float[np.ndarray, "*n"]


@dataclass(frozen=True)
class Anatomy:
    """Measurements from which the healthy chest is drawn."""

    female: bool
    ap: bool
    half_width: float  # midline to the inner chest wall at its widest
    apex: float  # height of the lung's top
    angle: float  # height of the costophrenic angles
    dome: tuple[float, float]  # heights of the right and left diaphragm
    asymmetry: float  # right half of the chest wider than the left
    habitus: float  # 0 thin to 1 heavy
    breast: float  # 0 none to 1 large
    scoliosis: float
    rib_drop: float  # how steeply the ribs fall from back to front
    rib_pitch: float
    rib_width: float
    bone: float  # mineral density
    calcified_cartilage: float
    clavicle_rise: float
    scapula_in: float  # how far the shoulder blades lie over the lungs
    shoulder: float  # height of the shoulders
    neck: float
    heart_width: float  # cardiothoracic ratio
    heart_tilt: float  # 0 upright drop to 1 lying heart
    knob: float  # radius of the aortic knob
    vascularity: float
    turn: float  # rotation about the long axis, shifts what lies in front
    upright: bool
    pose: Pose

    def edge(self, height: Heights, side: int) -> Float[np.ndarray, "*n"]:
        """Return the distance from the midline to the inner chest wall."""
        share = np.interp((height - self.apex) / (self.angle - self.apex), _OUTLINE_HEIGHT, _OUTLINE_WIDTH)
        return np.asarray(share * self.half_width * (1 - side * self.asymmetry))

    def dome_of(self, side: int) -> float:
        """Return the height of the diaphragm of one side."""
        return self.dome[0] if side == RIGHT else self.dome[1]

    def midline(self, height: Heights) -> Float[np.ndarray, "*n"]:
        """Return the horizontal position of the spine."""
        return np.asarray(0.5 + self.scoliosis * np.sin((np.asarray(height) - 0.1) * 5.0))

    def front(self) -> float:
        """Return the horizontal position of what lies in front: sternum and heart."""
        return 0.5 + 0.05 * self.turn


# Shape of the inner chest wall from the apex (0) to the costophrenic angle (1)
_OUTLINE_HEIGHT = np.array([0.0, 0.02, 0.06, 0.12, 0.2, 0.3, 0.42, 0.55, 0.7, 0.85, 1.0])
_OUTLINE_WIDTH = np.array([0.38, 0.48, 0.58, 0.68, 0.77, 0.845, 0.905, 0.95, 0.98, 1.0, 0.99])


def anatomy_of(exam: Exam) -> Anatomy:
    """Return the anatomy of an exam: the body is drawn once for the patient, breath and position for each visit."""
    body, visit = exam.patient_random("body"), exam.visit_random("position")
    female, ap = exam.sex == "F", exam.view == "AP"
    old = float(np.clip((exam.age - 45) / 40, 0, 1))
    habitus = float(np.clip(body.normal(0.42, 0.22), 0, 1))
    breath = float(visit.normal(0, 0.016 + 0.014 * ap)) - 0.050 * ap
    angle = body.normal(0.770, 0.022)
    dome = angle - body.normal(0.096, 0.012)
    return Anatomy(
        female=female,
        ap=ap,
        half_width=body.normal(0.360 - 0.018 * female, 0.017),
        apex=body.normal(0.125, 0.014),
        angle=angle + 0.7 * breath,
        dome=(dome + breath, dome + body.normal(0.022, 0.009) + breath),
        asymmetry=body.normal(0.005, 0.012),
        habitus=habitus,
        breast=float(female) * float(np.clip(body.normal(0.45 + 0.3 * habitus, 0.22), 0.08, 1)),
        scoliosis=body.normal(0, 0.004 + 0.004 * old),
        rib_drop=body.normal(1.0, 0.10) * (0.92 if ap else 1.0),
        rib_pitch=body.normal(0.0560, 0.0014),
        rib_width=body.normal(0.0225, 0.0016),
        bone=float(np.clip(body.normal(1.0 - 0.22 * old, 0.12), 0.55, 1.3)),
        calcified_cartilage=float(np.clip(body.normal(0.9 * old - 0.15, 0.25), 0, 1)),
        clavicle_rise=body.normal(0.045, 0.018) + 0.015 * ap,
        scapula_in=min(1.0, float(np.clip(body.normal(0.25, 0.2), 0, 0.8)) + 0.4 * ap),
        shoulder=body.normal(0.105, 0.016),
        neck=body.normal(0.082 + 0.014 * habitus, 0.006),
        heart_width=(1.09 if ap else 1.0)
        * float(np.clip(body.normal(0.445 + 0.025 * old + 0.02 * habitus, 0.022), 0.38, 0.505)),
        heart_tilt=float(np.clip(body.normal(0.3 + 0.3 * habitus + 0.2 * old, 0.20), 0, 1)),
        knob=body.normal(0.029 + 0.012 * old, 0.003),
        vascularity=body.normal(1.0, 0.10),
        pose=Pose(
            tilt=float(visit.normal(0, 0.022 + 0.015 * ap)),
            zoom=float(visit.normal(1.05, 0.035)),
            shift=(float(visit.normal(0, 0.014)), float(visit.normal(0.0, 0.020))),
        ),
        turn=float(visit.normal(0, 0.22 + 0.15 * ap)),
        upright=not ap or bool(visit.random() < 0.35),
    )
