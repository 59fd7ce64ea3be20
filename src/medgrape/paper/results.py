"""What the jobs have found so far, as the tables ask for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float

from medgrape.evaluation.classification import macro_f1
from medgrape.evaluation.statistics import Comparison, compare
from medgrape.paper.jobs import Job, Kind, Place, Role
from medgrape.paper.recipes import DataFacts, Recipe, fixed_recipes
from medgrape.paper.tables import Value, spread

MACRO_F1, POINTING = "macro_f1", "pointing.pair.mean"


@dataclass(frozen=True)
class Results:
    """All jobs of some seeds."""

    place: Place
    seeds: tuple[int, ...]

    def __hash__(self) -> int:
        return id(self)

    def dataset(self, role: Role) -> DataFacts:
        """One of the data sets."""
        return self.place.data[role]

    def has(self, role: Role) -> bool:
        """Whether there is such a data set."""
        return role in self.place.data

    def jobs(self, kind: Kind, *recipes: str | Recipe, role: Role = "first") -> tuple[Job, ...]:
        """For every seed; none, where there is no such data set."""
        if not self.has(role):
            return ()
        known = fixed_recipes()
        chosen = [known[one] if isinstance(one, str) else one for one in recipes]
        return tuple(Job(kind, recipe, seed, role) for recipe in chosen for seed in self.seeds)

    @cache  # noqa: B019 (lives as long as one report)
    def by_seed(self, kind: Kind, recipe: str | Recipe, role: Role = "first") -> dict[int, dict[str, Any]]:
        """The figures of every seed that is done."""
        told = {job.seed: self.place.found(job) for job in self.jobs(kind, recipe, role=role)}
        return {seed: dict(one["figures"]) for seed, one in told.items() if one is not None}

    def found(self, kind: Kind, recipe: str | Recipe, role: Role = "first") -> tuple[dict[str, Any], ...]:
        """The same without the seeds."""
        return tuple(self.by_seed(kind, recipe, role).values())

    def one(self, job: Job) -> dict[str, Any]:
        """The figures of one job; empty where it is not done."""
        told = self.place.found(job)
        return {} if told is None else dict(told["figures"])

    def value(
        self, recipe: str | Recipe, key: str, role: Role = "first", kind: Kind = "films", *, whole: bool = False
    ) -> Value | None:
        """A figure over the seeds."""
        return spread([told.get(key) for told in self.found(kind, recipe, role)], whole=whole)

    def compared(self, ours: str | Recipe, theirs: str | Recipe, key: str, role: Role = "first") -> Comparison | None:
        """One recipe against another, film by film; None where either is missing, or the figure has no films."""
        found = self.by_seed("films", ours, role), self.by_seed("films", theirs, role)
        seeds = [seed for seed in self.seeds if seed in found[0] and seed in found[1]]
        both = tuple([one[seed] for seed in seeds] for one in found)
        if not seeds:
            return None
        counted, figure = (_classes, _macro_f1) if key == MACRO_F1 else (_pairs, _share)
        mine, other = (counted(one) for one in both)
        if mine is None or other is None or mine.shape != other.shape:
            return None
        return compare(mine, other, figure(both[0][0]))


Counts = Float[np.ndarray, "seeds patients n"]


def _classes(found: Sequence[dict[str, Any]]) -> Counts | None:
    """Cells of the confusion matrix, patient by patient."""
    return np.stack([_confusion_by_patient(told["by_film"]) for told in found])


def _confusion_by_patient(told: dict[str, Any]) -> Float[np.ndarray, "patients cells"]:
    classes = len(told["classes"])
    names, owner = np.unique(told["patients"], return_inverse=True)
    cells = np.zeros((len(names), classes * classes))
    np.add.at(cells, (owner, np.array(told["truth"]) * classes + np.array(told["answers"])), 1.0)
    return cells


def _pairs(found: Sequence[dict[str, Any]]) -> Counts | None:
    """Hits and film-concept pairs, patient by patient."""
    return np.stack([_hits_by_patient(told["by_film"]) for told in found]) if found[0]["by_film"]["pairs"] else None


def _hits_by_patient(told: dict[str, Any]) -> Float[np.ndarray, "patients 2"]:
    patient = dict(zip(told["films"], told["patients"], strict=True))
    return sums_by_patient([pair["hit"] for pair in told["pairs"]], [patient[pair["film"]] for pair in told["pairs"]])


def sums_by_patient(values: Sequence[float], patients: Sequence[str]) -> Float[np.ndarray, "patients 2"]:
    """Of figures that every film has: sum and count, patient by patient."""
    names, owner = np.unique(patients, return_inverse=True)
    sums = np.zeros((len(names), 2))
    np.add.at(sums, owner, np.column_stack([values, np.ones(len(values))]))
    return sums


def mean_of_sums(sums: Float[np.ndarray, "*rounds 2"]) -> Float[np.ndarray, "*rounds"]:
    """Their mean."""
    return np.asarray(sums[..., 0] / np.maximum(sums[..., 1], 1))


def _macro_f1(told: dict[str, Any]) -> Callable[[np.ndarray], np.ndarray]:
    classes = len(told["by_film"]["classes"])
    return lambda sums: macro_f1(sums.reshape(*sums.shape[:-1], classes, classes))


def _share(told: dict[str, Any]) -> Callable[[np.ndarray], np.ndarray]:
    del told
    return mean_of_sums
