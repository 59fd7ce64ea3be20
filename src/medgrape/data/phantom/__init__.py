"""Chest films drawn from scratch, with every lesion known to the pixel.

``plan`` decides who is filmed and what they have; ``draw`` draws one film of the plan. Both depend on nothing but their
arguments. Drawn films are for trying methods and say nothing about patients.
"""

from medgrape.data.phantom.cohort import plan
from medgrape.data.phantom.film import Device, Lesion, PhantomFilm, draw
from medgrape.data.phantom.profile import PROFILES, Profile
from medgrape.data.phantom.shortcut import Shortcut
from medgrape.data.phantom.sitting import Sitting
from medgrape.data.phantom.statistics import Baseline

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
