"""By how much another concept may lead inside a correct box, learnt from boxes on terms that somebody sets.

Either few correct boxes are to raise a false alarm, which is promised with a confidence; or right claims are to be
parted from wrong ones as well as can be, and nothing is promised (``balanced``).

For the promise the unit is the patient: of each patient's boxes of a concept one is drawn by lot, so that units are
independent of each other. Taking them all would count a patient with twenty lesions as twenty patients, and promise
more than is known; taking the worst of them would guard against the patient's most unlucky box, a stricter bound than
was asked for. A concept has a threshold of its own from as many patients on as let one of them lie above it. With
fewer, it would be the worst box of all, whatever that was, and the boxes of all concepts together say more.

For the balance every claim on every box counts, as in the evaluation. A concept needs claims of both kinds, and boxes
of a few patients, to have a threshold of its own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from medgrape.datasets.dataset import SPLITS
from medgrape.errors import UserError
from medgrape.runs.checkpoint import Run, SafetyRule, SafetyThresholds
from medgrape.safety.boxes import MeasuredBox
from medgrape.safety.claims import SimulatedClaims, leads


def allowed_alarms(units: int, bound: float, confidence: float) -> int | None:
    """How many of the units may lie above the threshold; None where there are too few for any threshold."""
    from scipy.special import bdtr  # slow to import

    fits = np.flatnonzero(bdtr(np.arange(units + 1), units, bound) <= 1 - confidence)
    return int(fits[-1]) if fits.size else None


def conformal_threshold(
    values: Float[np.ndarray, " units"], bound: float, confidence: float, *, above_it: int = 0
) -> float | None:
    """The smallest of the values that new ones exceed at a rate of at most ``bound``, with that confidence.

    At least 0: no concept is doubted that leads itself. None where there are too few values, or too few for
    ``above_it`` of them to lie above the threshold.
    """
    above = allowed_alarms(len(values), bound, confidence)
    if above is None or above < above_it:
        return None
    return max(float(np.sort(values)[len(values) - above - 1]), 0.0)


def units_needed(bound: float, confidence: float) -> int:
    """The fewest units with which a threshold can be had: all of them below it by luck alone is too unlikely."""
    return max(math.ceil(math.log1p(-confidence) / math.log1p(-bound)), 1)


def parting_lead(right: Float[np.ndarray, " rightly"], wrong: Float[np.ndarray, " wrongly"]) -> float:
    """Half way between the mean leads of right and of wrong claims; a claim is doubted whose lead is larger.

    ``right`` and ``wrong`` are the leads of the strongest other concept over the claimed one, below 0 where the claimed
    one leads itself, minus infinity where the other is not believed; there is at least one of each. Half way between
    means, and not where the shares on these very claims are best: of a rare finding there are a dozen boxes, and the
    best place between them is luck. Where wrong claims do not lie above right ones, looking is of no use, and the
    largest lead of all doubts none of them.
    """
    rightly, wrongly = (leads[np.isfinite(leads)] for leads in (right, wrong))
    if rightly.size and wrongly.size and wrongly.mean() > rightly.mean():
        return float(rightly.mean() + wrongly.mean()) / 2
    return float(np.concatenate([[0.0], rightly, wrongly]).max())


MAX_FALSE_ALARMS, CONFIDENCE = 0.10, 0.90
"""Where nobody says otherwise."""
FEWEST = 5
"""Patients whose boxes a concept's own balanced threshold is learnt from."""


class CalibrationError(UserError):
    """Thresholds that cannot be learnt as asked."""


@dataclass(frozen=True)
class Terms:
    """What somebody asks of a calibrated check."""

    max_false_alarms: float | None = None
    """None is 0.10, or, with ``balanced``, no promise at all."""
    confidence: float | None = None
    """None is 0.90, likewise."""
    split: str = "val"
    gate: float | None = None
    """theta_V; None believes the leading concept always. A gate can only hold warnings back, and a lead learnt for each
    concept does that where correct boxes need it."""
    seed: int = 0
    """Of the lot that draws one box of each patient."""
    balanced: bool = False
    """Right and wrong claims are to be parted as well as can be; no rate is promised."""

    def __post_init__(self) -> None:
        asked = {"--max-false-alarms": self.max_false_alarms, "--confidence": self.confidence}
        given = {option: value for option, value in asked.items() if value is not None}
        if self.balanced and given:
            raise CalibrationError(f"--balanced promises no rate of false alarms; leave out {' and '.join(given)}.")
        for option, value in given.items():
            if not 0 < value < 1:
                raise CalibrationError(f"{option} lies between 0 and 1, both excluded; {value} does not.")
        if self.gate is not None and not (math.isfinite(self.gate) and self.gate >= 0):
            raise CalibrationError(f"--gate is a variance, 0 or more, not {self.gate}; leave it away to have no gate.")
        self._check_split()

    @property
    def promise(self) -> tuple[float, float]:
        """The largest share of false alarms, and how surely; without meaning where the terms are balanced."""
        bound, surely = self.max_false_alarms, self.confidence
        return MAX_FALSE_ALARMS if bound is None else bound, CONFIDENCE if surely is None else surely

    def _check_split(self) -> None:
        if self.split not in SPLITS:
            raise CalibrationError(f"A split is one of {', '.join(SPLITS)}, not {self.split!r}.")
        if self.split == "train":
            raise CalibrationError(
                "A model sees findings better on films that it learnt from than on any other, so thresholds learnt "
                "there would be too tight; calibrate with --split val."
            )


def learn_thresholds(
    seen: Sequence[MeasuredBox], run: Run, claims: SimulatedClaims, terms: Terms, data_set: Mapping[str, str]
) -> SafetyThresholds:
    """On either kind of terms; ``claims`` are those on the boxes that were seen."""
    units = {name: _by_lot(seen, terms.seed, name) for name in run.concepts.names}
    learn = _balanced if terms.balanced else _bounded
    by_concept, pooled = learn(seen, run, claims, terms, units)
    bound, surely = (None, None) if terms.balanced else terms.promise
    return SafetyThresholds(
        by_concept=by_concept,
        pooled=pooled,
        gate=terms.gate,
        max_false_alarms=bound,
        confidence=surely,
        boxes={name: len(drawn) for name, drawn in units.items()},
        data_set=dict(data_set),
    )


Learnt = tuple[dict[str, float], float]
"""The leads of the concepts that have enough boxes, and the one of all others."""
Units = Mapping[str, Sequence[int]]
"""For each concept the place of one box of each patient."""


def _bounded(seen: Sequence[MeasuredBox], run: Run, _: SimulatedClaims, terms: Terms, units: Units) -> Learnt:
    """For each concept with enough patients its own, and one learnt from the boxes of all for the others."""
    values, everyone = correct_leads(seen, run, terms.gate), _by_lot(seen, terms.seed)
    own = {name: conformal_threshold(values[drawn], *terms.promise, above_it=1) for name, drawn in units.items()}
    pooled = conformal_threshold(values[everyone], *terms.promise)
    if pooled is None:
        raise CalibrationError(_too_few(len(everyone), terms))
    return {name: lead for name, lead in own.items() if lead is not None}, pooled


def _balanced(seen: Sequence[MeasuredBox], run: Run, claims: SimulatedClaims, terms: Terms, units: Units) -> Learnt:
    """The same from all claims, each concept's threshold from those that name it."""
    if not claims.wrong.any():
        raise CalibrationError(
            f"On the {len(seen):,} readable boxes of split {terms.split!r} no finding can be claimed wrongly, so there "
            "is nothing to part; bring boxes, and more than one finding that they may be claimed to show."
        )
    values = leads(seen, run.concepts, claims.concepts, _rule(run, terms.gate))
    right = np.eye(len(claims.concepts), dtype=bool)[claims.truth]
    own = {
        name: parting_lead(values[right[:, place], place], values[claims.wrong[:, place], place])
        for place, name in enumerate(claims.concepts.names)
        if len(units[name]) >= FEWEST and claims.wrong[:, place].any()
    }
    return own, parting_lead(values[right], values[claims.wrong])


def correct_leads(seen: Sequence[MeasuredBox], run: Run, gate: float | None) -> Float[np.ndarray, " boxes"]:
    """By how much another concept leads inside each box over the one it was drawn for."""
    rows = np.array([run.concepts.index(one.concept) for one in seen], dtype=np.int64)
    return np.asarray(leads(seen, run.concepts, run.concepts, _rule(run, gate))[np.arange(len(seen)), rows])


def _rule(run: Run, gate: float | None) -> SafetyRule:
    return replace(SafetyRule.of(run), gate=math.inf if gate is None else gate)


def _by_lot(seen: Sequence[MeasuredBox], seed: int, concept: str | None = None) -> list[int]:
    """The place of one box of each patient, the patients in the order of their names."""
    of_patient: dict[str, list[int]] = {}
    for place, one in enumerate(seen):
        if concept in (None, one.concept):
            of_patient.setdefault(one.patient, []).append(place)
    chance = np.random.default_rng(seed)
    return [of_patient[name][int(chance.integers(len(of_patient[name])))] for name in sorted(of_patient)]


def _too_few(patients: int, terms: Terms) -> str:
    bound, surely = terms.promise
    return (
        f"Split {terms.split!r} has readable boxes of {patients:,} patients; to keep false alarms below {bound:g} with "
        f"confidence {surely:g}, boxes of at least {units_needed(bound, surely):,} patients are "
        "needed: bring more, or raise --max-false-alarms, or lower --confidence."
    )
