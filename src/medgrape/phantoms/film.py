"""Drawing one film, and what is known about it because it was drawn."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, UInt8

from medgrape.geometry import Box
from medgrape.phantoms.anatomy import Anatomy, Sitting, examine
from medgrape.phantoms.canvas import keep_memory
from medgrape.phantoms.chest import Chest, build
from medgrape.phantoms.devices import DEVICES, OF_THE_PATIENT
from medgrape.phantoms.exposure import expose
from medgrape.phantoms.findings import CHANGES, DRAWERS
from medgrape.phantoms.findings.base import Site
from medgrape.phantoms.profile import PROFILES
from medgrape.phantoms.sites import choose_site, contrast_of

DEVICE_VISIBLE = 0.25  # share of its densest part down to which a pixel belongs to a device


@dataclass(frozen=True)
class Lesion:
    """One drawn finding; ``concept`` is None where the profile has no word for it."""

    concept: str | None
    finding: str
    mask: Bool[np.ndarray, "size size"]
    box: Box


@dataclass(frozen=True)
class Device:
    """One thing on the film that is no disease."""

    name: str
    mask: Bool[np.ndarray, "size size"]
    box: Box


@dataclass(frozen=True)
class PhantomFilm:
    """A drawn film as displayed, dense is bright, with all its lesions and devices."""

    sitting: Sitting
    pixels: UInt8[np.ndarray, "size size"]
    lesions: tuple[Lesion, ...]
    devices: tuple[Device, ...]


@dataclass(frozen=True)
class _Mention:
    """One entry of a sitting's findings, with the contrast it shows on this visit."""

    finding: str
    number: int
    contrast: float


def draw(sitting: Sitting, size: int = 224) -> PhantomFilm:
    """Draw the film of a sitting, ``size`` pixels square; the same arguments give the same film."""
    keep_memory()
    mentions = _mentions(sitting)
    chest = build(sitting, _changed(sitting, mentions), size)
    lesions = _lesions(chest, sitting, mentions)
    devices = tuple(_device(chest, sitting, name) for name in sitting.devices)
    pixels = expose(chest.canvas, chest.attenuation(), sitting)
    return PhantomFilm(sitting, pixels, lesions, devices)


def _mentions(sitting: Sitting) -> list[_Mention]:
    """Number lesions of the same kind; each keeps its contrast between visits, give or take."""
    seen: Counter[str] = Counter()
    mentions = []
    for finding in sitting.findings:
        lasting = contrast_of(finding, sitting.patient_chance("contrast", finding, seen[finding]))
        spread = 0.02 if finding == "cardiomegaly" else 0.12
        today = sitting.visit_chance("contrast", finding, seen[finding]).uniform(1 - spread, 1 + spread)
        mentions.append(_Mention(finding, seen[finding], lasting * float(today)))
        seen[finding] += 1
    return mentions


def _changed(sitting: Sitting, mentions: list[_Mention]) -> Anatomy:
    """The anatomy after those findings that change it: heart size, inflation, congestion."""
    anatomy = examine(sitting)
    for mention in mentions:
        if mention.finding in CHANGES:
            random = sitting.patient_chance("lesion", mention.finding, mention.number)
            anatomy = CHANGES[mention.finding](anatomy, mention.contrast, random)
    return anatomy


def _lesions(chest: Chest, sitting: Sitting, mentions: list[_Mention]) -> tuple[Lesion, ...]:
    """All lesions of a film, each beside the earlier ones where there is room."""
    sites: list[Site] = []
    lesions = []
    for mention in mentions:
        random = sitting.patient_chance("lesion", mention.finding, mention.number)
        site = choose_site(mention.finding, chest.anatomy, mention.contrast, random, sites)
        mask = DRAWERS[mention.finding](chest, site, random)
        concept = PROFILES[sitting.profile].concept_of.get(mention.finding)
        lesions.append(Lesion(concept, mention.finding, mask, Box.around(mask)))
        sites.append(site)
    return tuple(lesions)


def _device(chest: Chest, sitting: Sitting, name: str) -> Device:
    lasting = name in OF_THE_PATIENT
    random = sitting.patient_chance("device", name) if lasting else sitting.visit_chance("device", name)
    layer = DEVICES[name](chest.canvas, chest.anatomy, random)
    chest.dense = chest.dense + layer
    mask = np.asarray(layer > DEVICE_VISIBLE * float(layer.max()))
    return Device(name, mask, Box.around(mask))
