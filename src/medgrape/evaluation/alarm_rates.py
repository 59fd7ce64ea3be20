"""How often a safety check warns at wrong claims and at right ones: pooled, by concept, and as the paper draws it."""

from dataclasses import dataclass

import numpy as np
from einops import rearrange
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
    """The boxes that show one concept."""

    name: str
    title: str
    boxes: int
    caught: Rate | None
    """None where no claim on them is wrong."""
    false_alarms: Rate | None
    """None where there are no such boxes."""


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
    """(caught + 1 - false alarms) / 2, averaged over the concepts; always warning, or never, gets 0.5."""
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
    boxes = np.bincount(claims.truth, minlength=len(concepts))
    return CheckFigures(
        name=name,
        title=title,
        caught=caught,
        false_alarms=false_alarms,
        balanced=balanced,
        drawn=_drawn(claims, alarms, seed),
        concepts=tuple(
            ConceptAlarms(one.name, one.title, int(boxes[place]), each[place], each[place + len(concepts)])
            for place, one in enumerate(concepts)
        ),
    )


def _rows(claims: Claims, alarms: Alarms) -> Float[np.ndarray, "boxes columns"]:
    """For each true concept: caught, boxes with wrong claims, false alarms, boxes. Every share is a ratio of these."""
    shows = np.eye(len(claims.concepts))[claims.truth]
    refutable, boxes = claims.wrong.any(axis=1), np.ones(len(claims.truth))
    columns = np.column_stack([claims.caught(alarms), refutable, claims.false_alarms(alarms), boxes])
    return rearrange(columns[:, :, None] * shows[:, None, :], "boxes kinds k -> boxes (kinds k)")


def _shares(sums: Float[np.ndarray, "rounds columns"]) -> Float[np.ndarray, "rounds shares"]:
    """Caught, false alarms and balance of all, then caught and false alarms of each concept; NaN where undefined."""
    caught, refutable, false_alarms, boxes = np.split(sums, 4, axis=1)
    each = _ratio(caught, refutable), _ratio(false_alarms, boxes)
    balance = (each[0] + 1 - each[1]) / 2
    known = ~np.isnan(balance)
    pooled = (
        _ratio(_sum(caught), _sum(refutable)),
        _ratio(_sum(false_alarms), _sum(boxes)),
        _ratio(_sum(np.where(known, balance, 0.0)), _sum(known.astype(np.float64))),
    )
    return np.concatenate([*pooled, *each], axis=1)


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
