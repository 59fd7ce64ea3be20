"""The two data sets that can be drawn, and what counts as a concept in each."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from medgrape.data.phantom.statistics import Baseline, nih_statistics


@dataclass(frozen=True)
class Profile:
    """Classes, concepts, and which drawn finding shows which concept.

    A finding outside ``concept_of`` may still be drawn: it is then disease that the profile has no word for.
    """

    name: str
    title: str
    classes: tuple[str, ...]
    concepts: tuple[str, ...]
    concept_of: Mapping[str, str]
    shortcut_concept: str  # what a planted device follows unless told otherwise
    reference: Mapping[str, Baseline] = field(default_factory=dict)

    def concepts_in(self, findings: tuple[str, ...]) -> tuple[str, ...]:
        """The positive concepts of a film, in the profile's order."""
        shown = {self.concept_of[finding] for finding in findings if finding in self.concept_of}
        return tuple(concept for concept in self.concepts if concept in shown)

    def findings_of(self, concept: str) -> tuple[str, ...]:
        """The ways in which a concept can be drawn."""
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
