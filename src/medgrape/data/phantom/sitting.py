"""One visit of one patient to the X-ray room, decided before anything is drawn."""

import zlib
from dataclasses import dataclass
from typing import Literal

import numpy as np


@dataclass(frozen=True)
class Sitting:
    """Who is filmed, how, and what the film must show.

    ``findings`` may name a finding more than once: each mention is a lesion of its own.
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
        """The same for every film of a patient, and of nobody else drawn with another seed."""
        cohort = self.profile if self.seed == 0 else f"{self.profile}{self.seed}"
        return f"{cohort}-{self.patient:06d}"

    @property
    def film_id(self) -> str:
        """Patient and visit."""
        return f"{self.patient_id}-{self.visit:02d}"

    def patient_chance(self, *topic: str | int) -> np.random.Generator:
        """Chance that falls the same way on every film of this patient."""
        return chance(self.seed, self.profile, self.patient, *topic)

    def visit_chance(self, *topic: str | int) -> np.random.Generator:
        """Chance of this one film."""
        return chance(self.seed, self.profile, self.patient, "visit", self.visit, *topic)


def chance(seed: int, *topic: str | int) -> np.random.Generator:
    """A generator that depends on nothing but its arguments.

    Every topic has a stream of its own, so that leaving out one finding moves no other line of the film.
    """
    words = [zlib.crc32(word.encode()) if isinstance(word, str) else word for word in topic]
    return np.random.default_rng([seed, *words])
