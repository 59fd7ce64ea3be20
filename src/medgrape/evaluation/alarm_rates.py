"""How often a safety check warns at wrong claims and at right ones: pooled, by claimed concept, as the paper draws it.

By claimed concept, because a check that looks at no film can only go by the claim: whatever its answer, it warns at
claims of a concept either always or never, and so catches of the wrong ones just the share that it doubts of the right
ones. Counted by the concept that a box truly shows, one answer would look better than that, as soon as a concept may be
claimed that no box shows.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from medgrape.evaluation.statistics import Interval, interval, resampled_sums
from medgrape.feedback.claims import Alarms, Claims

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


def check_figures(name: str, title: str, claims: Claims, alarms: Alarms, *, seed: int = 0) -> CheckFigures:
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


def _rows(claims: Claims, alarms: Alarms) -> Float[np.ndarray, "boxes columns"]:
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


def _drawn(claims: Claims, alarms: Alarms, seed: int) -> Drawn | None:
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
