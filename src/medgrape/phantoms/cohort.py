"""The plan of a drawn data set: patients, visits, findings and devices."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from medgrape.phantoms.anatomy import Exam, random_stream
from medgrape.phantoms.devices import PERMANENT_DEVICES, Shortcut, carries_shortcut
from medgrape.phantoms.profile import PROFILES, NihStatistics, nih_statistics


def nih_visits(seed: int, patient: int) -> Iterator[Exam]:
    """Yield all exams of one patient."""
    counted = nih_statistics()
    random = random_stream(seed, "nih", patient, "history")
    sex: Literal["M", "F"] = "F" if random.random() < counted.female_share else "M"
    ages = counted.age_quantiles[sex]
    age = float(np.interp(random.random(), np.linspace(0, 1, len(ages)), ages))
    visits = 1 + int(random.choice(len(counted.films_per_patient), p=counted.films_per_patient))
    findings: tuple[str, ...] = ()
    for visit in range(visits):
        if visit == 0 or random.random() >= counted.kept:
            findings = _label_set(counted, random)
        ap_share = counted.ap_shares[min(len(findings), len(counted.ap_shares) - 1)]
        yield Exam(
            profile="nih",
            seed=seed,
            patient=patient,
            visit=visit,
            sex=sex,
            age=int(age) + visit // 4,
            view="AP" if random.random() < ap_share else "PA",
            class_name="finding" if findings else "no_finding",
            findings=findings,
            concepts=findings,
            devices=(),
        )


def _label_set(counted: NihStatistics, random: np.random.Generator) -> tuple[str, ...]:
    place = random.choice(len(counted.label_sets), p=counted.label_set_shares)
    return counted.named(int(counted.label_sets[place]))


CLASS_SHARES = (0.36, 0.32, 0.32)
VISIT_SHARES = (0.72, 0.19, 0.09)  # one, two or three films
LESION_SHARES = (0.54, 0.32, 0.14)  # one, two or three lesions of a concept
AP_SHARE = 0.15
# Which of active, obsolete and pulmonary disease a TB patient has
CONCEPT_SETS = {
    ("active_tb",): 0.34,
    ("obsolete_tb",): 0.10,
    ("pulmonary_tb",): 0.16,
    ("active_tb", "obsolete_tb"): 0.13,
    ("active_tb", "pulmonary_tb"): 0.15,
    ("obsolete_tb", "pulmonary_tb"): 0.05,
    ("active_tb", "obsolete_tb", "pulmonary_tb"): 0.07,
}
OTHER_DISEASE = {
    "effusion": 0.18,
    "cardiomegaly": 0.15,
    "basal_pneumonia": 0.15,
    "pneumothorax": 0.11,
    "mass": 0.12,
    "edema": 0.09,
    "atelectasis": 0.05,
    "emphysema": 0.05,
    "fibrosis": 0.06,
    "hernia": 0.04,
}


def tb_visits(seed: int, patient: int) -> Iterator[Exam]:
    """Yield all exams of one patient; the disease stays the same, its contrast varies a little."""
    profile = PROFILES["tb"]
    random = random_stream(seed, "tb", patient, "history")
    class_name = profile.classes[random.choice(len(profile.classes), p=CLASS_SHARES)]
    findings = _disease(class_name, random)
    sex: Literal["M", "F"] = "F" if random.random() < 0.45 else "M"
    age = int(random.triangular(16, 38, 86))
    for visit in range(1 + int(random.choice(len(VISIT_SHARES), p=VISIT_SHARES))):
        yield Exam(
            profile="tb",
            seed=seed,
            patient=patient,
            visit=visit,
            sex=sex,
            age=age + visit // 2,
            view="AP" if random.random() < AP_SHARE else "PA",
            class_name=class_name,
            findings=findings,
            concepts=profile.concepts_in(findings),
            devices=(),
        )


def _disease(class_name: str, random: np.random.Generator) -> tuple[str, ...]:
    """The findings of a patient of a class."""
    if class_name == "active_tb":
        return _tuberculosis(random)
    if class_name == "sick_non_tb":
        names, shares = list(OTHER_DISEASE), np.array(list(OTHER_DISEASE.values()))
        count = 1 + int(random.random() < 0.4)
        return tuple(random.choice(names, count, replace=False, p=shares / shares.sum()).tolist())
    return ()


def _tuberculosis(random: np.random.Generator) -> tuple[str, ...]:
    """One to three lesions of each concept of a patient."""
    concepts = list(CONCEPT_SETS)[random.choice(len(CONCEPT_SETS), p=list(CONCEPT_SETS.values()))]
    findings: list[str] = []
    for concept in concepts:
        count = 1 + int(random.choice(len(LESION_SHARES), p=LESION_SHARES))
        findings += random.choice(PROFILES["tb"].findings_of(concept), count).tolist()
    return tuple(findings)


VISITS: dict[str, Callable[[int, int], Iterator[Exam]]] = {"tb": tb_visits, "nih": nih_visits}
# Share of PA films and of AP films (bedridden patients) with each device. It depends on nothing else, so that no
# device reveals the class.
DEVICE_SHARES = {
    "marker": (0.65, 0.75),
    "nipple_shadows": (0.06, 0.04),
    "ecg_leads": (0.04, 0.40),
    "central_line": (0.02, 0.25),
    "sternal_wires": (0.03, 0.06),
    "pacemaker": (0.03, 0.05),
}


def plan(profile: str, films: int, seed: int, shortcut: Shortcut | None = None) -> tuple[Exam, ...]:
    """Return ``films`` exams, patient by patient; a longer plan begins with the shorter one."""
    if profile not in PROFILES:
        raise ValueError(f"There is no profile {profile!r}; choose one of {', '.join(PROFILES)}.")
    if shortcut is not None:
        shortcut.check(PROFILES[profile])
    exams: list[Exam] = []
    patient = 0
    while len(exams) < films:
        exams.extend(_with_devices(exam, shortcut) for exam in VISITS[profile](seed, patient))
        patient += 1
    return tuple(exams[:films])


def _with_devices(exam: Exam, shortcut: Shortcut | None) -> Exam:
    """The exam with its devices."""
    bedridden = exam.view == "AP"
    lasting = exam.patient_random("devices").random(len(DEVICE_SHARES))
    passing = exam.visit_random("devices").random(len(DEVICE_SHARES))
    devices = [
        device
        for place, (device, shares) in enumerate(DEVICE_SHARES.items())
        if _drawn(lasting, passing, place, device) < shares[bedridden]
    ]
    if shortcut is None:
        return replace(exam, devices=tuple(devices))
    others = [device for device in devices if device != shortcut.device]
    carries = carries_shortcut(exam, PROFILES[exam.profile], shortcut)
    return replace(exam, devices=(*others, shortcut.device) if carries else tuple(others), has_shortcut=carries)


def _drawn(lasting: np.ndarray, passing: np.ndarray, place: int, device: str) -> float:
    return float(lasting[place] if device in PERMANENT_DEVICES else passing[place])
