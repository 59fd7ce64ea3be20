"""Concepts (findings that a model localises), the built-in vocabularies, and a colour for each concept."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from typing import Any, Self

from medgrape.errors import UserError, nearest

BUILT_IN = ("tbx11k", "nih", "vindr")
EVERY_CONCEPT = "all"
"""Commands take this for all concepts, so no concept may have this name."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


class ConceptError(UserError):
    """A concept that is unknown, a duplicate or incompletely described."""


@dataclass(frozen=True)
class Concept:
    """One finding that a model can localise."""

    name: str
    """Short and lower case, for files and commands: ``active_tb``."""
    title: str
    """The name for display: ``Active tuberculosis``."""
    description: str
    """One sentence on its appearance on a chest film, which text encoders encode."""
    aliases: tuple[str, ...] = field(default=(), compare=False)
    """Its names in published label files."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConceptError(
                f"A concept's name is lower case letters, digits and underscores, starting with a letter; "
                f"{self.name!r} is not."
            )
        if self.name == EVERY_CONCEPT:
            raise ConceptError(f"A concept cannot be called {EVERY_CONCEPT!r}: commands take it for all concepts.")
        if not self.title.strip() or not self.description.strip():
            raise ConceptError(f"Concept {self.name!r} needs a title and a description.")

    @classmethod
    def named(cls, name: str) -> Self:
        """Make a concept from its published name, with a generated title and description."""
        title = name.replace("_", " ").strip()
        description = f"{title[:1].upper()}{title[1:]} on chest X-ray."
        return cls(slug(name), title, description, aliases=(name,))


@dataclass(frozen=True)
class ConceptSet:
    """Concepts in the order of the concept dimension of every tensor."""

    concepts: tuple[Concept, ...]

    def __post_init__(self) -> None:
        for position, name in enumerate(self.names):
            if name in self.names[:position]:
                raise ConceptError(f"Two concepts are called {name!r}; names must differ.")

    @classmethod
    def built_in(cls, name: str) -> Self:
        """Return a vocabulary of the package: ``tbx11k``, ``nih`` or ``vindr``."""
        if name not in BUILT_IN:
            raise ConceptError(f"There is no built-in vocabulary {name!r}; choose one of {', '.join(BUILT_IN)}.")
        text = resources.files("medgrape").joinpath("config", "vocabularies", f"{name}.toml").read_text("utf-8")
        return cls.from_tables(tomllib.loads(text)["concepts"])

    @classmethod
    def from_tables(cls, tables: list[Mapping[str, Any]]) -> Self:
        """Make a set from the ``[[concepts]]`` tables of a TOML file."""
        concepts = []
        for table in tables:
            unknown = set(table) - {"name", "title", "description", "aliases"}
            if unknown or not {"name", "title", "description"} <= set(table):
                raise ConceptError(
                    f"A concept has a name, a title, a description and optional aliases; got {sorted(table)}."
                )
            aliases = tuple(str(alias) for alias in table.get("aliases", ()))
            concepts.append(Concept(str(table["name"]), str(table["title"]), str(table["description"]), aliases))
        return cls(tuple(concepts))

    def to_tables(self) -> list[dict[str, Any]]:
        """Return the inverse of ``from_tables``, for TOML and JSON."""
        return [
            {"name": c.name, "title": c.title, "description": c.description, "aliases": list(c.aliases)} for c in self
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the concepts, in order."""
        return tuple(concept.name for concept in self.concepts)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def _by_label(self) -> dict[str, str]:
        return {slug(alias): c.name for c in self.concepts for alias in (c.name, c.title, *c.aliases)}

    def index(self, name: str) -> int:
        """Return the position of the concept ``name``."""
        if name not in self._positions:
            raise ConceptError(f"There is no concept {name!r}{nearest(name, self.names)}.")
        return self._positions[name]

    def published(self, label: str) -> str | None:
        """Return the name of the concept that a label file calls ``label``, or None."""
        return self._by_label.get(slug(label))

    def __getitem__(self, name: str) -> Concept:
        return self.concepts[self.index(name)]

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    def __iter__(self) -> Iterator[Concept]:
        return iter(self.concepts)

    def __len__(self) -> int:
        return len(self.concepts)


def slug(label: str) -> str:
    """Return a label as a concept's name: ``nodule_mass`` for ``Nodule/Mass``."""
    words = re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")
    return words if words[:1].isalpha() else f"finding_{words}"


OKABE_ITO = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
"""Colours that people with any colour vision can distinguish (Okabe and Ito)."""


def colour(position: int) -> str:
    """Return the colour of concept or class number ``position``; colours repeat after seven."""
    return OKABE_ITO[position % len(OKABE_ITO)]
