"""Synthetic chest films, with the exact mask of every lesion.

``plan`` makes a list of exams: patients, visits and findings; ``draw`` draws the film of one exam. Both depend on their
arguments alone. Drawn films are for testing methods and say nothing about patients.
"""

from medgrape.phantoms.anatomy import Exam
from medgrape.phantoms.cohort import PROFILES, Profile, Shortcut, plan
from medgrape.phantoms.film import Device, Lesion, PhantomFilm, draw

__all__ = ["PROFILES", "Device", "Exam", "Lesion", "PhantomFilm", "Profile", "Shortcut", "draw", "plan"]
