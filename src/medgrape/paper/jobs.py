"""One piece of work that is done once: a recipe, a seed, a data set, and what is measured. Its result is one file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from medgrape.config import Config
from medgrape.errors import UserError
from medgrape.files import plain, whole_file
from medgrape.paper.real_films.row import software
from medgrape.paper.recipes import DataFacts, Recipe

Kind = Literal["films", "safety", "few-shot", "faithfulness", "latency", "pictures"]
Role = Literal["first", "second"]
"""Which of the data sets: the first stands where the paper has TBX11K, the second where it has NIH."""
VERSION = 1
"""Counted up whenever the same run would give another result."""


@dataclass(frozen=True)
class Job:
    """What is to be measured."""

    kind: Kind
    recipe: Recipe
    seed: int
    role: Role = "first"
    others: tuple[Recipe, ...] = ()
    """Further runs of the same seed and data set that it compares."""

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.kind}-{self.role}-{self.recipe.name}-seed{self.seed}"


@dataclass(frozen=True)
class Place:
    """Where everything lies, and with which settings it is made."""

    bases: Mapping[Role, Config]
    """Settings that recipes change."""
    data: Mapping[Role, DataFacts]
    out: Path
    draws: int
    """How often few-shot examples are drawn."""
    faithful: int
    """On how many films insertion and deletion are measured."""

    @property
    def base(self) -> Config:
        """Of the first data set."""
        return self.bases["first"]

    def config(self, recipe: Recipe, seed: int, role: Role) -> Config:
        """The settings of one training."""
        return recipe.config(self.bases[role], seed)

    def folder(self, role: Role) -> Path:
        """Where the films of a data set are."""
        folder = self.data[role].folder
        if folder is None:
            raise UserError(f"There are results here, but no films of the {role} data set: name its folder again.")
        return folder

    def run(self, recipe: Recipe, seed: int, role: Role) -> Path:
        """A trained model."""
        return self.out / "runs" / f"{role}-{recipe.name}-seed{seed}"

    def result(self, job: Job) -> Path:
        """There once the job is done."""
        return self.out / "results" / f"{job.name}.json"

    def begun_with(self, job: Job) -> dict[str, Any]:
        """Everything that the result depends on and that a person may change."""
        settings = [self.config(recipe, job.seed, job.role) for recipe in (job.recipe, *job.others)]
        told = {
            "version": VERSION,
            "settings": [plain(one.model_dump(mode="json", exclude_defaults=True)) for one in settings],
            "data": self.data[job.role].checksum,
        }
        return told | {"few-shot": {"draws": self.draws}, "faithfulness": {"films": self.faithful}}.get(job.kind, {})

    def found(self, job: Job) -> dict[str, Any] | None:
        """The result, if it is there; one that was begun with something else is an error."""
        path = self.result(job)
        if not path.is_file():
            return None
        try:
            told: dict[str, Any] = json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise UserError(f"{path} cannot be read ({error}); remove it, and it is made again.") from error
        if told.get("begun_with") != self.begun_with(job):
            run = self.run(job.recipe, job.seed, job.role)
            raise UserError(
                f"{path} was made with other settings or labels; remove it and {run}, or choose another --out."
            )
        return told

    def write(self, job: Job, figures: dict[str, Any], seconds: float) -> None:
        """The result, whole or not at all."""
        told = {
            "job": job.name, "begun_with": self.begun_with(job), "software": software(), "seconds": round(seconds, 1),
            "figures": plain(figures),
        }  # fmt: skip
        with whole_file(self.result(job)) as draft:
            draft.write_text(json.dumps(told, allow_nan=False) + "\n", "utf-8")
