"""Who comes, how often and with what: the plan of a data set, before anything is drawn."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from medgrape.data.phantom.cohort_nih import nih_visits
from medgrape.data.phantom.cohort_tb import tb_visits
from medgrape.data.phantom.devices import OF_THE_PATIENT
from medgrape.data.phantom.profile import PROFILES
from medgrape.data.phantom.shortcut import Shortcut, planted
from medgrape.data.phantom.sitting import Sitting

VISITS: dict[str, Callable[[int, int], Iterator[Sitting]]] = {"tb": tb_visits, "nih": nih_visits}

# Shares of films with each thing that is no disease: on PA films and on the AP films of the bedridden.
# They depend on nothing else, so that none of them gives away a class.
DEVICE_SHARES = {
    "marker": (0.65, 0.75),
    "nipple_shadows": (0.06, 0.04),
    "ecg_leads": (0.04, 0.40),
    "central_line": (0.02, 0.25),
    "sternal_wires": (0.03, 0.06),
    "pacemaker": (0.03, 0.05),
}


def plan(profile: str, films: int, seed: int, shortcut: Shortcut | None = None) -> tuple[Sitting, ...]:
    """Decide ``films`` sittings, patient by patient; a longer plan begins with the shorter one."""
    if profile not in PROFILES:
        raise ValueError(f"There is no profile {profile!r}; choose one of {', '.join(PROFILES)}.")
    if shortcut is not None:
        shortcut.check(PROFILES[profile])
    sittings: list[Sitting] = []
    patient = 0
    while len(sittings) < films:
        sittings.extend(_equipped(sitting, shortcut) for sitting in VISITS[profile](seed, patient))
        patient += 1
    return tuple(sittings[:films])


def _equipped(sitting: Sitting, shortcut: Shortcut | None) -> Sitting:
    """The sitting with its devices."""
    bedridden = sitting.view == "AP"
    lasting = sitting.patient_chance("devices").random(len(DEVICE_SHARES))
    passing = sitting.visit_chance("devices").random(len(DEVICE_SHARES))
    devices = [
        device
        for place, (device, shares) in enumerate(DEVICE_SHARES.items())
        if _drawn(lasting, passing, place, device) < shares[bedridden]
    ]
    if shortcut is None:
        return replace(sitting, devices=tuple(devices))
    others = [device for device in devices if device != shortcut.device]
    carries = planted(sitting, PROFILES[sitting.profile], shortcut)
    return replace(sitting, devices=(*others, shortcut.device) if carries else tuple(others), has_shortcut=carries)


def _drawn(lasting: np.ndarray, passing: np.ndarray, place: int, device: str) -> float:
    return float(lasting[place] if device in OF_THE_PATIENT else passing[place])
