"""Drawing the film of one exam, with the masks and boxes of its lesions and devices."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, UInt8

from medgrape.geometry import Box
from medgrape.phantoms.anatomy import Anatomy, Exam, anatomy_of
from medgrape.phantoms.canvas import keep_memory
from medgrape.phantoms.chest import Chest, build
from medgrape.phantoms.devices import DEVICES, PERMANENT_DEVICES
from medgrape.phantoms.exposure import expose
from medgrape.phantoms.findings import ANATOMY_CHANGES, DRAWERS
from medgrape.phantoms.findings.base import Site
from medgrape.phantoms.profile import PROFILES
from medgrape.phantoms.sites import choose_site, contrast_of

DEVICE_VISIBLE = 0.25  # share of its densest part down to which a pixel belongs to a device


@dataclass(frozen=True)
class Lesion:
    """One drawn finding; ``concept`` is None where the profile has no concept for it."""

    concept: str | None
    finding: str
    mask: Bool[np.ndarray, "size size"]
    box: Box


@dataclass(frozen=True)
class Device:
    """One drawn device."""

    name: str
    mask: Bool[np.ndarray, "size size"]
    box: Box


@dataclass(frozen=True)
class PhantomFilm:
    """A drawn film (dense is bright) with all its lesions and devices."""

    exam: Exam
    pixels: UInt8[np.ndarray, "size size"]
    lesions: tuple[Lesion, ...]
    devices: tuple[Device, ...]


@dataclass(frozen=True)
class _PlannedLesion:
    """One finding of an exam, with its number among those of the same kind and its contrast on this visit."""

    finding: str
    number: int
    contrast: float


def draw(exam: Exam, size: int = 224) -> PhantomFilm:
    """Draw the film of an exam, ``size`` pixels square; the same arguments give the same film."""
    keep_memory()
    planned = _planned_lesions(exam)
    chest = build(exam, _changed_anatomy(exam, planned), size)
    lesions = _lesions(chest, exam, planned)
    devices = tuple(_device(chest, exam, name) for name in exam.devices)
    pixels = expose(chest.canvas, chest.attenuation(), exam)
    return PhantomFilm(exam, pixels, lesions, devices)


def _planned_lesions(exam: Exam) -> list[_PlannedLesion]:
    """The lesions of an exam; each has about the same contrast on all visits."""
    seen: Counter[str] = Counter()
    planned = []
    for finding in exam.findings:
        lasting = contrast_of(finding, exam.patient_random("contrast", finding, seen[finding]))
        spread = 0.02 if finding == "cardiomegaly" else 0.12
        today = exam.visit_random("contrast", finding, seen[finding]).uniform(1 - spread, 1 + spread)
        planned.append(_PlannedLesion(finding, seen[finding], lasting * float(today)))
        seen[finding] += 1
    return planned


def _changed_anatomy(exam: Exam, planned: list[_PlannedLesion]) -> Anatomy:
    """The anatomy with the changes that findings cause: heart size, inflation, congestion."""
    anatomy = anatomy_of(exam)
    for lesion_plan in planned:
        if lesion_plan.finding in ANATOMY_CHANGES:
            random = exam.patient_random("lesion", lesion_plan.finding, lesion_plan.number)
            anatomy = ANATOMY_CHANGES[lesion_plan.finding](anatomy, lesion_plan.contrast, random)
    return anatomy


def _lesions(chest: Chest, exam: Exam, planned: list[_PlannedLesion]) -> tuple[Lesion, ...]:
    """Draw all lesions; a lesion avoids the earlier ones where there is room."""
    sites: list[Site] = []
    lesions = []
    for lesion_plan in planned:
        random = exam.patient_random("lesion", lesion_plan.finding, lesion_plan.number)
        site = choose_site(lesion_plan.finding, chest.anatomy, lesion_plan.contrast, random, sites)
        mask = DRAWERS[lesion_plan.finding](chest, site, random)
        concept = PROFILES[exam.profile].concept_of.get(lesion_plan.finding)
        lesions.append(Lesion(concept, lesion_plan.finding, mask, Box.around(mask)))
        sites.append(site)
    return tuple(lesions)


def _device(chest: Chest, exam: Exam, name: str) -> Device:
    lasting = name in PERMANENT_DEVICES
    random = exam.patient_random("device", name) if lasting else exam.visit_random("device", name)
    layer = DEVICES[name](chest.canvas, chest.anatomy, random)
    chest.dense = chest.dense + layer
    mask = np.asarray(layer > DEVICE_VISIBLE * float(layer.max()))
    return Device(name, mask, Box.around(mask))
