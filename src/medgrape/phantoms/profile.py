"""The profiles that can be drawn: their classes, concepts and statistics."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from jaxtyping import Float, Int

LONGEST_FOLLOW_UP = 20  # films; a few real patients have up to 184, and one would fill a small data set


@dataclass(frozen=True)
class Baseline:
    """Hit rates of blind pointing."""

    fixed_point: float
    random_point: float


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
    kept: float
    female_share: float
    age_quantiles: Mapping[str, tuple[float, ...]]
    ap_shares: tuple[float, ...]
    boxes: Mapping[str, BoxMixture]
    reference: Mapping[str, Baseline]

    def named(self, bits: int) -> tuple[str, ...]:
        """Return the findings of a bit mask."""
        return tuple(finding for place, finding in enumerate(self.findings) if bits >> place & 1)


@cache
def nih_statistics() -> NihStatistics:
    """Return the statistics that are part of the package."""
    counted = json.loads(files(__package__).joinpath("nih_statistics.json").read_text())
    counts = np.array(list(counted["label_sets"].values()), np.float64)
    return NihStatistics(
        findings=tuple(counted["findings"]),
        label_sets=np.array([int(bits) for bits in counted["label_sets"]]),
        label_set_shares=counts / counts.sum(),
        films_per_patient=_visit_shares(counted["films_per_patient"]),
        kept=counted["kept"],
        female_share=counted["female_share"],
        age_quantiles={sex: tuple(ages) for sex, ages in counted["age_quantiles"].items()},
        ap_shares=tuple(counted["ap_share_by_number_of_findings"]),
        boxes={finding: _mixture(stored) for finding, stored in counted["boxes"].items()},
        reference={finding: Baseline(**figures) for finding, figures in counted["reference"].items()},
    )


def _visit_shares(counted: Mapping[str, int]) -> Float[np.ndarray, " longest"]:
    shares = np.zeros(LONGEST_FOLLOW_UP)
    for films, patients in counted.items():
        shares[min(int(films), LONGEST_FOLLOW_UP) - 1] += patients
    return np.asarray(shares / shares.sum())


def _mixture(stored: Mapping[str, Any]) -> BoxMixture:
    weights = np.array(stored["weights"])
    return BoxMixture(
        weights / weights.sum(), np.array(stored["means"]), np.linalg.cholesky(np.array(stored["covariances"]))
    )


@dataclass(frozen=True)
class Profile:
    """Classes, concepts, and the concept of each drawn finding.

    A finding outside ``concept_of`` may still be drawn, as a disease that is no concept.
    """

    name: str
    title: str
    classes: tuple[str, ...]
    concepts: tuple[str, ...]
    concept_of: Mapping[str, str]
    shortcut_concept: str  # the default concept of a shortcut
    reference: Mapping[str, Baseline] = field(default_factory=dict)

    def concepts_in(self, findings: tuple[str, ...]) -> tuple[str, ...]:
        """Return the concepts of some findings, in the profile's order."""
        shown = {self.concept_of[finding] for finding in findings if finding in self.concept_of}
        return tuple(concept for concept in self.concepts if concept in shown)

    def findings_of(self, concept: str) -> tuple[str, ...]:
        """Return the findings that show a concept."""
        return tuple(finding for finding, shown in self.concept_of.items() if shown == concept)


PROFILES = {
    "tb": Profile(
        name="tb",
        title="Drawn tuberculosis films",
        classes=("healthy", "sick_non_tb", "active_tb"),
        concepts=("active_tb", "obsolete_tb", "pulmonary_tb"),
        concept_of={
            "cavity": "active_tb",
            "nodular_opacities": "active_tb",
            "upper_lobe_infiltrate": "active_tb",
            "upper_lobe_consolidation": "active_tb",
            "calcified_granulomas": "obsolete_tb",
            "fibrous_scar": "obsolete_tb",
            "volume_loss": "obsolete_tb",
            "patchy_consolidation": "pulmonary_tb",
            "tree_in_bud": "pulmonary_tb",
            "miliary_nodules": "pulmonary_tb",
        },
        shortcut_concept="active_tb",
    ),
    "nih": Profile(
        name="nih",
        title="Drawn chest films after the NIH's statistics",
        classes=("no_finding", "finding"),
        concepts=nih_statistics().findings,
        concept_of={finding: finding for finding in nih_statistics().findings},
        shortcut_concept="cardiomegaly",
        reference=nih_statistics().reference,
    ),
}
