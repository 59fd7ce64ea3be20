"""How well a concept is learnt from few films, beside full supervision and blind pointing: the figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Spread:
    """A figure over the seeds."""

    mean: float
    sd: float | None
    """None where there is one seed only."""
    se: float | None
    """Standard error of the mean."""

    @classmethod
    def of(cls, figures: Sequence[float]) -> "Spread":
        """Over one figure for each seed."""
        several = len(figures) > 1
        sd = float(np.std(figures, ddof=1)) if several else None
        return cls(float(np.mean(figures)), sd, None if sd is None else sd / len(figures) ** 0.5)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"mean": self.mean, "sd": self.sd, "se": self.se}


@dataclass(frozen=True)
class Shots:
    """What so many films taught."""

    films: int
    by_seed: tuple[float, ...]
    """Share of film-concept pairs whose point lies in a box, for each draw of films."""
    seconds: float
    """Median time of one learning, once the films are encoded."""

    @property
    def pointing(self) -> Spread:
        """The pointing game over the seeds."""
        return Spread.of(self.by_seed)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "films": self.films,
            **self.pointing.to_json(),
            "by_seed": list(self.by_seed),
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class ConceptTrial:
    """One concept that was forgotten and learnt again."""

    name: str
    title: str
    pairs: int
    """Films with a box of it that were pointed at."""
    to_learn_from: int
    """Training films with a box of it, from which the examples were drawn."""
    full: float
    """The pointing game of the run's own prototypes: full supervision."""
    fixed: float
    """Of one fixed point, learnt from the training boxes."""
    chance: float
    """Of a random point."""
    shots: tuple[Shots, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return vars(self) | {"shots": [one.to_json() for one in self.shots]}


@dataclass(frozen=True)
class VocabularyTrial:
    """All concepts, each left out in turn."""

    run: str
    data_set: str
    split: str
    boxes: bool
    """Whether the examples came with their boxes."""
    concepts: tuple[ConceptTrial, ...]
    warnings: tuple[str, ...] = ()

    @cached_property
    def average(self) -> ConceptTrial:
        """The mean over concepts, each counting alike."""
        shots = [
            Shots(
                same[0].films,
                tuple(float(np.mean(seed)) for seed in zip(*(one.by_seed for one in same), strict=True)),
                float(np.median([one.seconds for one in same])),
            )
            for same in zip(*(concept.shots for concept in self.concepts), strict=True)
        ]
        full, fixed, chance = (_mean(self.concepts, name) for name in ("full", "fixed", "chance"))
        pairs, films = (sum(getattr(one, name) for one in self.concepts) for name in ("pairs", "to_learn_from"))
        return ConceptTrial("mean", "Mean over concepts", pairs, films, full, fixed, chance, tuple(shots))

    def share_of_full(self, shots: Shots) -> Spread | None:
        """Of the mean over concepts, how much of full supervision's; None where that points nowhere."""
        full = self.average.full
        return Spread.of([figure / full for figure in shots.by_seed]) if full > 0 else None

    @property
    def monotone(self) -> bool:
        """Whether more films never teach less, within one standard error of the difference seed by seed."""
        shots = self.average.shots
        return all(_no_worse(fewer, more) for fewer, more in pairwise(shots))

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        shares = [(shots.films, self.share_of_full(shots)) for shots in self.average.shots]
        return {
            "run": self.run,
            "data_set": self.data_set,
            "split": self.split,
            "boxes": self.boxes,
            "concepts": [one.to_json() for one in self.concepts],
            "average": self.average.to_json(),
            "share_of_full": [{"films": n, **share.to_json()} for n, share in shares if share is not None],
            "monotone": self.monotone,
            "warnings": list(self.warnings),
        }


def _no_worse(fewer: Shots, more: Shots) -> bool:
    gain = Spread.of([after - before for before, after in zip(fewer.by_seed, more.by_seed, strict=True)])
    return gain.mean + (gain.se or 0.0) >= 0


def _mean(concepts: Sequence[ConceptTrial], figure: str) -> float:
    return float(np.mean([getattr(one, figure) for one in concepts]))
