"""Who is drawn: profiles, their statistics, and the plan of patients, visits, findings, devices and shortcuts."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import chain, count, islice
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from medgrape.errors import UserError, nearest
from medgrape.phantoms.anatomy import Exam, random_stream
from medgrape.phantoms.devices import DEVICES, PERMANENT_DEVICES

LONGEST_FOLLOW_UP = 20  # films; a few real patients have up to 184, and one would fill a small data set
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
    "effusion": 0.18, "cardiomegaly": 0.15, "basal_pneumonia": 0.15, "pneumothorax": 0.11, "mass": 0.12,
    "edema": 0.09, "atelectasis": 0.05, "emphysema": 0.05, "fibrosis": 0.06, "hernia": 0.04,
}  # fmt: skip
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


@dataclass(frozen=True)
class BoxMixture:
    """Gaussian mixture over centre and log size of the boxes of one finding, in unit coordinates."""

    weights: Float[np.ndarray, " k"]
    means: Float[np.ndarray, "k 4"]
    roots: Float[np.ndarray, "k 4 4"]  # of the covariances

    def draw(self, random: np.random.Generator) -> tuple[float, float, float, float]:
        """Return centre x and y, width and height of a random box."""
        component = random.choice(len(self.weights), p=self.weights)
        x, y, log_width, log_height = self.means[component] + self.roots[component] @ random.standard_normal(4)
        return float(x), float(y), float(np.exp(log_width)), float(np.exp(log_height))


@dataclass(frozen=True)
class NihStatistics:
    """Statistics of the labels, patients and boxes of ChestX-ray14."""

    findings: tuple[str, ...]
    label_sets: Int[np.ndarray, " n"]  # bit masks in the order of ``findings``
    label_set_shares: Float[np.ndarray, " n"]
    films_per_patient: Float[np.ndarray, " longest"]  # share of patients with 1, 2, ... films
    same_findings_share: float  # of visits whose findings are those of the visit before
    female_share: float
    age_quantiles: Mapping[str, tuple[float, ...]]
    ap_shares: tuple[float, ...]
    boxes: Mapping[str, BoxMixture]


@cache
def nih_statistics() -> NihStatistics:
    """Return the statistics that are part of the package."""
    counted = json.loads(resources.files(__package__).joinpath("nih_statistics.json").read_text())
    counts = np.array(list(counted["label_sets"].values()), np.float64)
    visits = np.zeros(LONGEST_FOLLOW_UP)
    for films, patients in counted["films_per_patient"].items():
        visits[min(int(films), LONGEST_FOLLOW_UP) - 1] += patients
    return NihStatistics(
        findings=tuple(counted["findings"]),
        label_sets=np.array([int(bits) for bits in counted["label_sets"]]),
        label_set_shares=counts / counts.sum(),
        films_per_patient=visits / visits.sum(),
        same_findings_share=counted["kept"],
        female_share=counted["female_share"],
        age_quantiles={sex: tuple(ages) for sex, ages in counted["age_quantiles"].items()},
        ap_shares=tuple(counted["ap_share_by_number_of_findings"]),
        boxes={
            finding: BoxMixture(
                np.array(mixture["weights"]) / np.sum(mixture["weights"]),
                np.array(mixture["means"]),
                np.linalg.cholesky(np.array(mixture["covariances"])),
            )
            for finding, mixture in counted["boxes"].items()
        },
    )


@dataclass(frozen=True)
class Profile:
    """Classes, concepts, and the findings that are drawn for each concept.

    Other findings may still be drawn, as diseases that are no concepts.
    """

    classes: tuple[str, ...]
    findings_of: Mapping[str, tuple[str, ...]]
    shortcut_concept: str  # the default concept of a shortcut

    @property
    def concepts(self) -> tuple[str, ...]:
        """Names of the concepts."""
        return tuple(self.findings_of)

    @property
    def concept_of(self) -> dict[str, str]:
        """The concept of each finding that has one."""
        return {finding: concept for concept, findings in self.findings_of.items() for finding in findings}


PROFILES = {
    "tb": Profile(
        classes=("healthy", "sick_non_tb", "active_tb"),
        findings_of={
            "active_tb": ("cavity", "nodular_opacities", "upper_lobe_infiltrate", "upper_lobe_consolidation"),
            "obsolete_tb": ("calcified_granulomas", "fibrous_scar", "volume_loss"),
            "pulmonary_tb": ("patchy_consolidation", "tree_in_bud", "miliary_nodules"),
        },
        shortcut_concept="active_tb",
    ),
    "nih": Profile(
        classes=("no_finding", "finding"),
        findings_of={finding: (finding,) for finding in nih_statistics().findings},
        shortcut_concept="cardiomegaly",
    ),
}


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
        if visit == 0 or random.random() >= counted.same_findings_share:
            bits = int(counted.label_sets[random.choice(len(counted.label_sets), p=counted.label_set_shares)])
            findings = tuple(finding for position, finding in enumerate(counted.findings) if bits >> position & 1)
        ap_share = counted.ap_shares[min(len(findings), len(counted.ap_shares) - 1)]
        yield Exam(
            profile="nih", seed=seed, patient=patient, visit=visit, sex=sex, age=int(age) + visit // 4,
            view="AP" if random.random() < ap_share else "PA",
            class_name="finding" if findings else "no_finding", findings=findings, concepts=findings, devices=(),
        )  # fmt: skip


def tb_visits(seed: int, patient: int) -> Iterator[Exam]:
    """Yield all exams of one patient; the disease stays the same, its contrast varies a little."""
    profile = PROFILES["tb"]
    random = random_stream(seed, "tb", patient, "history")
    class_name = profile.classes[random.choice(len(profile.classes), p=CLASS_SHARES)]
    findings = _disease(class_name, random)
    sex: Literal["M", "F"] = "F" if random.random() < 0.45 else "M"
    age = int(random.triangular(16, 38, 86))
    shown = {profile.concept_of.get(finding) for finding in findings}
    concepts = tuple(concept for concept in profile.concepts if concept in shown)
    for visit in range(1 + int(random.choice(len(VISIT_SHARES), p=VISIT_SHARES))):
        yield Exam(
            profile="tb", seed=seed, patient=patient, visit=visit, sex=sex, age=age + visit // 2,
            view="AP" if random.random() < AP_SHARE else "PA",
            class_name=class_name, findings=findings, concepts=concepts, devices=(),
        )  # fmt: skip


def _disease(class_name: str, random: np.random.Generator) -> tuple[str, ...]:
    """The findings of a patient of a class; of tuberculosis one to three lesions of each concept."""
    if class_name == "sick_non_tb":
        names, shares = list(OTHER_DISEASE), np.array(list(OTHER_DISEASE.values()))
        number = 1 + int(random.random() < 0.4)
        return tuple(random.choice(names, number, replace=False, p=shares / shares.sum()).tolist())
    findings: list[str] = []
    if class_name == "active_tb":
        for concept in list(CONCEPT_SETS)[random.choice(len(CONCEPT_SETS), p=list(CONCEPT_SETS.values()))]:
            number = 1 + int(random.choice(len(LESION_SHARES), p=LESION_SHARES))
            findings += random.choice(PROFILES["tb"].findings_of[concept], number).tolist()
    return tuple(findings)


@dataclass(frozen=True)
class Shortcut:
    """Share of films with and without a concept that show a device.

    ``concept`` None means the profile's default. ``lies`` swaps the two shares: with the same seed, the same patients
    have the device on the wrong films, to test on.
    """

    with_concept: float = 0.9
    without_concept: float = 0.05
    concept: str | None = None
    device: str = "pacemaker"
    lies: bool = False

    def __str__(self) -> str:
        where = self.concept or "the profile's own concept"
        shares = (self.without_concept, self.with_concept) if self.lies else (self.with_concept, self.without_concept)
        return f"a {self.device} on {shares[0]:g} of the films with {where} and on {shares[1]:g} of the others"

    def check(self, profile: Profile) -> None:
        """Raise a ``UserError`` for a concept or device that this profile cannot draw."""
        concept = self.concept
        if concept is not None and concept not in profile.concepts:
            raise UserError(f"There is no concept {concept!r} to plant on{nearest(concept, profile.concepts)}.")
        if self.device not in DEVICES:
            raise UserError(f"There is no device {self.device!r}{nearest(self.device, DEVICES)}.")

    def on(self, exam: Exam) -> bool:
        """Return whether this film shows the device; a patient keeps it while the concept stays the same."""
        positive = (self.concept or PROFILES[exam.profile].shortcut_concept) in exam.concepts
        share = self.with_concept if positive != self.lies else self.without_concept
        return float(exam.patient_random("shortcut").random()) < share


VISITS: dict[str, Callable[[int, int], Iterator[Exam]]] = {"tb": tb_visits, "nih": nih_visits}


def plan(profile: str, films: int, seed: int, shortcut: Shortcut | None = None) -> tuple[Exam, ...]:
    """Return ``films`` exams, patient by patient; a longer plan begins with the shorter one."""
    if profile not in PROFILES:
        raise UserError(f"There is no profile {profile!r}{nearest(profile, PROFILES)}.")
    if shortcut is not None:
        shortcut.check(PROFILES[profile])
    exams = chain.from_iterable(VISITS[profile](seed, patient) for patient in count())
    return tuple(_with_devices(exam, shortcut) for exam in islice(exams, films))


def _with_devices(exam: Exam, shortcut: Shortcut | None) -> Exam:
    """The exam with its devices."""
    lasting = exam.patient_random("devices").random(len(DEVICE_SHARES))
    passing = exam.visit_random("devices").random(len(DEVICE_SHARES))
    devices = tuple(
        device
        for place, (device, shares) in enumerate(DEVICE_SHARES.items())
        if (lasting if device in PERMANENT_DEVICES else passing)[place] < shares[exam.view == "AP"]
    )
    if shortcut is None:
        return replace(exam, devices=devices)
    others, carries = [device for device in devices if device != shortcut.device], shortcut.on(exam)
    return replace(exam, devices=(*others, *[shortcut.device] * carries), has_shortcut=carries)
