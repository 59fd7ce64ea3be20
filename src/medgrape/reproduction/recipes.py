"""What is trained: base settings, and for each row of a table what is changed in them."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medgrape.config import Config, parse_config, put
from medgrape.errors import UserError
from medgrape.reproduction.data_facts import DataFacts

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
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
