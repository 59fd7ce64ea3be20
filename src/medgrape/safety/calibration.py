"""Calibration of the safety check on films that the model was not trained on."""

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset, check_concepts, checksum
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import LoadedRun, Run, SafetyRule, SafetyThresholds
from medgrape.safety.boxes import known_films, measure_boxes
from medgrape.safety.claims import AlarmRates, SimulatedClaims, alarms, majority_alarms, most_frequent_concept
from medgrape.safety.thresholds import CalibrationOptions, learn_thresholds

NOT_CALIBRATED = "safety_not_calibrated"
"""Key of a run's metrics: why training could not calibrate the check, although it was asked to."""


@dataclass(frozen=True)
class CalibratedConcept:
    """The threshold of one concept, and the rates of the check on the boxes that it was learnt from."""

    name: str
    title: str
    boxes: int
    patients: int
    lead: float  # largest lead of another concept without a warning, inside a box that is claimed to show this one
    own: bool  # learnt from this concept's boxes; otherwise they were too few, and it is the pooled threshold
    check: AlarmRates | None  # rates over the claims that name it; None if no box shows it
    majority: AlarmRates | None  # rates of the majority check over them; None also if no training film has a box


@dataclass(frozen=True)
class Calibration:
    """Thresholds, and the rates of the check on the boxes that they were learnt from, which are slightly optimistic."""

    thresholds: SafetyThresholds
    concepts: tuple[CalibratedConcept, ...]
    boxes: int
    patients: int
    check: AlarmRates
    majority: AlarmRates | None  # rates of a check that always answers ``majority_answer``
    majority_answer: str | None  # the most frequent concept of the training boxes
    settings_gate: float | None  # the gate of the run's settings, by default the paper's; None: no gate
    with_settings_gate: AlarmRates  # rates with that gate, and with leads learnt in the same way
    warnings: tuple[str, ...]

    @property
    def balanced(self) -> float | None:
        """Mean of the balanced rates of all concepts with right and wrong claims; ignoring the film gives 0.5."""
        rates = [concept.check.balanced for concept in self.concepts if concept.check is not None]
        known = [rate for rate in rates if rate is not None]
        return float(np.mean(known)) if known else None

    @property
    def guarantee(self) -> tuple[str, ...]:
        """Sentences that say what the thresholds guarantee and what they do not."""
        bound, confidence = self.thresholds.max_false_alarms, self.thresholds.confidence
        if bound is None:
            best = f"These thresholds lie half way between right and wrong claims on {self.boxes:,} boxes"
            return (f"{best}; no rate is promised.",)
        return (
            f"Concepts with their own threshold: take one correct box of each new patient. At most {bound:g} of these "
            f"boxes raise a warning. This holds with confidence {confidence:g} for each concept separately, "
            "not jointly.",
            "Pooled threshold: the bound holds on average over all concepts, not for a single concept.",
            "Both hold for patients like those of the calibration set.",
        )

    def to_json(self) -> dict[str, Any]:
        """Return all fields and computed values as plain data."""
        return asdict(self) | {"balanced": self.balanced, "guarantee": list(self.guarantee)}


def calibrate(
    loaded: LoadedRun, data: Path, options: CalibrationOptions | None = None, track: Track = quietly
) -> Calibration:
    """Learn thresholds from the boxes of a split; ``keep`` writes them to the run."""
    options = options or CalibrationOptions()
    dataset, run, split = Dataset.load(data), loaded.run, options.split
    check_concepts(run.concepts, dataset)
    cached = cached_films(run.config, dataset, data, track)
    boxes = measure_boxes(run, dataset, cached, split, track)
    claims, data_set = SimulatedClaims.on(boxes, dataset), _data_set(dataset, data, split)
    settings_gate = run.config.safety.gate if math.isfinite(run.config.safety.gate) else None
    thresholds = learn_thresholds(boxes, run, claims, options, data_set)
    gated = learn_thresholds(boxes, run, claims, replace(options, gate=settings_gate), data_set)
    own, with_settings_gate = (
        alarms(boxes, run.concepts, dataset.concepts, SafetyRule.of(replace(run, safety=learnt)))
        for learnt in (thresholds, gated)
    )
    answer = most_frequent_concept(dataset)
    majority = None if answer is None else majority_alarms(answer, claims)
    warnings = []
    if split == "test":
        warnings.append("These are test films: from now on they cannot tell what the calibrated check is worth.")
    known = known_films(run.learnt_from, dataset, cached, {box.film.id for box in boxes})
    if known and loaded.manifest.dataset["checksum"] != data_set["checksum"]:
        warnings.append(
            f"The model has learnt from {known:,} of these films, or was chosen on them, and this is not the data set "
            "that it was trained on; if it learnt from them, the thresholds are too tight."
        )
    return Calibration(
        thresholds=thresholds,
        concepts=tuple(
            CalibratedConcept(
                concept.name,
                concept.title,
                boxes=int(claims.shows(concept.name).sum()),
                patients=thresholds.boxes[concept.name],
                lead=thresholds.lead(concept.name),
                own=concept.name in thresholds.by_concept,
                check=claims.rates_of(concept.name, own),
                majority=None if majority is None else claims.rates_of(concept.name, majority),
            )
            for concept in run.concepts
        ),
        boxes=len(boxes),
        patients=len({box.patient for box in boxes}),
        check=claims.rates(own),
        majority=None if majority is None else claims.rates(majority),
        majority_answer=answer,
        settings_gate=settings_gate,
        with_settings_gate=claims.rates(with_settings_gate),
        warnings=tuple(warnings),
    )


def learn_safety(run: Run, data: Path, *, balanced: bool, track: Track = quietly) -> SafetyThresholds:
    """Learn the thresholds from validation boxes with default options, as training does at its end."""
    dataset, options = Dataset.load(data), CalibrationOptions(balanced=balanced)
    boxes = measure_boxes(run, dataset, cached_films(run.config, dataset, data, track), options.split, track)
    claims = SimulatedClaims.on(boxes, dataset)
    return learn_thresholds(boxes, run, claims, options, _data_set(dataset, data, options.split))


def keep(loaded: LoadedRun, calibration: Calibration) -> LoadedRun:
    """Write the thresholds to the run, in its own folder."""
    learnt, bound = calibration.thresholds, calibration.thresholds.max_false_alarms
    terms = "for balance, with no rate promised" if bound is None else f"to at most {bound:g} false alarms"
    what = (
        f"Calibrated the safety check on {calibration.boxes:,} {learnt.data_set['split']} boxes of "
        f"{learnt.data_set['name']} {terms}."
    )
    metrics = {name: value for name, value in loaded.run.metrics.items() if name != NOT_CALIBRATED}
    changed = loaded.changed(replace(loaded.run, safety=learnt, metrics=metrics), what)
    return changed.save_changed(changed.run, loaded.folder)


def _data_set(dataset: Dataset, data: Path, split: str) -> dict[str, str]:
    return {"name": dataset.name, "checksum": checksum(data), "split": split}
