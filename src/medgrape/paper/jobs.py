"""Jobs: a training and what is measured on it. A job is done once; its result is one JSON file."""

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from medgrape.baselines.methods import load_any
from medgrape.config import Config
from medgrape.errors import UserError
from medgrape.evaluation.evaluate import Loaded
from medgrape.files import plain, write_json
from medgrape.paper import measures
from medgrape.paper.pictures import draw_methods
from medgrape.paper.recipes import DataFacts, Recipe
from medgrape.progress import Track, Watch
from medgrape.runs.checkpoint import LoadedRun
from medgrape.training.preflight import refuse_settings
from medgrape.training.run import TrainingJob, train

Kind = Literal["films", "safety", "few-shot", "faithfulness", "latency", "pictures"]
Role = Literal["first", "second"]  # data set in place of TBX11K in the paper, and in place of NIH
VERSION = 1  # increased whenever the same job would give another result
OTHER_INPUTS = {
    "data": "other films or labels", "folder": "films of another folder", "parent": "another backbone to start from",
}  # fmt: skip
PACKAGE = Path(__file__).resolve().parents[1]

Tell = Callable[[str], None]


class Job(ABC):
    """One training and what is measured on it."""

    indent: int | None = None  # of the result file

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the result file, without its suffix."""

    @property
    def title(self) -> str:
        """The name that is shown when the job starts."""
        return self.name

    @property
    @abstractmethod
    def run(self) -> Path:
        """The folder of the trained model, in the folder ``runs``."""

    @property
    def result(self) -> Path:
        """The result file, which exists once the job is done."""
        return self.run.parents[1] / "results" / f"{self.name}.json"

    @property
    @abstractmethod
    def begun_with(self) -> dict[str, Any]:
        """All inputs on which the result depends; None for one that is not known now."""

    @abstractmethod
    def check(self) -> None:
        """Raise a ``UserError`` if the training could not start with these settings or films."""

    @abstractmethod
    def make(self, track: Track, watch: Watch) -> dict[str, Any]:
        """Train what is not trained yet, measure, and return the content of the result file."""

    def do(self, track: Track, watch: Watch) -> None:
        """Make and write the result."""
        write_json(self.result, self.make(track, watch), indent=self.indent)

    def load_result(self, *, strict: bool = True) -> dict[str, Any] | None:
        """Return the result, or None. One that was made from other inputs is an error, or None unless ``strict``."""
        payload = read_json(self.result)
        if payload is not None and strict:
            self.refuse_other(payload, self.result)
            return payload
        return None if payload is None or self._changed_input(payload) else payload

    def refuse_other(self, payload: Mapping[str, Any], path: Path) -> None:
        """Raise a ``UserError`` if a file was made from inputs other than those of this job."""
        changed = self._changed_input(payload)
        if changed is not None:
            raise UserError(f"{path} was made with {changed}; remove it and {self.run}, or choose another --out.")

    def _changed_input(self, payload: Mapping[str, Any]) -> str | None:
        begun = payload.get("begun_with", {})
        names = (name for name, value in self.begun_with.items() if value is not None and begun.get(name) != value)
        return next((OTHER_INPUTS.get(name, "other settings") for name in names), None)


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a file of a job; None if it does not exist."""
    if not path.is_file():
        return None
    try:
        payload: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UserError(f"{path} cannot be read ({error}); remove it and give the command again.") from error
    return payload


@cache
def software() -> str:
    """Return a fingerprint of the code and settings of this package."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in ("*.py", "*.toml") for path in PACKAGE.rglob(pattern)):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def settings_of(config: Config) -> Any:  # noqa: ANN401 (as JSON has it)
    """Return the settings that are not defaults, as a result file keeps them."""
    return plain(config.model_dump(mode="json", exclude_defaults=True))


Work = Callable[[Sequence[Any], Tell, Track, Watch, Callable[[], object]], None]  # the type of ``do_all``


def do_all(
    jobs: Sequence[Job], tell: Tell, track: Track, watch: Watch, after_each: Callable[[], object] = lambda: None
) -> None:
    """Do the jobs without a result, and call ``after_each`` after each of them. Interrupted trainings continue."""
    tell_done(jobs, tell)
    for number, job in enumerate(jobs, 1):
        if job.load_result() is None:  # read again, because the run that a job starts from may have changed
            tell(f"{number} of {len(jobs)}: {job.title}")
            job.do(track, watch)
            after_each()


def tell_done(jobs: Sequence[Job], tell: Tell) -> None:
    """Report the number of jobs that have a result already, if it is not zero."""
    done = sum(job.load_result() is not None for job in jobs)
    if done:
        tell(f"{done} of {len(jobs)} jobs are done already.")


@dataclass(frozen=True)
class Workspace:
    """Settings, data sets and output folder that the jobs of the paper's tables share."""

    bases: Mapping[Role, Config]  # the settings that recipes change
    data: Mapping[Role, DataFacts]
    out: Path
    draws: int  # number of draws of few-shot examples
    faithful: int  # number of films for insertion and deletion

    @property
    def base(self) -> Config:
        """Base settings of the first data set."""
        return self.bases["first"]


@dataclass(frozen=True)
class PaperJob(Job):
    """One measurement for the paper's tables, with one recipe, seed and data set."""

    kind: Kind
    recipe: Recipe
    seed: int
    workspace: Workspace = field(compare=False, repr=False)
    role: Role = "first"
    others: tuple[Recipe, ...] = ()  # recipes of the same seed and data set to compare with

    @property
    def name(self) -> str:
        """Name of the result file, without its suffix."""
        return f"{self.kind}-{self.role}-{self.recipe.name}-seed{self.seed}"

    @property
    def run(self) -> Path:
        """The folder of the trained model."""
        return self.run_of(self.recipe)

    def run_of(self, recipe: Recipe) -> Path:
        """Return the folder of the model trained by one of its recipes."""
        return self.workspace.out / "runs" / f"{self.role}-{recipe.name}-seed{self.seed}"

    @property
    def configs(self) -> dict[Recipe, Config]:
        """The settings of every training that the job needs."""
        base = self.workspace.bases[self.role]
        return {recipe: recipe.config(base, self.seed) for recipe in (self.recipe, *self.others)}

    @property
    def data(self) -> DataFacts:
        """The data set of the job."""
        return self.workspace.data[self.role]

    @property
    def folder(self) -> Path:
        """The folder of the data set."""
        if self.data.folder is None:
            raise UserError(
                f"The films of the {self.role} data set are needed, and only results are here; name its folder."
            )
        return self.data.folder

    @property
    def begun_with(self) -> dict[str, Any]:
        """Settings, data set, and options that change what is measured."""
        configs = self.configs
        payload = {
            "version": VERSION,
            "settings": [settings_of(configs[recipe]) for recipe in (self.recipe, *self.others)],
            "data": self.data.checksum,
        }
        options = {"few-shot": {"draws": self.workspace.draws}, "faithfulness": {"films": self.workspace.faithful}}
        return payload | options.get(self.kind, {})

    def check(self) -> None:
        """Raise a ``UserError`` if no training could start with the settings."""
        for config in self.configs.values():
            refuse_settings(config)

    def make(self, track: Track, watch: Watch) -> dict[str, Any]:
        """Train what is not trained yet, measure, and return the content of the result file."""
        began = time.monotonic()
        figures = plain(self._figures(track, watch))
        return {
            "job": self.name, "begun_with": self.begun_with, "software": software(),
            "seconds": round(time.monotonic() - began, 1), "figures": figures,
        }  # fmt: skip

    def _figures(self, track: Track, watch: Watch) -> dict[str, Any]:
        data, out = self.folder, self.workspace.out

        def trained(recipe: Recipe) -> Loaded:
            job = TrainingJob(self.configs[recipe], data, self.run_of(recipe), stage_cache=out / "stages")
            return load_any(train(job, track=track, watch=watch))

        loaded = trained(self.recipe)
        if self.kind == "films":
            return measures.measure_films(loaded, data, track)
        if self.kind == "faithfulness":
            return measures.measure_faithfulness(loaded, data, self.workspace.faithful, track)
        if self.kind == "pictures":
            compared = {recipe.title: trained(recipe) for recipe in self.others}
            return draw_methods(compared, data, out / "pictures", loaded, self.name)
        assert isinstance(loaded, LoadedRun)  # noqa: S101 (suites need the other kinds with GRAPE only)
        if self.kind == "safety":
            return measures.measure_safety(loaded, data, track)
        if self.kind == "few-shot":
            return measures.measure_few_shot(loaded, data, self.workspace.draws, track)
        linear = trained(self.others[0])
        assert isinstance(linear, LoadedRun)  # noqa: S101
        return measures.measure_latency(linear, loaded)
