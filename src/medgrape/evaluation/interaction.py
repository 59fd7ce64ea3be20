"""Simulated mistakes: does the safety check warn where a box is said to show what it does not, and only there?

Every box is claimed rightly, and wrongly in every way there is. Beside the model's check stand the paper's, one that
looks at no film, and dropout at reading time.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from medgrape.baselines.mc_dropout import doubt, quantile_threshold
from medgrape.data.cache import CachedFilms
from medgrape.data.dataset import Dataset
from medgrape.evaluation.alarm_rates import MISTAKEN, TRIALS, CheckFigures, check_figures
from medgrape.evaluation.telling_apart import TellingApart, tell_apart
from medgrape.feedback.boxes import look
from medgrape.feedback.claims import Alarms, Claims, alarms, always, commonest
from medgrape.feedback.safety import SafetyRule
from medgrape.model.checkpoint import Run
from medgrape.model.grape import Grape
from medgrape.model.safety_thresholds import SafetyThresholds
from medgrape.progress import Track, quietly

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
    seen = look(run, dataset, cached, split, track)
    if not seen:
        return None
    claims = Claims.on(seen, dataset)
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
    elif own.unbelieved or _values(own) != _values(paper):
        yield SETTINGS, f"by this run's settings ({_values(own)})", checked(own)


def _terms(learnt: SafetyThresholds) -> str:
    if learnt.max_false_alarms is None:
        return "calibrated for balance"
    return f"calibrated to {learnt.max_false_alarms:g} false alarms"


def _values(rule: SafetyRule) -> str:
    return f"lead {rule.lead(''):g}, gate {rule.gate:g}"


def _majority(dataset: Dataset, claims: Claims) -> Iterator[Check]:
    answer = commonest(dataset)
    if answer is not None:
        yield MAJORITY, f"always “{dataset.concepts[answer].title}”", always(answer, claims)


def _dropout(
    run: Run, dataset: Dataset, cached: CachedFilms, split: str, bound: float, track: Track, *, seed: int
) -> Iterator[Check]:
    """Both variants, each with the threshold that lets just so many correct validation boxes through.

    An export gives no features to drop anything from, so there it has none.
    """
    if not isinstance(run.model, Grape):
        return
    learnt = doubt(run, dataset, cached, "val", track, seed=seed)
    if not len(learnt):
        return
    tested = learnt if split == "val" else doubt(run, dataset, cached, split, track, seed=seed)
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
    if commonest(dataset) is None:
        told.append("The training films have no box, so there is no commonest finding to compare the check with.")
    if not isinstance(run.model, Grape):
        told.append("An exported model cannot read with dropout, so MC-dropout is left out; evaluate its run for it.")
    elif not has_dropout:
        told.append("The validation films have no box, so MC-dropout has no threshold and is left out.")
    return tuple(told)
