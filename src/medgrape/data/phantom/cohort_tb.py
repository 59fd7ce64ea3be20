"""Patients of the ``tb`` profile.

Sex, age and view are drawn alike for every class: nothing but the lesions tells the classes apart.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from medgrape.data.phantom.profile import PROFILES
from medgrape.data.phantom.sitting import Sitting, chance

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


def tb_visits(seed: int, patient: int) -> Iterator[Sitting]:
    """All films of one patient; the disease stays, its density changes a little from film to film."""
    profile = PROFILES["tb"]
    random = chance(seed, "tb", patient, "history")
    class_name = profile.classes[random.choice(len(profile.classes), p=CLASS_SHARES)]
    findings = _disease(class_name, random)
    sex: Literal["M", "F"] = "F" if random.random() < 0.45 else "M"
    age = int(random.triangular(16, 38, 86))
    for visit in range(1 + int(random.choice(len(VISIT_SHARES), p=VISIT_SHARES))):
        yield Sitting(
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
    """What a patient of a class has; nothing for the healthy."""
    if class_name == "active_tb":
        return _tuberculosis(random)
    if class_name == "sick_non_tb":
        names, shares = list(OTHER_DISEASE), np.array(list(OTHER_DISEASE.values()))
        count = 1 + int(random.random() < 0.4)
        return tuple(random.choice(names, count, replace=False, p=shares / shares.sum()).tolist())
    return ()


def _tuberculosis(random: np.random.Generator) -> tuple[str, ...]:
    """One to three lesions of each concept that the patient has."""
    concepts = list(CONCEPT_SETS)[random.choice(len(CONCEPT_SETS), p=list(CONCEPT_SETS.values()))]
    findings: list[str] = []
    for concept in concepts:
        count = 1 + int(random.choice(len(LESION_SHARES), p=LESION_SHARES))
        findings += random.choice(PROFILES["tb"].findings_of(concept), count).tolist()
    return tuple(findings)
