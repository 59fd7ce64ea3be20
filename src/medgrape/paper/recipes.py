"""What is trained: base settings, and for each row of a table what is changed in them."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medgrape.concepts import ConceptSet
from medgrape.config import RECIPES, Config, parse_config, put
from medgrape.datasets.dataset import Dataset, checksum
from medgrape.datasets.statistics import co_occurrence
from medgrape.errors import UserError


@dataclass(frozen=True)
class DataFacts:
    """Of one data set."""

    name: str
    checksum: str
    classes: tuple[str, ...]
    concepts: ConceptSet
    probability: tuple[tuple[float, ...], ...]
    """P(row given column), over films that may be learnt from."""
    films: dict[str, int]
    """In each split."""
    folder: Path | None = None
    """None where only results are at hand."""

    @classmethod
    def of(cls, folder: Path) -> "DataFacts":
        """Of a prepared data set."""
        dataset = Dataset.load(folder)
        together = co_occurrence(dataset).probability
        films = {split: len(dataset.in_split(split)) for split in ("train", "val", "test")}
        for split in (name for name, count in films.items() if not count):
            raise UserError(f"{dataset.name!r} has no {split} films, and every table needs some; prepare it again.")
        strange = next((film for film in dataset.in_split("test") if film.class_name not in dataset.classes), None)
        if strange is not None:
            raise UserError(f"Film {strange.id} is of the unknown class {strange.class_name!r}; mend films.csv.")
        rows = tuple(tuple(float(share) for share in row) for row in together)
        return cls(dataset.name, checksum(folder), dataset.classes, dataset.concepts, rows, films, folder)

    def to_json(self) -> dict[str, Any]:
        """Plain data; where it lies is nobody's business."""
        return {
            "name": self.name, "checksum": self.checksum, "classes": list(self.classes),
            "concepts": self.concepts.to_tables(), "probability": self.probability, "films": self.films,
        }  # fmt: skip

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> "DataFacts":
        """The inverse."""
        rows = tuple(tuple(row) for row in told["probability"])
        concepts = ConceptSet.from_tables(told["concepts"])
        return cls(told["name"], told["checksum"], tuple(told["classes"]), concepts, rows, told["films"])


CONFIGS = RECIPES
FULL, QUICK = CONFIGS / "reproduce.toml", CONFIGS / "reproduce-quick.toml"
TAUS = (0.01, 0.05, 0.10, 0.20, 0.30)
"""The paper's sweep."""
_TEXT = "{text}"
_STAGED = {"model.method": "grape", "training.order": "staged"}
_HALVED = ("stages.concepts.learning_rate", "stages.prototypes.learning_rate", "stages.head.learning_rate")


def second_base(base: Config) -> Config:
    """The settings of the second data set: as the paper's on NIH differ from those on TBX11K."""
    tables: dict[str, Any] = base.model_dump()
    put(tables, "model.tau", 0.05)
    for key in _HALVED:
        stage = key.split(".")[1]
        put(tables, key, tables["stages"][stage]["learning_rate"] / 2)
    return parse_config(tables, "the settings of the second data set")


def _encoder(base: Config) -> str:
    if base.text.encoder == "none":
        raise UserError('Some recipes read text: set text.encoder in the base settings to something else than "none".')
    return base.text.encoder


@dataclass(frozen=True)
class Recipe:
    """One way to train."""

    name: str
    title: str
    change: dict[str, Any] = field(default_factory=dict, hash=False)
    """Dotted keys put on top of the base settings."""

    def config(self, base: Config, seed: int) -> Config:
        """The settings of one training."""
        tables: dict[str, Any] = base.model_dump()
        for key, value in (_STAGED | self.change).items():
            put(tables, key, _encoder(base) if value == _TEXT else value)
        return parse_config(tables | {"seed": seed}, f"The recipe {self.name!r}")


def fixed_recipes() -> dict[str, Recipe]:
    """Those that every data set has, by name."""
    told = tomllib.loads(Path(__file__).with_name("recipes.toml").read_text("utf-8"))["recipe"]
    return {one["name"]: Recipe(**one) for one in told}


def tau_recipe(tau: float) -> Recipe:
    """GRAPE with another threshold of the graph."""
    return Recipe(f"tau-{tau:.2f}", f"tau = {tau:.2f}", fixed_recipes()["grape"].change | {"model.tau": tau})


@dataclass(frozen=True)
class Edge:
    """One concept hears another, or itself."""

    speaker: str
    listener: str

    @property
    def itself(self) -> bool:
        """Whether it is a self-loop."""
        return self.speaker == self.listener

    @property
    def recipe(self) -> Recipe:
        """GRAPE without this edge."""
        name, text = f"without-{self.speaker}-{self.listener}", f"{self.speaker} -> {self.listener}"
        return Recipe(name, f"without {text}", fixed_recipes()["grape"].change | {"model.cut": (text,)})


def edges(data: DataFacts, tau: float) -> tuple[Edge, ...]:
    """The graph that GRAPE has on a data set: self-loops first."""
    names, probability = data.concepts.names, data.probability
    found = [Edge(name, name) for name in names]
    for row, listener in enumerate(names):
        found += [
            Edge(s, listener) for column, s in enumerate(names) if column != row and probability[row][column] > tau
        ]
    return tuple(found)
