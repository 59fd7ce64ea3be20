"""Trainings: a recipe for each row of a paper table, a variant for each row on real films."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationError

from medgrape.concepts import ConceptSet
from medgrape.config import RECIPES, Config, ConfigError, Settings, parse_config, put
from medgrape.config.settings import Listed, first_complaint
from medgrape.datasets.dataset import Dataset, checksum
from medgrape.datasets.statistics import co_occurrence
from medgrape.errors import UserError, nearest
from medgrape.records import Record

FULL, QUICK = RECIPES / "reproduce.toml", RECIPES / "reproduce-quick.toml"
VARIANTS = Path(__file__).with_name("real_films.toml")
TAUS = (0.01, 0.05, 0.10, 0.20, 0.30)  # the paper's sweep of the graph's threshold
_TEXT = "{text}"
_STAGED = {"model.method": "grape", "training.order": "staged"}


class DataFacts(Record):
    """The properties of a prepared data set that tables need."""

    name: str
    checksum: str
    classes: tuple[str, ...]
    concepts: Annotated[
        ConceptSet,
        BeforeValidator(lambda value: value if isinstance(value, ConceptSet) else ConceptSet.from_tables(value)),
        PlainSerializer(ConceptSet.to_tables),
    ]
    probability: tuple[tuple[float, ...], ...]  # P(row given column), over training and validation films
    films: dict[str, int]  # number of films in each split
    folder: Path | None = Field(default=None, exclude=True)  # None in a report from results alone

    @classmethod
    def of(cls, folder: Path) -> "DataFacts":
        """Read the properties of the data set in a folder."""
        dataset = Dataset.load(folder)
        films = {split: len(dataset.in_split(split)) for split in ("train", "val", "test")}
        for split, count in films.items():
            if not count:
                raise UserError(f"{dataset.name!r} has no {split} films, and every table needs some; prepare it again.")
        for film in dataset.in_split("test"):
            if film.class_name not in dataset.classes:
                raise UserError(f"Film {film.id} is of the unknown class {film.class_name!r}; correct films.csv.")
        return cls(
            name=dataset.name, checksum=checksum(folder), classes=dataset.classes, concepts=dataset.concepts,
            probability=co_occurrence(dataset).probability.tolist(), films=films, folder=folder,
        )  # fmt: skip


def second_base(base: Config) -> Config:
    """Return the settings of the second data set, which differ as the paper's on NIH differ from those on TBX11K."""
    stages = ("concepts", "prototypes", "head")
    change = {f"stages.{stage}.learning_rate": getattr(base.stages, stage).learning_rate / 2 for stage in stages}
    return _changed(base.model_dump(), {"model.tau": 0.05} | change, "the settings of the second data set")


def _changed(tables: dict[str, Any], change: Mapping[str, Any], name: str) -> Config:
    for key, value in change.items():
        put(tables, key, value)
    return parse_config(tables, name)


@dataclass(frozen=True)
class Recipe:
    """A training as a change of base settings."""

    name: str
    title: str
    change: dict[str, Any] = field(default_factory=dict, hash=False)  # dotted keys and their values

    def config(self, base: Config, seed: int) -> Config:
        """Return the base settings with the change and the seed."""
        text = base.text.encoder
        change = _STAGED | self.change
        if text == "none" and _TEXT in change.values():
            raise UserError('Some recipes read text; set text.encoder in the base settings to another than "none".')
        change = {key: text if value == _TEXT else value for key, value in change.items()}
        return _changed(base.model_dump() | {"seed": seed}, change, f"The recipe {self.name!r}")


@cache
def fixed_recipes() -> dict[str, Recipe]:
    """Return the recipes that suit every data set, by name."""
    tables = tomllib.loads(Path(__file__).with_name("recipes.toml").read_text("utf-8"))["recipe"]
    return {table["name"]: Recipe(**table) for table in tables}


@dataclass(frozen=True)
class Edge:
    """An edge of the concept graph, from the speaker to the listener."""

    speaker: str
    listener: str

    @property
    def recipe(self) -> Recipe:
        """GRAPE without this edge."""
        name, text = f"without-{self.speaker}-{self.listener}", f"{self.speaker} -> {self.listener}"
        return Recipe(name, f"without {text}", fixed_recipes()["grape"].change | {"model.cut": (text,)})


def edges(data: DataFacts, tau: float) -> tuple[Edge, ...]:
    """Return the edges of the graph that GRAPE has on a data set, self-loops first."""
    names = data.concepts.names
    between = [
        Edge(speaker, listener)
        for listener, row in zip(names, data.probability, strict=True)
        for speaker, share in zip(names, row, strict=True)
        if speaker != listener and share > tau
    ]
    return (*(Edge(name, name) for name in names), *between)


class Variant(Settings):
    """A training on real films as a change of settings that come with the package."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]  # also part of file names
    title: str
    data: Literal["tbx11k", "nih"]
    settings: str  # name of a settings file of the package
    change: Annotated[dict[str, Any], Field(default_factory=dict)]  # dotted keys and their values
    seeds: Annotated[tuple[int, ...], Listed] = (0, 1, 2)  # also of the split: another seed tests on other patients
    extra: bool = False  # whether to train also on the films that TBX11K borrowed, which are never tested on
    after: str = ""  # another variant; this one starts from its backbone, trained with the same seed

    def config(self, seed: int, configs: Path = RECIPES) -> Config:
        """Return the changed settings. An unknown key is an error."""
        path = configs / f"{self.settings}.toml"
        if not path.is_file():
            known = [file.stem for file in configs.glob("*.toml")]
            raise ConfigError(
                f"There are no settings {self.settings!r} among those of the package{nearest(self.settings, known)}."
            )
        tables = tomllib.loads(path.read_text("utf-8"))
        return _changed(tables, self.change | {"seed": seed}, f"The variant {self.name!r}")


class _VariantFile(Settings):
    variants: Annotated[tuple[Variant, ...], Listed]


def load_variants(path: Path = VARIANTS) -> tuple[Variant, ...]:
    """Return all variants of a file, in the order of the file."""
    try:
        variants = _VariantFile.model_validate(tomllib.loads(path.read_text("utf-8"))).variants
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_complaint(error, _VariantFile)}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error
    names = [variant.name for variant in variants]
    for place, variant in enumerate(variants):
        if variant.name in names[:place]:
            raise ConfigError(f"{path} has two variants {variant.name!r}; rename one.")
        if variant.after and variant.after not in names[:place]:
            raise ConfigError(
                f"{path}: {variant.name!r} starts from {variant.after!r}, so {variant.after!r} must stand before it."
            )
    return variants


def chosen_variants(variants: Sequence[Variant], names: Sequence[str]) -> tuple[Variant, ...]:
    """Return the named variants and those that they start from, in the order of the file; all without a name."""
    known = {variant.name: variant for variant in variants}
    for name in names:
        if name not in known:
            raise UserError(f"There is no variant {name!r}{nearest(name, known)}.")
    chosen = {*names, *(known[name].after for name in names)}
    return tuple(variant for variant in variants if variant.name in chosen or not names)
