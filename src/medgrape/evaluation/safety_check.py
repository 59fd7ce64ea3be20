"""Evaluation of the safety check by simulated mistakes: does it warn at wrong claims about a box, and only at those?

Every box is claimed to show its own concept and, in turn, every wrong one. Beside the model's check stand the paper's
check, a trivial check that ignores the film, and MC-dropout.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from medgrape.baselines.mc_dropout import box_uncertainty, quantile_threshold
from medgrape.datasets.cache import CachedFilms
from medgrape.datasets.dataset import Dataset
from medgrape.evaluation.concept_discrimination import ConceptDiscrimination, discriminate
from medgrape.evaluation.statistics import Interval, interval, ratio, resampled_sums
from medgrape.model.grape import Grape
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import Run, SafetyRule
from medgrape.safety.boxes import MeasuredBox, measure_boxes
from medgrape.safety.claims import Alarms, SimulatedClaims, alarms, majority_alarms, most_frequent_concept

MISTAKEN = 0.5  # probability p of a wrong claim in the paper's table
TRIALS = 5


@dataclass(frozen=True)
class Rate:
    """A share with its interval over patients."""

    share: float
    interval: Interval | None  # None for a single patient


@dataclass(frozen=True)
class RandomClaims:
    """The paper's evaluation: wrong claims are drawn at random in several trials; means and standard deviations."""

    caught: float
    caught_spread: float
    false_alarms: float
    false_alarms_spread: float


@dataclass(frozen=True)
class ConceptAlarms:
    """The claims that name one concept, right or wrong."""

    name: str
    title: str
    boxes: int  # boxes that show it: right claims
    wrong: int  # wrong claims, on boxes of other concepts
    caught: Rate | None  # share of the wrong claims with a warning; None without wrong claims
    false_alarms: Rate | None  # share of the right claims with a warning; None without right claims


@dataclass(frozen=True)
class CheckFigures:
    """Results of one safety check."""

    name: str
    title: str
    caught: Rate | None
    """Share of wrong claims with a warning; None without wrong claims. All wrong concepts of a box together count as
    one claim, which equals drawing one of them at random on average."""
    false_alarms: Rate | None  # share of right claims with a warning
    balanced: Rate | None
    """(caught + 1 - false alarms) / 2 of the claims that name a concept, averaged over the concepts with both right and
    wrong claims. A check that ignores the film gets 0.5."""
    drawn: RandomClaims | None  # None if a trial has only wrong or only right claims
    concepts: tuple[ConceptAlarms, ...]


def check_figures(name: str, title: str, claims: SimulatedClaims, alarms: Alarms, *, seed: int = 0) -> CheckFigures:
    """Compute the figures of one check; ``seed`` is that of the resampling and of the random claims."""
    counts = _box_counts(claims, alarms)
    shares = _shares(counts.sum(axis=0, keepdims=True))[0]
    sums = resampled_sums(counts, claims.films, seed=seed)
    resampled = None if sums is None else _shares(sums)

    def rate(column: int) -> Rate | None:
        if np.isnan(shares[column]):
            return None
        rounds = None if resampled is None else resampled[:, column]
        return Rate(float(shares[column]), None if rounds is None else interval(rounds[~np.isnan(rounds)]))

    count = len(claims.concepts)
    boxes, wrong = np.bincount(claims.truth, minlength=count), claims.wrong.sum(axis=0)
    return CheckFigures(
        name=name,
        title=title,
        caught=rate(0),
        false_alarms=rate(1),
        balanced=rate(2),
        drawn=_random_claims(claims, alarms, seed),
        concepts=tuple(
            ConceptAlarms(c.name, c.title, int(boxes[k]), int(wrong[k]), rate(3 + k), rate(3 + count + k))
            for k, c in enumerate(claims.concepts)
        ),
    )


def _box_counts(claims: SimulatedClaims, alarms: Alarms) -> Float[np.ndarray, "boxes columns"]:
    """Return the counts of each box. All rates are ratios of sums of these columns.

    First four columns: caught, can be claimed wrongly, false alarm, 1. Then four blocks with one column for each
    claimed concept: wrong claims with a warning, wrong claims, right claims with a warning, right claims.
    """
    right = np.eye(len(claims.concepts), dtype=bool)[claims.truth]
    refutable, boxes = claims.wrong.any(axis=1), np.ones(len(claims.truth))
    pooled = (claims.caught(alarms), refutable, claims.false_alarms(alarms), boxes)
    return np.column_stack([*pooled, claims.wrong & alarms, claims.wrong, right & alarms, right]).astype(np.float64)


def _shares(sums: Float[np.ndarray, "rounds columns"]) -> Float[np.ndarray, "rounds shares"]:
    """Return caught, false alarms and balance, then each concept's caught, then its false alarms; NaN if undefined."""
    caught, refutable, false_alarms, boxes = np.split(sums[:, :4], 4, axis=1)
    wrong_warned, wrong, right_warned, right = np.split(sums[:, 4:], 4, axis=1)
    by_concept = ratio(wrong_warned, wrong), ratio(right_warned, right)
    balance = (by_concept[0] + 1 - by_concept[1]) / 2
    known = (~np.isnan(balance)).astype(np.float64)
    mean = ratio(np.nansum(balance, axis=1, keepdims=True), known.sum(axis=1, keepdims=True))
    return np.concatenate([ratio(caught, refutable), ratio(false_alarms, boxes), mean, *by_concept], axis=1)


def _random_claims(claims: SimulatedClaims, alarms: Alarms, seed: int) -> RandomClaims | None:
    generator, boxes = np.random.default_rng(seed), np.arange(len(claims.truth))
    trials = []
    for _ in range(TRIALS):
        lots = np.where(claims.wrong, generator.random(claims.wrong.shape), -1.0)
        mistaken = (generator.random(len(boxes)) < MISTAKEN) & claims.wrong.any(axis=1)
        if mistaken.all() or not mistaken.any():
            return None
        warned = alarms[boxes, np.where(mistaken, lots.argmax(axis=1), claims.truth)]
        trials.append((warned[mistaken].mean(), warned[~mistaken].mean()))
    means, spreads = np.mean(trials, axis=0), np.std(trials, axis=0)
    return RandomClaims(float(means[0]), float(spreads[0]), float(means[1]), float(spreads[1]))


BOUND = 0.10  # false alarms allowed to MC-dropout, if the run's check is not calibrated to a share of its own
CALIBRATED, SETTINGS, PAPER, MAJORITY = "calibrated", "settings", "paper", "majority"


@dataclass(frozen=True)
class SafetyCheckResults:
    """All checks on the same boxes and the same claims."""

    boxes: int
    films: int
    patients: int
    claims_left_out: int  # neither right nor wrong: the film has a box of that concept in nearly the same place
    bound: float
    """Share of false alarms on validation boxes to which MC-dropout, and a check calibrated to a share, were set."""
    mistaken: float  # probability of a wrong claim in the paper's evaluation
    trials: int
    checks: tuple[CheckFigures, ...]
    telling_apart: ConceptDiscrimination
    warnings: tuple[str, ...]

    def named(self, name: str) -> CheckFigures | None:
        """Return the check of that name; None if it was not evaluated."""
        return next((check for check in self.checks if check.name == name), None)

    @property
    def main(self) -> CheckFigures:
        """The check that the run uses: the paper's, unless it is calibrated or has other settings."""
        return self.named(CALIBRATED) or self.named(SETTINGS) or self.checks[0]


Check = tuple[str, str, Alarms]
"""Name, title and warnings of a check."""


def simulate_mistakes(
    run: Run, dataset: Dataset, cached: CachedFilms, split: str, track: Track = quietly, *, seed: int = 0
) -> SafetyCheckResults | None:
    """Evaluate all checks on the boxes of a split; None if none of them can be read."""
    boxes = measure_boxes(run, dataset, cached, split, track)
    if not boxes:
        return None
    claims = SimulatedClaims.on(boxes, dataset)
    bound = BOUND if run.safety is None else run.safety.max_false_alarms or BOUND
    checks = list(_rule_checks(run, dataset, boxes))
    answer = most_frequent_concept(dataset)
    if answer is not None:
        checks.append((MAJORITY, f"always “{dataset.concepts[answer].title}”", majority_alarms(answer, claims)))
    dropout = list(_dropout_checks(run, dataset, cached, split, bound, track, seed=seed))
    return SafetyCheckResults(
        boxes=len(boxes),
        films=len({box.film.id for box in boxes}),
        patients=len({box.patient for box in boxes}),
        claims_left_out=claims.left_out,
        bound=bound,
        mistaken=MISTAKEN,
        trials=TRIALS,
        checks=tuple(check_figures(name, title, claims, warned, seed=seed) for name, title, warned in checks + dropout),
        telling_apart=discriminate(boxes, run.concepts, claims, seed=seed),
        warnings=tuple(_warnings(run, has_majority=answer is not None, has_dropout=bool(dropout))),
    )


def _rule_checks(run: Run, dataset: Dataset, boxes: tuple[MeasuredBox, ...]) -> Iterator[Check]:
    """Yield the paper's check with and without its gate, and the run's own if that differs."""
    paper, ungated, own = SafetyRule.plain(), SafetyRule.plain(gate=math.inf), SafetyRule.of(run)
    values = [f"lead {rule.lead(''):g}, gate {rule.gate:g}" for rule in (paper, own)]
    yield PAPER, f"the paper's ({values[0]})", alarms(boxes, run.concepts, dataset.concepts, paper)
    yield "ungated", "the paper's without its gate", alarms(boxes, run.concepts, dataset.concepts, ungated)
    warned = alarms(boxes, run.concepts, dataset.concepts, own)
    if run.safety is not None:
        share = run.safety.max_false_alarms
        yield CALIBRATED, f"calibrated {'for balance' if share is None else f'to {share:g} false alarms'}", warned
    elif own.untrained or values[0] != values[1]:
        yield SETTINGS, f"by this run's settings ({values[1]})", warned


def _dropout_checks(
    run: Run, dataset: Dataset, cached: CachedFilms, split: str, bound: float, track: Track, *, seed: int
) -> Iterator[Check]:
    """Yield both variants of MC-dropout, with thresholds that give ``bound`` false alarms on validation boxes.

    An exported model has no features to drop, so it has none.
    """
    if not isinstance(run.model, Grape):
        return
    validation = box_uncertainty(run, dataset, cached, "val", track, seed=seed)
    if not len(validation):
        return
    tested = validation if split == "val" else box_uncertainty(run, dataset, cached, split, track, seed=seed)
    claimed = [run.concepts.index(name) for name in dataset.concepts.names]
    limit = quantile_threshold(validation.variance_of_truth, bound)
    yield "dropout_variance", "MC-dropout, variance of the claimed finding", tested.variance[:, claimed] > limit
    undecided = tested.entropy > quantile_threshold(validation.entropy, bound)
    yield "dropout_entropy", "MC-dropout, entropy of the classes", np.tile(undecided[:, None], (1, len(claimed)))


def _warnings(run: Run, *, has_majority: bool, has_dropout: bool) -> Iterator[str]:
    if run.safety is None:
        yield "The safety check was never calibrated, so the thresholds of the settings count; see medgrape calibrate."
    if not has_majority:
        yield "The training films have no box, so there is no commonest finding to compare the check with."
    if not isinstance(run.model, Grape):
        yield "An exported model cannot read with dropout, so MC-dropout is left out; evaluate its run for it."
    elif not has_dropout:
        yield "The validation films have no box, so MC-dropout has no threshold and is left out."
