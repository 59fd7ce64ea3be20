"""Thresholds of the safety check: by how much another concept may lead inside a box without a warning.

Bounded thresholds keep the rate of false alarms below a bound with a given confidence. Their unit is the patient: one
box of each patient is drawn at random for each concept, so that units are independent. All boxes would count a patient
with twenty lesions as twenty patients; the worst box of each patient would give a stricter bound than requested. A
concept has a threshold of its own if there are enough patients for one of them to lie above it; with fewer, the
threshold would be the sample maximum, and the boxes of all concepts together give a better one.

Balanced thresholds separate right from wrong claims and bound no rate. They use every claim about every box, as the
evaluation does. A concept has one of its own if there are right and wrong claims, and boxes of a few patients.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from medgrape.datasets.dataset import check_split
from medgrape.errors import UserError
from medgrape.runs.checkpoint import Run, SafetyRule, SafetyThresholds
from medgrape.safety.boxes import MeasuredBox
from medgrape.safety.claims import SimulatedClaims, compare_boxes


def allowed_alarms(units: int, bound: float, confidence: float) -> int | None:
    """Return how many of the units may lie above the threshold; None if there are too few units for a threshold."""
    from scipy.special import bdtr  # slow to import

    fits = np.flatnonzero(bdtr(np.arange(units + 1), units, bound) <= 1 - confidence)
    return int(fits[-1]) if fits.size else None


def conformal_threshold(
    values: Float[np.ndarray, " units"], bound: float, confidence: float, *, least_above: int = 0
) -> float | None:
    """Return the smallest value that new ones exceed at a rate of at most ``bound``, with this confidence.

    It is at least 0: a claimed concept that leads causes no warning. None if there are too few values, or too few for
    ``least_above`` of them to lie above the threshold.
    """
    above = allowed_alarms(len(values), bound, confidence)
    if above is None or above < least_above:
        return None
    return max(float(np.sort(values)[len(values) - above - 1]), 0.0)


def units_needed(bound: float, confidence: float) -> int:
    """Return the smallest number of units that gives a threshold."""
    return max(math.ceil(math.log1p(-confidence) / math.log1p(-bound)), 1)


def midpoint_threshold(right: Float[np.ndarray, " right"], wrong: Float[np.ndarray, " wrong"]) -> float:
    """Return the midpoint between the mean leads of right and of wrong claims, at least one of each.

    Minus infinity is a lead that is not trusted and is ignored. The midpoint of means is used instead of the best
    threshold on these claims, which is chance for a rare finding with a dozen boxes. If wrong claims do not have larger
    leads than right ones, the threshold is the largest lead, so that none of the claims causes a warning.
    """
    right, wrong = right[np.isfinite(right)], wrong[np.isfinite(wrong)]
    if right.size and wrong.size and wrong.mean() > right.mean():
        return float(right.mean() + wrong.mean()) / 2
    return float(np.concatenate([[0.0], right, wrong]).max())


MAX_FALSE_ALARMS, CONFIDENCE = 0.10, 0.90  # defaults of bounded thresholds
FEWEST = 5  # smallest number of patients for a balanced threshold of a concept's own


class CalibrationError(UserError):
    """Thresholds that cannot be learnt as requested."""


@dataclass(frozen=True)
class CalibrationOptions:
    """Options of a calibration."""

    max_false_alarms: float | None = None  # bound on the rate of false alarms; None: 0.10, or no bound if ``balanced``
    confidence: float | None = None  # confidence of the bound; None: 0.90, or no bound if ``balanced``
    split: str = "val"
    gate: float | None = None  # theta_V; None: no limit, as a larger lead suppresses warnings, too
    seed: int = 0  # seed for drawing one box of each patient
    balanced: bool = False  # learn balanced thresholds instead of bounded ones

    def __post_init__(self) -> None:
        options = {"--max-false-alarms": self.max_false_alarms, "--confidence": self.confidence}
        bounds = {option: value for option, value in options.items() if value is not None}
        if self.balanced and bounds:
            raise CalibrationError(f"--balanced promises no rate of false alarms; leave out {' and '.join(bounds)}.")
        for option, value in bounds.items():
            if not 0 < value < 1:
                raise CalibrationError(f"{option} lies between 0 and 1, both excluded; {value} does not.")
        if self.gate is not None and not (math.isfinite(self.gate) and self.gate >= 0):
            raise CalibrationError(f"--gate is a variance, 0 or more, not {self.gate}; leave it away to have no gate.")
        check_split(self.split, CalibrationError)
        if self.split == "train":
            raise CalibrationError(
                "A model sees findings better on films that it learnt from than on any other, so thresholds learnt "
                "there would be too tight; calibrate with --split val."
            )

    @property
    def bound_and_confidence(self) -> tuple[float, float]:
        """The bound on the rate of false alarms, and its confidence; meaningless if balanced."""
        bound, confidence = self.max_false_alarms, self.confidence
        return MAX_FALSE_ALARMS if bound is None else bound, CONFIDENCE if confidence is None else confidence


def learn_thresholds(
    boxes: Sequence[MeasuredBox],
    run: Run,
    claims: SimulatedClaims,
    options: CalibrationOptions,
    data_set: Mapping[str, str],
) -> SafetyThresholds:
    """Learn bounded or balanced thresholds from boxes and the claims about them."""
    rule = replace(SafetyRule.of(run), gate=math.inf if options.gate is None else options.gate)
    leads = compare_boxes(boxes, run.concepts, claims.concepts, rule).lead
    drawn = {name: _draw_per_patient(boxes, options.seed, name) for name in run.concepts.names}
    if options.balanced:
        by_concept, pooled = _learn_balanced(leads, claims, drawn, options)
    else:
        correct = leads[np.arange(len(boxes)), claims.truth]
        by_concept, pooled = _learn_bounded(correct, drawn, _draw_per_patient(boxes, options.seed), options)
    bound, confidence = (None, None) if options.balanced else options.bound_and_confidence
    return SafetyThresholds(
        by_concept=by_concept,
        pooled=pooled,
        gate=options.gate,
        max_false_alarms=bound,
        confidence=confidence,
        boxes={name: len(rows) for name, rows in drawn.items()},
        data_set=dict(data_set),
    )


def _learn_bounded(
    correct: Float[np.ndarray, " boxes"],
    drawn: Mapping[str, Sequence[int]],
    everyone: Sequence[int],
    options: CalibrationOptions,
) -> tuple[dict[str, float], float]:
    """Return the thresholds of concepts with enough patients, and the pooled one, from the leads of right claims."""
    bound, confidence = options.bound_and_confidence
    pooled = conformal_threshold(correct[everyone], bound, confidence)
    if pooled is None:
        raise CalibrationError(
            f"Split {options.split!r} has readable boxes of {len(everyone):,} patients; to keep false alarms below "
            f"{bound:g} with confidence {confidence:g}, boxes of at least {units_needed(bound, confidence):,} patients "
            "are needed: bring more, or raise --max-false-alarms, or lower --confidence."
        )
    own = {name: conformal_threshold(correct[rows], bound, confidence, least_above=1) for name, rows in drawn.items()}
    return {name: lead for name, lead in own.items() if lead is not None}, pooled


def _learn_balanced(
    leads: Float[np.ndarray, "boxes claims"],
    claims: SimulatedClaims,
    drawn: Mapping[str, Sequence[int]],
    options: CalibrationOptions,
) -> tuple[dict[str, float], float]:
    """Return the thresholds of concepts with right and wrong claims, and the pooled one, from all claims."""
    right, wrong = np.eye(len(claims.concepts), dtype=bool)[claims.truth], claims.wrong
    if not wrong.any():
        raise CalibrationError(
            f"Balanced thresholds need boxes of at least two findings; split {options.split!r} has none that can be "
            "claimed wrongly."
        )
    own = {
        name: midpoint_threshold(leads[right[:, column], column], leads[wrong[:, column], column])
        for column, name in enumerate(claims.concepts.names)
        if len(drawn[name]) >= FEWEST and wrong[:, column].any()
    }
    return own, midpoint_threshold(leads[right], leads[wrong])


def _draw_per_patient(boxes: Sequence[MeasuredBox], seed: int, concept: str | None = None) -> list[int]:
    """Draw one box of each patient, of one concept or of any; return their positions, sorted by patient."""
    by_patient: dict[str, list[int]] = defaultdict(list)
    for position, box in enumerate(boxes):
        if concept in (None, box.concept):
            by_patient[box.patient].append(position)
    generator = np.random.default_rng(seed)
    return [positions[int(generator.integers(len(positions)))] for _, positions in sorted(by_patient.items())]
