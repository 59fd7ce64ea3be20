"""Calibrating the safety check on films that the model did not learn from: few correct boxes doubted, or a balance."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset, check_concepts, checksum
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import LoadedRun, Run, SafetyRule, SafetyThresholds
from medgrape.safety.boxes import MeasuredBox, known_films, measure_boxes
from medgrape.safety.claims import Alarms, Counted, SimulatedClaims, alarms, majority_alarms, most_frequent_concept
from medgrape.safety.thresholds import Terms, learn_thresholds

NOT_CALIBRATED = "safety_not_calibrated"
"""Among a run's metrics: why training, which was asked to, could not calibrate the check."""


@dataclass(frozen=True)
class CalibratedConcept:
    """What was learnt for one concept, and how the check does on the very boxes that it was learnt from."""

    name: str
    title: str
    boxes: int
    patients: int
    lead: float
    """By how much another concept may lead inside a box that is said to show this one."""
    own: bool
    """Learnt from this concept's boxes; else from the boxes of all, because its own were too few."""
    check: Counted | None
    """Of the claims that name it; None where there is no box of it."""
    majority: Counted | None
    """On the same claims, a check that looks at no film; None also where training has no box."""


@dataclass(frozen=True)
class Calibration:
    """Thresholds, and how they do on the boxes that they were learnt from, where they look a little too good."""

    thresholds: SafetyThresholds
    concepts: tuple[CalibratedConcept, ...]
    boxes: int
    patients: int
    check: Counted
    majority: Counted | None
    """A check that always answers ``majority_answer``, the commonest concept of the training boxes."""
    majority_answer: str | None
    settings_gate: float | None
    """The gate of the run's settings: the paper's, unless somebody set another; None is no gate."""
    with_settings_gate: Counted
    """What that gate would give, with leads learnt in the same way."""
    warnings: tuple[str, ...]

    @property
    def balanced(self) -> float | None:
        """(caught + 1 - false alarms) / 2 of the claims that name a concept, averaged over the concepts that are
        claimed both rightly and wrongly; a check that looks at no film gets 0.5."""
        found = [one.check.balanced for one in self.concepts if one.check is not None]
        known = [value for value in found if value is not None]
        return float(np.mean(known)) if known else None

    @property
    def guarantee(self) -> tuple[str, ...]:
        """What was promised, and what was not."""
        learnt = self.thresholds
        if learnt.max_false_alarms is None:
            best = f"These thresholds lie half way between right and wrong claims on {self.boxes:,} boxes"
            return (f"{best}; no rate is promised.",)
        bound, surely = f"{learnt.max_false_alarms:g}", f"{learnt.confidence:g}"
        return (
            f"For each concept with a threshold of its own: of correct boxes of that concept, one drawn from each new "
            f"patient, at most {bound} raise a warning, with confidence {surely} for each such concept by itself, not "
            f"for all of them together.",
            "For the pooled threshold: were it used for every box, the same would hold of the boxes of all concepts "
            "together, one drawn from each new patient; of a single concept that uses it, nothing is promised.",
            "Both hold for patients like those of the calibration set.",
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"balanced": self.balanced, "guarantee": list(self.guarantee)}


def calibrate(
    loaded: LoadedRun,
    data: Path,
    *,
    max_false_alarms: float | None = None,
    confidence: float | None = None,
    split: str = "val",
    gate: float | None = None,
    seed: int = 0,
    balanced: bool = False,
    track: Track = quietly,
) -> Calibration:
    """Learn the thresholds from the boxes of a split. Nothing is written; ``keep`` does that.

    Unless somebody says otherwise, at most 0.10 false alarms are promised with confidence 0.90. ``balanced`` promises
    nothing, and takes leads half way between right and wrong claims.
    """
    terms = Terms(max_false_alarms, confidence, split, gate, seed, balanced)
    dataset, run = Dataset.load(data), loaded.run
    check_concepts(run.concepts, dataset)
    cached = cached_films(run.config, dataset, data, track)
    seen = measure_boxes(run, dataset, cached, split, track)
    data_set = _data_set(dataset, data, split)
    claims = SimulatedClaims.on(seen, dataset)
    thresholds, gated = (
        learn_thresholds(seen, run, claims, replace(terms, gate=one), data_set) for one in (gate, _settings_gate(run))
    )
    trained_on_this = loaded.manifest.dataset["checksum"] == data_set["checksum"]
    known = 0 if trained_on_this else known_films(run.learnt_from, dataset, cached, {one.film.id for one in seen})
    return _judged(seen, run, (dataset, claims), (thresholds, gated), _warnings(split, known))


def learn_safety(run: Run, data: Path, *, balanced: bool, track: Track = quietly) -> SafetyThresholds:
    """The thresholds alone, from validation boxes on the usual terms: what training does at its end."""
    dataset, terms = Dataset.load(data), Terms(balanced=balanced)
    seen = measure_boxes(run, dataset, cached_films(run.config, dataset, data, track), terms.split, track)
    return learn_thresholds(seen, run, SimulatedClaims.on(seen, dataset), terms, _data_set(dataset, data, terms.split))


def keep(loaded: LoadedRun, calibration: Calibration) -> LoadedRun:
    """Store the thresholds with the run, in its own folder."""
    learnt = calibration.thresholds
    bound = learnt.max_false_alarms
    terms = "for balance, with no rate promised" if bound is None else f"to at most {bound:g} false alarms"
    what = (
        f"Calibrated the safety check on {calibration.boxes:,} {learnt.data_set['split']} boxes of "
        f"{learnt.data_set['name']} {terms}."
    )
    metrics = {name: told for name, told in loaded.run.metrics.items() if name != NOT_CALIBRATED}
    calibrated = replace(loaded.run, safety=learnt, metrics=metrics)
    changed = loaded.changed(calibrated, what)
    return changed.save_changed(changed.run, loaded.folder)


def _judged(
    seen: Sequence[MeasuredBox],
    run: Run,
    data: tuple[Dataset, SimulatedClaims],
    learnt: tuple[SafetyThresholds, SafetyThresholds],
    warnings: tuple[str, ...],
) -> Calibration:
    dataset, claims = data
    answer = most_frequent_concept(dataset)
    checked, gated = (
        alarms(seen, run.concepts, dataset.concepts, SafetyRule.of(replace(run, safety=one))) for one in learnt
    )
    trivial = None if answer is None else majority_alarms(answer, claims)
    return Calibration(
        thresholds=learnt[0],
        concepts=_concepts(run, learnt[0], claims, (checked, trivial)),
        boxes=len(seen),
        patients=len({one.patient for one in seen}),
        check=claims.counted(checked),
        majority=None if trivial is None else claims.counted(trivial),
        majority_answer=answer,
        settings_gate=_settings_gate(run),
        with_settings_gate=claims.counted(gated),
        warnings=warnings,
    )


def _concepts(
    run: Run, learnt: SafetyThresholds, claims: SimulatedClaims, found: tuple[Alarms, Alarms | None]
) -> tuple[CalibratedConcept, ...]:
    rows = []
    for concept in run.concepts:
        check, majority = (None if one is None else claims.naming(concept.name, one) for one in found)
        rows.append(
            CalibratedConcept(
                concept.name,
                concept.title,
                boxes=int(claims.shows(concept.name).sum()),
                patients=learnt.boxes[concept.name],
                lead=learnt.lead(concept.name),
                own=concept.name in learnt.by_concept,
                check=check,
                majority=majority,
            )
        )
    return tuple(rows)


def _data_set(dataset: Dataset, data: Path, split: str) -> dict[str, str]:
    return {"name": dataset.name, "checksum": checksum(data), "split": split}


def _settings_gate(run: Run) -> float | None:
    gate = run.config.safety.gate
    return gate if math.isfinite(gate) else None


def _warnings(split: str, known: int) -> tuple[str, ...]:
    told = []
    if split == "test":
        told.append("These are test films: from now on they cannot tell what the calibrated check is worth.")
    if known:
        told.append(
            f"The model has learnt from {known:,} of these films, or was chosen on them, and this is not the data set "
            "that it was trained on; if it learnt from them, the thresholds are too tight."
        )
    return tuple(told)
