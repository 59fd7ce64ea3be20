"""Does a concept's map point at the finding, and better than somebody who never saw the film?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from medgrape.data.dataset import FilmRecord
from medgrape.data.guessing import Guess
from medgrape.evaluation.pointing import Pair, blind_guess, point
from medgrape.evaluation.readings import Readings
from medgrape.evaluation.statistics import Interval, interval, resampled_sums

__all__ = ["ConceptPointing", "HitRate", "Localisation", "Pair", "Pointing", "localise"]


@dataclass(frozen=True)
class HitRate:
    """How often the highest point of a map lies in a box of its concept."""

    hits: int
    share: float
    interval: Interval | None
    """None where there is one patient only."""


@dataclass(frozen=True)
class Pointing:
    """The pointing game over some pairs or films, by each map, and what blind pointing gets on the same ones."""

    count: int
    mean: HitRate
    """By the mean over the concept's prototypes."""
    maximum: HitRate
    """By the maximum over the concept's prototypes."""
    cam: HitRate | None
    """By the CAM head, which knows no prototypes; None where one of the concepts was learnt later and has no CAM."""
    chance: float
    """A random point."""
    fixed: float | None
    """One fixed point for each concept, learnt from the training boxes; None where those have no box of it."""


@dataclass(frozen=True)
class ConceptPointing:
    """One concept."""

    name: str
    title: str
    pointing: Pointing | None
    """None where no film that was read has a box of it."""
    fixed_point: tuple[float, float] | None
    """Where the fixed point is, from 0 to 1 across and down."""


@dataclass(frozen=True)
class Localisation:
    """The pointing game, counted in two ways.

    By pair: every film and concept with a box counts once. By film: every film with a box counts once, and is hit
    when at least one of its concepts' points lies in a box of that same concept. A film with several concepts is thus
    easier by film, for the model and for blind pointing alike.
    """

    per_pair: Pointing | None
    """Over all concepts; None where no film that was read has a box."""
    per_film: Pointing | None
    concepts: tuple[ConceptPointing, ...]
    pairs: tuple[Pair, ...]
    warnings: tuple[str, ...]


def localise(readings: Readings, *, seed: int = 0) -> Localisation:
    """Play the pointing game; ``seed`` is that of the intervals' resampling."""
    films = {film.id: film for film in readings.films}
    guesses = {name: blind_guess(readings, name) for name in readings.dataset.concepts.names}
    concepts: list[ConceptPointing] = []
    pairs: list[Pair] = []
    for concept in readings.dataset.concepts:
        blind = guesses[concept.name]
        own = [] if blind is None else list(point(readings, concept, blind))
        counted = None if blind is None else _by_pair(own, films, seed, learnt=blind.point is not None)
        concepts.append(ConceptPointing(concept.name, concept.title, counted, blind.point if blind else None))
        pairs += own
    learnt = any(blind.point is not None for blind in guesses.values() if blind)
    return Localisation(
        per_pair=_by_pair(pairs, films, seed, learnt=learnt) if pairs else None,
        per_film=_by_film(pairs, films, seed, learnt=learnt) if pairs else None,
        concepts=tuple(concepts),
        pairs=tuple(pairs),
        warnings=_warnings(concepts, guesses),
    )


def _by_pair(pairs: Sequence[Pair], films: dict[str, FilmRecord], seed: int, *, learnt: bool) -> Pointing:
    blind = np.array([(pair.chance, pair.fixed) for pair in pairs])
    return _counted(_hits(pairs), blind, [films[pair.film] for pair in pairs], seed, learnt=learnt)


def _by_film(pairs: Sequence[Pair], films: dict[str, FilmRecord], seed: int, *, learnt: bool) -> Pointing:
    names, owner = np.unique([pair.film for pair in pairs], return_inverse=True)
    by_pair = _hits(pairs)
    hits = np.zeros((len(names), by_pair.shape[1]), dtype=bool)
    np.logical_or.at(hits, owner, by_pair)
    return _counted(hits, _any_of(pairs, owner), [films[str(name)] for name in names], seed, learnt=learnt)


def _hits(pairs: Sequence[Pair]) -> Bool[np.ndarray, "pairs maps"]:
    """By the mean map, the maximum map and, where every pair has one, the CAM: maps are compared on the same pairs."""
    maps = min(len(pair.pointed) for pair in pairs)
    return np.array([[one.hit for one in pair.pointed[:maps]] for pair in pairs])


def _any_of(pairs: Sequence[Pair], owner: Int[np.ndarray, " pairs"]) -> Float[np.ndarray, "films 2"]:
    """How probably at least one of the film's blind points hits: they are drawn apart from each other."""
    missed = np.ones((int(owner.max()) + 1, 2))
    np.multiply.at(missed, owner, 1 - np.array([(pair.chance, pair.fixed) for pair in pairs]))
    return np.asarray(1 - missed)


def _counted(
    hits: Bool[np.ndarray, "n maps"],
    blind: Float[np.ndarray, "n 2"],
    films: Sequence[FilmRecord],
    seed: int,
    *,
    learnt: bool,
) -> Pointing:
    rows = np.column_stack([hits, np.ones(len(hits))])
    sums = resampled_sums(rows, films, seed=seed)
    mean, maximum, *cam = (
        HitRate(
            int(hits[:, column].sum()),
            float(hits[:, column].mean()),
            None if sums is None else interval(sums[:, column] / sums[:, -1]),
        )
        for column in range(hits.shape[1])
    )
    chance, fixed = (float(share) for share in blind.mean(axis=0))
    return Pointing(len(hits), mean, maximum, cam[0] if cam else None, chance, fixed if learnt else None)


def _warnings(concepts: Sequence[ConceptPointing], guesses: dict[str, Guess | None]) -> tuple[str, ...]:
    if all(blind is None for blind in guesses.values()):
        return ("No film that was read has a box, so nothing can be said on where the maps point.",)
    return tuple(
        f"The training films have no box of {one.title}: its fixed prior is a random point in what is pooled."
        for one in concepts
        if one.pointing is not None and one.fixed_point is None
    )
