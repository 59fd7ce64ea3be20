"""The registry of data sources: what ``medgrape data prepare`` can read, and with which options.

A source is a function that reads a folder or a file into a ``Draft``; its keyword-only parameters are its options. A
new one is a module of this package that registers a function::

    @source("clinic", help="Films of the clinic.", example="clinic films --out data/clinic", test=0.2)
    def read_clinic(folder: Path, *, deep: Annotated[bool, Option("Also read subfolders.", "--deep")] = False) -> Draft:
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

from medgrape.datasets.draft import Draft
from medgrape.datasets.sources.plugin import read_own
from medgrape.plugins import get

_ORDER = ("tbx11k", "nih", "vindr", "coco", "labelstudio", "cvat", "table")
"""Order of the commands; others follow by name."""
R = TypeVar("R", bound=Callable[..., Draft])


@dataclass(frozen=True)
class Option:
    """How a parameter of a source appears on the command line."""

    help: str
    flag: str | None = None
    """Name of the option; by default that of the parameter."""
    min: int | None = None
    max: int | None = None
    file: bool = False
    """Whether it names a file that must exist."""


@dataclass(frozen=True)
class DataSource:
    """A kind of data that can be prepared."""

    name: str
    read: Callable[..., Draft]
    """Takes the path, its options by name, and ``track``."""
    help: str
    example: str = ""
    """Arguments of ``medgrape data prepare``."""
    test: float = 0.0
    """Default share of patients to test on, where no published test film is there."""
    file: str = ""
    """Description of the file that it reads; empty where it reads a folder."""


_registered: dict[str, DataSource] = {}


def source(name: str, *, help: str, example: str, test: float = 0.0, file: str = "") -> Callable[[R], R]:  # noqa: A002
    """Register the decorated function as the reader of a source."""

    def register(read: R) -> R:
        _registered[name] = DataSource(name, read, help, example, test, file)
        return read

    return register


def built_in_sources() -> list[DataSource]:
    """Return the sources of this package, in the order of their commands."""
    package = import_module(__package__)
    for module in iter_modules(package.__path__):
        import_module(f"{__package__}.{module.name}")
    known = [_registered[name] for name in _ORDER]
    return known + [_registered[name] for name in sorted(_registered.keys() - set(_ORDER))]


def plugin_source(name: str) -> DataSource:
    """Return the source of that name which another installed package offers; its options are a mapping of texts."""
    return DataSource(name, partial(read_own, name), help=str(get("source", name)), test=0.2)
