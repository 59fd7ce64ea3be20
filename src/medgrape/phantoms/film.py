"""Drawing the film of one exam with its lesions, devices, masks and boxes, and exposing it to grey values."""

from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Bool, UInt8

from medgrape.geometry import Box
from medgrape.phantoms.anatomy import Exam, anatomy_of
from medgrape.phantoms.canvas import Canvas, Layer, keep_memory
from medgrape.phantoms.chest import Chest, build
from medgrape.phantoms.cohort import PROFILES
from medgrape.phantoms.devices import DEVICES, PERMANENT_DEVICES
from medgrape.phantoms.findings import FINDINGS
from medgrape.phantoms.findings.base import Site, choose_site, contrast_of

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
    anatomy = anatomy_of(exam)
    for lesion in planned:  # heart size, inflation, congestion
        change = FINDINGS[lesion.finding].changes
        if change is not None:
            anatomy = change(anatomy, lesion.contrast, exam.patient_random("lesion", lesion.finding, lesion.number))
    chest = build(exam, anatomy, size)
    lesions, sites = list[Lesion](), list[Site]()
    for lesion in planned:
        random = exam.patient_random("lesion", lesion.finding, lesion.number)
        # a lesion avoids the earlier ones where there is room
        sites.append(choose_site(lesion.finding, anatomy, lesion.contrast, random, sites))
        mask = FINDINGS[lesion.finding].draw(chest, sites[-1], random)
        concept = PROFILES[exam.profile].concept_of.get(lesion.finding)
        lesions.append(Lesion(concept, lesion.finding, mask, Box.around(mask)))
    devices = tuple(_draw_device(chest, exam, name) for name in exam.devices)
    pixels = expose(chest.canvas, chest.attenuation(), exam)
    return PhantomFilm(exam, pixels, tuple(lesions), devices)


def _planned_lesions(exam: Exam) -> list[_PlannedLesion]:
    """The lesions of an exam; each has about the same contrast on all visits."""
    planned = []
    for place, finding in enumerate(exam.findings):
        number = exam.findings[:place].count(finding)
        lasting = contrast_of(finding, exam.patient_random("contrast", finding, number))
        spread = 0.02 if finding == "cardiomegaly" else 0.12
        today = exam.visit_random("contrast", finding, number).uniform(1 - spread, 1 + spread)
        planned.append(_PlannedLesion(finding, number, lasting * float(today)))
    return planned


def _draw_device(chest: Chest, exam: Exam, name: str) -> Device:
    lasting = name in PERMANENT_DEVICES
    random = exam.patient_random("device", name) if lasting else exam.visit_random("device", name)
    layer = DEVICES[name](chest.canvas, chest.anatomy, random)
    chest.shade(layer, 1.0)
    mask = np.asarray(layer > DEVICE_VISIBLE * float(layer.max()))
    return Device(name, mask, Box.around(mask))


def expose(canvas: Canvas, attenuation: Layer, exam: Exam) -> UInt8[np.ndarray, "size size"]:
    """Return the film in 8 bits: scatter, window, display curve and noise."""
    random = exam.visit_random("exposure")
    portable = exam.view == "AP"
    scatter = canvas.soften(attenuation, 0.06)
    veil = random.uniform(0.08, 0.16) + 0.06 * portable
    image = (1 - veil) * attenuation + veil * scatter
    low = random.normal(0.06, 0.025)
    high = random.normal(1.16, 0.07)
    latitude = random.normal(1.0, 0.14)
    window = np.clip((image - low) / (high - low), 0, None)
    # linear in the lungs, with a soft shoulder where mediastinum and abdomen would saturate
    bent = cv2.pow(window, float(1.05 * latitude))
    curve = np.asarray((1 - cv2.exp(bent * (-1.1 - 1.25 * bent))) * np.float32(1 / 0.905))
    # a stream of its own: how much of it is drawn depends on the film's size, and nothing else may
    grain = _grain(canvas, exam.visit_random("grain"), 0.007 + 0.003 * portable)
    # few photons get through the dense parts, so they are noisier
    curve += grain * (0.6 + 0.8 * curve)
    black, white = random.uniform(0.0, 0.03), random.uniform(0.90, 0.97)
    pixels = np.clip(255 * (black + (white - black) * curve), 0, 255).astype(np.uint8)
    # on some films the beam ended before the edge, which leaves a dark margin
    margins = random.uniform(-0.02, 0.03, 4) * (random.random() < 0.3)
    top, right, bottom, left = np.clip(np.round(margins * len(pixels)), 0, None).astype(int).tolist()
    film = np.zeros_like(pixels)
    inside = slice(top, len(pixels) - bottom), slice(left, len(pixels) - right)
    film[inside] = pixels[inside]
    return film


def _grain(canvas: Canvas, random: np.random.Generator, strength: float) -> Layer:
    """Quantum noise, correlated over about a 500th of the film at every size."""
    cells = min(canvas.size, 512)
    # uniform noise of standard deviation 1: the blur makes it nearly Gaussian, faster than drawing Gaussian noise
    noise = (random.random((cells, cells), np.float32) - np.float32(0.5)) * np.float32(12**0.5)
    sheet = cv2.GaussianBlur(noise, (3, 3), 0.6)
    if cells != canvas.size:
        sheet = cv2.resize(sheet, (canvas.size, canvas.size), interpolation=cv2.INTER_CUBIC)
    return np.asarray(sheet * np.float32(strength * 2.0), np.float32)
