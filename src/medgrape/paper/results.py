"""Results of finished jobs, as the tables need them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float

from medgrape.evaluation.classification import macro_f1
from medgrape.evaluation.statistics import Comparison, compare
from medgrape.paper.jobs import Kind, PaperJob, Role, Workspace
from medgrape.paper.recipes import DataFacts, Recipe, fixed_recipes
from medgrape.paper.tables import Value, spread

MACRO_F1, POINTING = "macro_f1", "pointing.pair.mean"


@dataclass(frozen=True)
class Results:
    """Results of some seeds in a workspace."""

    workspace: Workspace
    seeds: tuple[int, ...]

    def __hash__(self) -> int:
        return id(self)

    @property
    def data(self) -> Mapping[Role, DataFacts]:
        """The data sets."""
        return self.workspace.data

    def jobs(self, kind: Kind, *recipes: str | Recipe, role: Role = "first") -> tuple[PaperJob, ...]:
        """Return the jobs of every recipe and seed; none without such a data set."""
        if role not in self.data:
            return ()
        chosen = [fixed_recipes()[recipe] if isinstance(recipe, str) else recipe for recipe in recipes]
        return tuple(PaperJob(kind, recipe, seed, self.workspace, role) for recipe in chosen for seed in self.seeds)

    def single_job(self, kind: Kind, recipe: str, *others: str) -> PaperJob:
        """Return a job of the first seed that compares a recipe with others."""
        first, *compared = (fixed_recipes()[name] for name in (recipe, *others))
        return PaperJob(kind, first, self.seeds[0], self.workspace, others=tuple(compared))

    @cache  # noqa: B019 (lives as long as one report)
    def by_seed(self, kind: Kind, recipe: str | Recipe, role: Role = "first") -> dict[int, dict[str, Any]]:
        """Return the figures of every finished seed."""
        payloads = {job.seed: job.load_result() for job in self.jobs(kind, recipe, role=role)}
        return {seed: dict(payload["figures"]) for seed, payload in payloads.items() if payload is not None}

    def figures(self, kind: Kind, recipe: str | Recipe, role: Role = "first") -> tuple[dict[str, Any], ...]:
        """Return the figures of all finished seeds."""
        return tuple(self.by_seed(kind, recipe, role).values())

    def value(
        self, recipe: str | Recipe, key: str, role: Role = "first", kind: Kind = "films", *, whole: bool = False
    ) -> Value | None:
        """Return the mean of a figure over the seeds."""
        return spread([figures.get(key) for figures in self.figures(kind, recipe, role)], whole=whole)

    def compared(self, ours: str | Recipe, theirs: str | Recipe, key: str, role: Role = "first") -> Comparison | None:
        """Compare two recipes patient by patient; None where either is missing, or no film has the figure."""
        both = [self.by_seed("films", recipe, role) for recipe in (ours, theirs)]
        seeds = [seed for seed in self.seeds if all(seed in by_seed for by_seed in both)]
        films = [[by_seed[seed]["by_film"] for seed in seeds] for by_seed in both]
        if not seeds:
            return None
        if key == MACRO_F1:
            side = len(films[0][0]["classes"])
            figure = lambda sums: macro_f1(sums.reshape(*sums.shape[:-1], side, side))  # noqa: E731
            mine, other = (np.stack([_confusion(film) for film in films_by_seed]) for films_by_seed in films)
        elif all(films_by_seed[0]["pairs"] for films_by_seed in films):
            figure = mean_of_sums
            mine, other = (np.stack([_hits(film) for film in films_by_seed]) for films_by_seed in films)
        else:
            return None
        return compare(mine, other, figure) if mine.shape == other.shape else None


def _confusion(films: dict[str, Any]) -> Float[np.ndarray, "patients cells"]:
    """The cells of the confusion matrix of each patient."""
    classes = len(films["classes"])
    names, owner = np.unique(films["patients"], return_inverse=True)
    cells = np.zeros((len(names), classes * classes))
    np.add.at(cells, (owner, np.array(films["truth"]) * classes + np.array(films["answers"])), 1.0)
    return cells


def _hits(films: dict[str, Any]) -> Float[np.ndarray, "patients 2"]:
    """Hits and number of film-concept pairs of each patient."""
    patient = dict(zip(films["films"], films["patients"], strict=True))
    return sums_by_patient([pair["hit"] for pair in films["pairs"]], [patient[pair["film"]] for pair in films["pairs"]])


def sums_by_patient(values: Sequence[float], patients: Sequence[str]) -> Float[np.ndarray, "patients 2"]:
    """Return the sum and the number of each patient's values."""
    names, owner = np.unique(patients, return_inverse=True)
    sums = np.zeros((len(names), 2))
    np.add.at(sums, owner, np.column_stack([values, np.ones(len(values))]))
    return sums


def mean_of_sums(sums: Float[np.ndarray, "*rounds 2"]) -> Float[np.ndarray, "*rounds"]:
    """Return the means of sums and numbers."""
    return np.asarray(sums[..., 0] / np.maximum(sums[..., 1], 1))
