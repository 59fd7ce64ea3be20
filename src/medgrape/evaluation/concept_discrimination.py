"""How well the maps discriminate between findings inside a box.

The pointing game measures where a finding is; this measures which finding it is. The score of a box is the lead of one
concept's mean map over another's inside it, from which the safety check decides, but without a threshold. If a film has
boxes of both concepts in nearly the same place, these boxes do not count.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float

from medgrape.concepts import ConceptSet
from medgrape.evaluation.statistics import Interval, auc, count_patients, interval, resampled_aucs
from medgrape.safety.boxes import MeasuredBox
from medgrape.safety.claims import SimulatedClaims

MOST_IN_PAIRS = 3  # more concepts than this are each compared with all others together, as pairs would be too many


@dataclass(frozen=True)
class PairDiscrimination:
    """One finding against another, or against all others that have boxes."""

    name: str
    title: str
    against: str | None  # None: all others
    against_title: str
    boxes: int  # boxes of the finding
    other_boxes: int
    auc: float | None
    """Probability that the finding leads by more in a box of its own than in another; None without boxes of both."""
    interval: Interval | None  # None for a single patient


@dataclass(frozen=True)
class ConceptDiscrimination:
    """All findings that have boxes."""

    pairs: tuple[PairDiscrimination, ...]  # empty if fewer than two findings have boxes
    mean_auc: float | None  # over the pairs with an AUC
    chance: float = 0.5  # AUC of random maps


def discriminate(
    boxes: Sequence[MeasuredBox], known: ConceptSet, claims: SimulatedClaims, *, seed: int = 0
) -> ConceptDiscrimination:
    """Compare the maps inside the boxes; ``known`` are the model's concepts, ``seed`` is that of the resampling."""
    means = np.array([box.means.tolist() for box in boxes]).reshape(len(boxes), len(known))
    means = means[:, [known.index(name) for name in claims.concepts.names]]
    pairs = tuple(_compare(means, claims, concept, rivals, seed) for concept, rivals in _comparisons(claims))
    aucs = [pair.auc for pair in pairs if pair.auc is not None]
    return ConceptDiscrimination(pairs, float(np.mean(aucs)) if aucs else None)


def _comparisons(claims: SimulatedClaims) -> Iterator[tuple[int, list[int]]]:
    """Yield the concepts to compare: each pair, or each against all others."""
    boxed = np.unique(claims.truth).tolist()
    if len(boxed) <= MOST_IN_PAIRS:
        yield from ((concept, [other]) for concept, other in combinations(boxed, 2))
    else:
        yield from ((concept, [other for other in boxed if other != concept]) for concept in boxed)


def _compare(
    means: Float[np.ndarray, "boxes claims"], claims: SimulatedClaims, concept: int, rivals: list[int], seed: int
) -> PairDiscrimination:
    own = (claims.truth == concept) & claims.wrong[:, rivals].all(axis=1)
    others = np.isin(claims.truth, rivals) & claims.wrong[:, concept]
    rows = np.flatnonzero(own | others)
    leads = (means[:, concept] - means[:, rivals].max(axis=1))[rows]
    films, bounds = [claims.films[row] for row in rows], None
    if count_patients(films) > 1:
        resampled = resampled_aucs(own[rows], leads, np.ones((1, len(rows)), dtype=bool), films, seed=seed)
        resampled = resampled[~np.isnan(resampled)]
        bounds = interval(resampled) if resampled.size else None
    concepts = claims.concepts.concepts
    other = concepts[rivals[0]] if len(rivals) == 1 else None
    return PairDiscrimination(
        name=concepts[concept].name,
        title=concepts[concept].title,
        against=None if other is None else other.name,
        against_title="all others" if other is None else other.title,
        boxes=int(own.sum()),
        other_boxes=int(others.sum()),
        auc=auc(own[rows], leads),
        interval=bounds,
    )
