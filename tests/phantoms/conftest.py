import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from jaxtyping import Bool

from medgrape.phantoms.anatomy import Exam
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.film import PhantomFilm, draw

GRID = 64

# Hundreds of films are drawn in a process of their own, where no shape is checked and drawing is three times as fast.
DRAW_BOXES = """
import json, sys
from dataclasses import replace
from medgrape.phantoms.film import draw
from medgrape.phantoms.cohort import plan

profile, films, findings, size = sys.argv[1], int(sys.argv[2]), sys.argv[3:], 112
planned = plan(profile, films, seed=11)
firsts = [exam for exam in planned if exam.visit == 0]
posed = [replace(exam, findings=(finding,), devices=()) for finding in findings for exam in firsts]
for exam in posed or [exam for exam in planned if exam.concepts]:
    lesions = draw(exam, size).lesions
    boxes = [(lesion.concept, [edge / size for edge in lesion.box.corners]) for lesion in lesions]
    print(json.dumps([exam.patient, boxes]))
"""


@dataclass(frozen=True)
class DrawnBoxes:
    """The boxes of one film, in unit coordinates."""

    patient: int
    boxes: tuple[tuple[str, tuple[float, float, float, float]], ...]

    def hits(self, concept: str) -> Bool[np.ndarray, "grid grid"]:
        """At which of a grid of points a box of the concept is hit."""
        points = (np.arange(GRID) + 0.5) / GRID
        inside = np.zeros((GRID, GRID), dtype=bool)
        for named, (x1, y1, x2, y2) in self.boxes:
            if named == concept:
                inside |= np.outer((points >= y1) & (points < y2), (points >= x1) & (points < x2))
        return inside


@pytest.fixture(scope="session")
def drawn_boxes() -> Callable[..., tuple[DrawnBoxes, ...]]:
    """Boxes of the first films of a profile that show a concept, or of its patients with each finding in turn."""

    @cache
    def drawn(profile: str, films: int, *findings: str) -> tuple[DrawnBoxes, ...]:
        command = [sys.executable, "-c", DRAW_BOXES, profile, str(films), *findings]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rows = [json.loads(line) for line in printed.splitlines()]
        return tuple(DrawnBoxes(patient, tuple((name, tuple(box)) for name, box in boxes)) for patient, boxes in rows)

    return drawn


@pytest.fixture(scope="session")
def small_films() -> Callable[[str], tuple[PhantomFilm, ...]]:
    """Some films of a profile that show a concept."""

    @cache
    def drawn(profile: str) -> tuple[PhantomFilm, ...]:
        return tuple(draw(exam, 96) for exam in plan(profile, 90, seed=11) if exam.concepts)

    return drawn


@pytest.fixture
def healthy() -> Exam:
    return next(exam for exam in plan("tb", 50, seed=2) if exam.class_name == "healthy")
