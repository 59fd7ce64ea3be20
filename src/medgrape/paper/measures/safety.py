"""The safety check on every box of the test films: thresholds, miscorrection rates, mean or maximum, MC-dropout."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from medgrape.baselines.mc_dropout import PASSES, box_uncertainty, quantile_threshold
from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset, check_concepts
from medgrape.evaluation.safety_check import check_figures
from medgrape.evaluation.statistics import ROUNDS, interval
from medgrape.progress import Track
from medgrape.runs.checkpoint import LoadedRun, Run, SafetyRule
from medgrape.safety.boxes import look
from medgrape.safety.claims import Alarms, Claims, alarms, always, commonest

ETAS = (0.01, 0.03, 0.05, 0.10, 0.20)
GATES = (math.inf, 1e-3, 5e-4, 2e-4, 1e-4)
RATES = (0.0, 0.10, 0.25, 0.50, 1.0)
"""Shares of boxes that are claimed to show what they do not."""
ETA = 0.05


def measure_safety(loaded: LoadedRun, data: Path, track: Track) -> dict[str, Any]:
    """All checks on the same boxes; empty where the test films have none."""
    run, dataset = loaded.run, Dataset.load(data)
    check_concepts(run.concepts, dataset)
    cached = cached_films(run.config, dataset, data, track)
    seen = look(run, dataset, cached, "test", track)
    if not seen:
        return {}
    claims = Claims.on(seen, dataset)

    def checked(rule: SafetyRule) -> Alarms:
        return alarms(seen, run.concepts, dataset.concepts, rule)

    found = dict(_sweeps(run, checked))
    found["mean"] = checked(SafetyRule.plain(ETA, math.inf))
    highest = look(run, dataset, cached, "test", track, highest=True)
    found["max"] = alarms(highest, run.concepts, dataset.concepts, SafetyRule.plain(ETA, math.inf))
    answer = commonest(dataset)
    if answer is not None:
        found["majority"] = always(answer, claims)
    validation = look(run, dataset, cached, "val", track)
    if validation:
        right = Claims.on(validation, dataset)
        own = alarms(validation, run.concepts, dataset.concepts, SafetyRule.plain(ETA, math.inf))
        bound = float(right.false_alarms(own).mean())
        found |= dict(_dropout(run, dataset, doubts=_doubts(run, dataset, cached, track), bound=bound))
    return {
        "boxes": len(seen),
        "patients": len({one.patient for one in seen}),
        "passes": PASSES,
        "commonest": answer,
        "checks": {name: asdict(check_figures(name, name, claims, one)) for name, one in found.items()},
        "rates": [_miscorrected(claims, found["mean"], rate) for rate in RATES],
        "majority_rates": [_miscorrected(claims, found["majority"], rate) for rate in RATES] if answer else [],
    }


def _sweeps(run: Run, checked: Any) -> Iterator[tuple[str, Alarms]]:  # noqa: ANN401 (a function of a rule)
    for eta in ETAS:
        yield f"eta.{eta:.2f}", checked(SafetyRule.plain(eta, math.inf))
    for gate in GATES:
        yield f"gate.{gate:g}", checked(SafetyRule.plain(ETA, gate))
    if run.safety is not None:
        yield "calibrated", checked(SafetyRule.of(run))


def _doubts(run: Run, dataset: Dataset, cached: Any, track: Track) -> tuple[Any, Any]:  # noqa: ANN401
    return box_uncertainty(run, dataset, cached, "val", track), box_uncertainty(run, dataset, cached, "test", track)


def _dropout(run: Run, dataset: Dataset, *, doubts: tuple[Any, Any], bound: float) -> Iterator[tuple[str, Alarms]]:
    """Both variants, at thresholds that give as many false alarms on validation boxes as the check itself does."""
    learnt, tested = doubts
    bound = min(bound, 1 - 1 / max(len(learnt), 1))
    claimed = [run.concepts.index(name) for name in dataset.concepts.names]
    yield "dropout.variance", tested.variance[:, claimed] > quantile_threshold(learnt.variance_of_truth, bound)
    undecided = tested.entropy > quantile_threshold(learnt.entropy, bound)
    yield "dropout.entropy", np.tile(undecided[:, None], (1, len(claimed)))


def _miscorrected(claims: Claims, warned: Alarms, rate: float) -> dict[str, Any]:
    """The paper's draw, a thousand times: patients by lot, and by lot which of their boxes are claimed wrongly, how.

    Shares are over all rounds; intervals hold the luck of the patients and of the draw.
    """
    chance = np.random.default_rng(0)
    names, owner = np.unique([film.patient or film.id for film in claims.films], return_inverse=True)
    possible, boxes = claims.wrong.any(axis=1), np.arange(len(claims.truth))
    caught, false_alarms = [], []
    for _ in range(ROUNDS):
        times = np.bincount(chance.integers(len(names), size=len(names)), minlength=len(names))[owner]
        lots = np.where(claims.wrong, chance.random(claims.wrong.shape), -1.0).argmax(axis=1)
        mistaken = (chance.random(len(boxes)) < rate) & possible
        alarm = warned[boxes, np.where(mistaken, lots, claims.truth)]
        caught += _share(alarm[mistaken], times[mistaken])
        false_alarms += _share(alarm[~mistaken], times[~mistaken])
    return {"rate": rate, "caught": _told(caught), "false_alarms": _told(false_alarms)}


def _share(alarm: np.ndarray, times: np.ndarray) -> list[float]:
    return [float((alarm * times).sum() / times.sum())] if times.sum() else []


def _told(shares: list[float]) -> dict[str, float] | None:
    if not shares:
        return None
    bounds = interval(np.array(shares))
    return {"mean": float(np.mean(shares)), "low": bounds.low, "high": bounds.high}
