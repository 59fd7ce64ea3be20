"""Inside a box that somebody drew, do the maps tell which finding it shows?

Pointing asks where; this asks what. A box is measured by how far one concept's mean map inside it leads over another's:
the very numbers that the safety check goes by, without any threshold. Where a film has boxes of both in nearly the same
place, nobody could say which of them is right, and they count neither way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float

from medgrape.concepts import ConceptSet
from medgrape.evaluation.statistics import Interval, auc, interval, resampled_aucs
from medgrape.safety.boxes import MeasuredBox
from medgrape.safety.claims import SimulatedClaims

CHANCE = 0.5
MOST_IN_PAIRS = 3
"""With more concepts than this, each is told from all others together: pairs would be too many to read."""


@dataclass(frozen=True)
class ToldApart:
    """One finding against another, or against all others that have boxes."""

    name: str
    title: str
    against: str | None
    """The other one; None is all others."""
    against_title: str
    boxes: int
    """That show the one."""
    other_boxes: int
    auc: float | None
    """How probably the one leads by more inside a box of its own than inside another; None without boxes of both."""
    interval: Interval | None
    """None where there is one patient only."""


@dataclass(frozen=True)
class TellingApart:
    """All findings that have boxes."""

    pairs: tuple[ToldApart, ...]
    """Empty where fewer than two findings have boxes."""
    mean_auc: float | None
    """Over the pairs that have one."""
    chance: float = CHANCE
    """Maps that know nothing."""


def tell_apart(
    seen: Sequence[MeasuredBox], known: ConceptSet, claims: SimulatedClaims, *, seed: int = 0
) -> TellingApart:
    """Compare what was seen inside the boxes; ``known`` are the model's concepts, ``seed`` is that of resampling."""
    means = np.array([one.means.tolist() for one in seen]).reshape(len(seen), len(known))
    ordered = means[:, [known.index(name) for name in claims.concepts.names]]
    pairs = tuple(_told(ordered, claims, one, rivals, seed) for one, rivals in _contests(claims))
    aucs = [pair.auc for pair in pairs if pair.auc is not None]
    return TellingApart(pairs, float(np.mean(aucs)) if aucs else None)


def _contests(claims: SimulatedClaims) -> Iterator[tuple[int, list[int]]]:
    """Which concepts are told apart: each pair, or each against the others."""
    boxed = np.unique(claims.truth).tolist()
    if len(boxed) <= MOST_IN_PAIRS:
        yield from ((one, [other]) for one, other in combinations(boxed, 2))
    else:
        yield from ((one, [other for other in boxed if other != one]) for one in boxed)


def _told(
    means: Float[np.ndarray, "boxes claims"], claims: SimulatedClaims, one: int, rivals: list[int], seed: int
) -> ToldApart:
    own = (claims.truth == one) & claims.wrong[:, rivals].all(axis=1)
    others = np.isin(claims.truth, rivals) & claims.wrong[:, one]
    chosen = np.flatnonzero(own | others)
    leads = (means[:, one] - means[:, rivals].max(axis=1))[chosen]
    resampled = resampled_aucs(own[chosen], leads, [claims.films[place] for place in chosen], seed=seed)
    concepts = claims.concepts.concepts
    other = concepts[rivals[0]] if len(rivals) == 1 else None
    return ToldApart(
        name=concepts[one].name,
        title=concepts[one].title,
        against=None if other is None else other.name,
        against_title="all others" if other is None else other.title,
        boxes=int(own.sum()),
        other_boxes=int(others.sum()),
        auc=auc(own[chosen], leads),
        interval=interval(resampled) if resampled.size else None,
    )
