"""Chest films drawn from scratch, with every lesion known to the pixel.

``plan`` decides who is filmed and what they have; ``draw`` draws one film of the plan. Both depend on nothing but their
arguments. Drawn films are for trying methods and say nothing about patients.
"""

from medgrape.phantoms.anatomy import Sitting
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.devices import Shortcut
from medgrape.phantoms.film import Device, Lesion, PhantomFilm, draw
from medgrape.phantoms.profile import PROFILES, Baseline, Profile

__all__ = [
    "PROFILES",
    "Baseline",
    "Device",
    "Lesion",
    "PhantomFilm",
    "Profile",
    "Shortcut",
    "Sitting",
    "draw",
    "plan",
]
