"""By how much another concept may lead inside a correct box, learnt from boxes on terms that somebody sets.

The unit is the patient: of each patient's boxes of a concept one is drawn by lot, so that units are independent of each
other. Taking them all would count a patient with twenty lesions as twenty patients, and promise more than is known;
taking the worst of them would guard against the patient's most unlucky box, a stricter bound than was asked for.

A concept has a threshold of its own from as many patients on as let one of them lie above it. With fewer, it would be
the worst box of all, whatever that was, and the boxes of all concepts together say more.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from medgrape.data.dataset import SPLITS
from medgrape.errors import UserError
from medgrape.feedback.boxes import BoxSeen
from medgrape.feedback.claims import leads
from medgrape.feedback.conformal import conformal_threshold, units_needed
from medgrape.feedback.safety import SafetyRule
from medgrape.model.checkpoint import Run
from medgrape.model.safety_thresholds import SafetyThresholds


class CalibrationError(UserError):
    """Thresholds that cannot be learnt as asked."""


@dataclass(frozen=True)
class Terms:
    """What somebody asks of a calibrated check."""

    max_false_alarms: float = 0.10
    confidence: float = 0.90
    split: str = "val"
    gate: float | None = None
    """theta_V; None believes the leading concept always. A gate can only hold warnings back, and a lead learnt for each
    concept does that where correct boxes need it."""
    seed: int = 0
    """Of the lot that draws one box of each patient."""

    def __post_init__(self) -> None:
        for option, value in (("--max-false-alarms", self.max_false_alarms), ("--confidence", self.confidence)):
            if not 0 < value < 1:
                raise CalibrationError(f"{option} lies between 0 and 1, both excluded; {value} does not.")
        if self.gate is not None and not (math.isfinite(self.gate) and self.gate >= 0):
            raise CalibrationError(f"--gate is a variance, 0 or more, not {self.gate}; leave it away to have no gate.")
        self._check_split()

    def _check_split(self) -> None:
        if self.split not in SPLITS:
            raise CalibrationError(f"A split is one of {', '.join(SPLITS)}, not {self.split!r}.")
        if self.split == "train":
            raise CalibrationError(
                "A model sees findings better on films that it learnt from than on any other, so thresholds learnt "
                "there would be too tight; calibrate with --split val."
            )


def learn_thresholds(seen: Sequence[BoxSeen], run: Run, terms: Terms, data_set: Mapping[str, str]) -> SafetyThresholds:
    """For each concept with enough patients its own, and one learnt from the boxes of all for the others."""
    values = correct_leads(seen, run, terms.gate)
    units = {name: _by_lot(seen, terms.seed, name) for name in run.concepts.names}
    own = {
        name: conformal_threshold(values[drawn], terms.max_false_alarms, terms.confidence, above_it=1)
        for name, drawn in units.items()
    }
    everyone = _by_lot(seen, terms.seed)
    pooled = conformal_threshold(values[everyone], terms.max_false_alarms, terms.confidence)
    if pooled is None:
        raise CalibrationError(_too_few(len(everyone), terms))
    return SafetyThresholds(
        by_concept={name: lead for name, lead in own.items() if lead is not None},
        pooled=pooled,
        gate=terms.gate,
        max_false_alarms=terms.max_false_alarms,
        confidence=terms.confidence,
        boxes={name: len(drawn) for name, drawn in units.items()},
        data_set=dict(data_set),
    )


def correct_leads(seen: Sequence[BoxSeen], run: Run, gate: float | None) -> Float[np.ndarray, " boxes"]:
    """By how much another concept leads inside each box over the one it was drawn for."""
    rule = replace(SafetyRule.of(run), gate=math.inf if gate is None else gate)
    rows = np.array([run.concepts.index(one.concept) for one in seen], dtype=np.int64)
    return np.asarray(leads(seen, run.concepts, run.concepts, rule)[np.arange(len(seen)), rows])


def _by_lot(seen: Sequence[BoxSeen], seed: int, concept: str | None = None) -> list[int]:
    """The place of one box of each patient, the patients in the order of their names."""
    of_patient: dict[str, list[int]] = {}
    for place, one in enumerate(seen):
        if concept in (None, one.concept):
            of_patient.setdefault(one.patient, []).append(place)
    chance = np.random.default_rng(seed)
    return [of_patient[name][int(chance.integers(len(of_patient[name])))] for name in sorted(of_patient)]


def _too_few(patients: int, terms: Terms) -> str:
    needed = units_needed(terms.max_false_alarms, terms.confidence)
    return (
        f"Split {terms.split!r} has readable boxes of {patients:,} patients; to keep false alarms below "
        f"{terms.max_false_alarms:g} with confidence {terms.confidence:g}, boxes of at least {needed:,} patients are "
        "needed: bring more, or raise --max-false-alarms, or lower --confidence."
    )
