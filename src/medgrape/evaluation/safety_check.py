"""Simulated mistakes: does the safety check warn where a box is said to show what it does not, and only there?

Every box is claimed rightly, and wrongly in every way there is. Beside the model's check stand the paper's, one that
looks at no film, and dropout at reading time.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from medgrape.baselines.mc_dropout import box_uncertainty, quantile_threshold
from medgrape.datasets.cache import CachedFilms
from medgrape.datasets.dataset import Dataset
from medgrape.evaluation.statistics import Interval, interval, resampled_sums
from medgrape.evaluation.telling_apart import TellingApart, tell_apart
from medgrape.model.grape import Grape
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import Run, SafetyRule, SafetyThresholds
from medgrape.safety.boxes import measure_boxes
from medgrape.safety.claims import Alarms, SimulatedClaims, alarms, majority_alarms, most_frequent_concept

MISTAKEN = 0.5
"""p: how probably a box is claimed to show a wrong concept, in the paper's table."""
TRIALS = 5


@dataclass(frozen=True)
class Rate:
    """A share, and how far it may be off by the luck of which patients came."""

    share: float
    interval: Interval | None
    """None where there is one patient only."""


@dataclass(frozen=True)
class Drawn:
    """The paper's way: each box is mistaken by lot, several times over; means and standard deviations."""

    caught: float
    caught_spread: float
    false_alarms: float
    false_alarms_spread: float


@dataclass(frozen=True)
class ConceptAlarms:
    """The claims that name one concept, rightly or wrongly: its part in the balance can be read off them."""

    name: str
    title: str
    boxes: int
    """That show it: claims that name it rightly."""
    wrong: int
    """Claims that name it wrongly, on boxes of other concepts."""
    caught: Rate | None
    """Share of the wrong claims that are warned at; None where there are none."""
    false_alarms: Rate | None
    """Share of the right claims that are warned at; None where there are none."""


@dataclass(frozen=True)
class CheckFigures:
    """How one check does."""

    name: str
    title: str
    caught: Rate | None
    """Share of wrong claims that it warns at. All wrong concepts of a box together count as one claim, which is what
    drawing one of them at random gives on average. None where no claim is wrong."""
    false_alarms: Rate | None
    """Share of right claims that it warns at."""
    balanced: Rate | None
    """(caught + 1 - false alarms) / 2 of the claims that name a concept, averaged over the concepts that are claimed
    both rightly and wrongly. A check that looks at no film gets 0.5, whatever it answers."""
    drawn: Drawn | None
    """None where a draw has no mistaken box, or no other."""
    concepts: tuple[ConceptAlarms, ...]


def check_figures(name: str, title: str, claims: SimulatedClaims, alarms: Alarms, *, seed: int = 0) -> CheckFigures:
    """Count; ``seed`` is that of the resampling and of the paper's draw."""
    rows = _rows(claims, alarms)
    resampled = resampled_sums(rows, claims.films, seed=seed)
    found, rounds = _shares(rows.sum(axis=0, keepdims=True))[0], None if resampled is None else _shares(resampled)
    rates = [_rate(float(share), None if rounds is None else rounds[:, place]) for place, share in enumerate(found)]
    (caught, false_alarms, balanced), each, concepts = rates[:3], rates[3:], list(claims.concepts)
    boxes, wrong = np.bincount(claims.truth, minlength=len(concepts)), claims.wrong.sum(axis=0)
    return CheckFigures(
        name=name,
        title=title,
        caught=caught,
        false_alarms=false_alarms,
        balanced=balanced,
        drawn=_drawn(claims, alarms, seed),
        concepts=tuple(
            ConceptAlarms(
                one.name, one.title, int(boxes[place]), int(wrong[place]), each[place], each[place + len(concepts)]
            )
            for place, one in enumerate(concepts)
        ),
    )


def _rows(claims: SimulatedClaims, alarms: Alarms) -> Float[np.ndarray, "boxes columns"]:
    """Of each box: caught, whether a claim on it is wrong, false alarm, one; then for each claimed concept the wrong
    claims warned at, the wrong claims, the right ones warned at, the right ones. Every share is a ratio of sums."""
    right = np.eye(len(claims.concepts), dtype=bool)[claims.truth]
    refutable, boxes = claims.wrong.any(axis=1), np.ones(len(claims.truth))
    pooled = (claims.caught(alarms), refutable, claims.false_alarms(alarms), boxes)
    return np.column_stack([*pooled, claims.wrong & alarms, claims.wrong, right & alarms, right]).astype(np.float64)


def _shares(sums: Float[np.ndarray, "rounds columns"]) -> Float[np.ndarray, "rounds shares"]:
    """Caught, false alarms and balance of all, then caught and false alarms of each concept; NaN where undefined."""
    caught, refutable, false_alarms, boxes = np.split(sums[:, :4], 4, axis=1)
    wrong_warned, wrong, right_warned, right = np.split(sums[:, 4:], 4, axis=1)
    each = _ratio(wrong_warned, wrong), _ratio(right_warned, right)
    balance = (each[0] + 1 - each[1]) / 2
    known = ~np.isnan(balance)
    mean = _ratio(_sum(np.where(known, balance, 0.0)), _sum(known.astype(np.float64)))
    return np.concatenate([_ratio(caught, refutable), _ratio(false_alarms, boxes), mean, *each], axis=1)


def _sum(each: Float[np.ndarray, "rounds k"]) -> Float[np.ndarray, "rounds 1"]:
    return np.asarray(each.sum(axis=1, keepdims=True))


def _ratio(part: Float[np.ndarray, "rounds k"], whole: Float[np.ndarray, "rounds k"]) -> Float[np.ndarray, "rounds k"]:
    return np.asarray(np.where(whole > 0, part / np.maximum(whole, 1), np.nan))


def _rate(share: float, rounds: Float[np.ndarray, " rounds"] | None) -> Rate | None:
    """None where the share is not defined; rounds in which it is not (no such patient was drawn) do not count."""
    if np.isnan(share):
        return None
    return Rate(share, None if rounds is None else interval(rounds[~np.isnan(rounds)]))


def _drawn(claims: SimulatedClaims, alarms: Alarms, seed: int) -> Drawn | None:
    chance, boxes = np.random.default_rng(seed), np.arange(len(claims.truth))
    trials = []
    for _ in range(TRIALS):
        lots = np.where(claims.wrong, chance.random(claims.wrong.shape), -1.0)
        mistaken = (chance.random(len(boxes)) < MISTAKEN) & claims.wrong.any(axis=1)
        if mistaken.all() or not mistaken.any():
            return None
        warned = alarms[boxes, np.where(mistaken, lots.argmax(axis=1), claims.truth)]
        trials.append((warned[mistaken].mean(), warned[~mistaken].mean()))
    means, spreads = np.mean(trials, axis=0), np.std(trials, axis=0)
    return Drawn(float(means[0]), float(spreads[0]), float(means[1]), float(spreads[1]))


BOUND = 0.10
"""False alarms that dropout's thresholds allow, beside a check that was not calibrated to any share of them."""
CALIBRATED, SETTINGS, PAPER, MAJORITY = "calibrated", "settings", "paper", "majority"


@dataclass(frozen=True)
class Interaction:
    """All checks on the same boxes and the same claims."""

    boxes: int
    films: int
    patients: int
    claims_left_out: int
    """Claims that are neither wrong nor what the box was drawn for: the film has a box of that concept there too."""
    bound: float
    """Share of false alarms that dropout, and a check calibrated to one, were set to on validation boxes."""
    mistaken: float
    """How probably a box is mistaken in the paper's draw."""
    trials: int
    checks: tuple[CheckFigures, ...]
    telling_apart: TellingApart
    """What the checks have to go by: how well the maps tell findings apart inside the boxes."""
    warnings: tuple[str, ...]

    def named(self, name: str) -> CheckFigures | None:
        """One check, where it is there."""
        return next((check for check in self.checks if check.name == name), None)

    @property
    def main(self) -> CheckFigures:
        """The check that the run uses: the paper's, unless it was calibrated or has other settings."""
        return self.named(CALIBRATED) or self.named(SETTINGS) or self.checks[0]


def simulate_mistakes(
    run: Run, dataset: Dataset, cached: CachedFilms, split: str, track: Track = quietly, *, seed: int = 0
) -> Interaction | None:
    """The study on all boxes of a split; None where it has none that can be read."""
    seen = measure_boxes(run, dataset, cached, split, track)
    if not seen:
        return None
    claims = SimulatedClaims.on(seen, dataset)
    bound = BOUND if run.safety is None else run.safety.max_false_alarms or BOUND

    def checked(rule: SafetyRule) -> Alarms:
        return alarms(seen, run.concepts, dataset.concepts, rule)

    found = [*_rules(run, checked), *_majority(dataset, claims)]
    dropout = list(_dropout(run, dataset, cached, split, bound, track, seed=seed))
    return Interaction(
        boxes=len(seen),
        films=len({one.film.id for one in seen}),
        patients=len({one.patient for one in seen}),
        claims_left_out=claims.left_out,
        bound=bound,
        mistaken=MISTAKEN,
        trials=TRIALS,
        checks=tuple(check_figures(name, title, claims, one, seed=seed) for name, title, one in found + dropout),
        telling_apart=tell_apart(seen, run.concepts, claims, seed=seed),
        warnings=_warnings(run, dataset, has_dropout=bool(dropout)),
    )


Check = tuple[str, str, Alarms]
"""Name, words, and where it warns."""


def _rules(run: Run, checked: Callable[[SafetyRule], Alarms]) -> Iterator[Check]:
    paper, own = SafetyRule.plain(), SafetyRule.of(run)
    yield PAPER, f"the paper's ({_values(paper)})", checked(paper)
    yield "ungated", "the paper's without its gate", checked(SafetyRule.plain(gate=math.inf))
    if run.safety is not None:
        yield CALIBRATED, _terms(run.safety), checked(own)
    elif own.untrained or _values(own) != _values(paper):
        yield SETTINGS, f"by this run's settings ({_values(own)})", checked(own)


def _terms(learnt: SafetyThresholds) -> str:
    if learnt.max_false_alarms is None:
        return "calibrated for balance"
    return f"calibrated to {learnt.max_false_alarms:g} false alarms"


def _values(rule: SafetyRule) -> str:
    return f"lead {rule.lead(''):g}, gate {rule.gate:g}"


def _majority(dataset: Dataset, claims: SimulatedClaims) -> Iterator[Check]:
    answer = most_frequent_concept(dataset)
    if answer is not None:
        yield MAJORITY, f"always “{dataset.concepts[answer].title}”", majority_alarms(answer, claims)


def _dropout(
    run: Run, dataset: Dataset, cached: CachedFilms, split: str, bound: float, track: Track, *, seed: int
) -> Iterator[Check]:
    """Both variants, each with the threshold that lets just so many correct validation boxes through.

    An export gives no features to drop anything from, so there it has none.
    """
    if not isinstance(run.model, Grape):
        return
    learnt = box_uncertainty(run, dataset, cached, "val", track, seed=seed)
    if not len(learnt):
        return
    tested = learnt if split == "val" else box_uncertainty(run, dataset, cached, split, track, seed=seed)
    claimed = [run.concepts.index(name) for name in dataset.concepts.names]
    limit = quantile_threshold(learnt.variance_of_truth, bound)
    yield "dropout_variance", "MC-dropout, variance of the claimed finding", tested.variance[:, claimed] > limit
    undecided = tested.entropy > quantile_threshold(learnt.entropy, bound)
    yield "dropout_entropy", "MC-dropout, entropy of the classes", np.tile(undecided[:, None], (1, len(claimed)))


def _warnings(run: Run, dataset: Dataset, *, has_dropout: bool) -> tuple[str, ...]:
    told = []
    if run.safety is None:
        told.append(
            "The safety check was never calibrated, so the thresholds of the settings count; see medgrape calibrate."
        )
    if most_frequent_concept(dataset) is None:
        told.append("The training films have no box, so there is no commonest finding to compare the check with.")
    if not isinstance(run.model, Grape):
        told.append("An exported model cannot read with dropout, so MC-dropout is left out; evaluate its run for it.")
    elif not has_dropout:
        told.append("The validation films have no box, so MC-dropout has no threshold and is left out.")
    return tuple(told)
