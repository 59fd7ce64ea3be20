"""Parts by name: data sources, backbones, text encoders and heads, of medgrape itself and of installed packages.

A part of medgrape registers itself with a decorator (``register``). A plugin is a part that another package offers by
an entry point. Only installed packages are searched: a run names the plugins that it was trained with, and never
brings code along.
"""

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeVar, get_args

from medgrape.errors import UserError, first_line, nearest

Kind = Literal["source", "backbone", "text encoder", "head"]
Part = TypeVar("Part")
KINDS: tuple[Kind, ...] = get_args(Kind)
GROUPS: Mapping[Kind, str] = {
    "source": "medgrape.sources",
    "backbone": "medgrape.backbones",
    "text encoder": "medgrape.text_encoders",
    "head": "medgrape.heads",
}
"""Entry-point group of each kind."""
_PACKAGES: Mapping[Kind, str] = {
    "source": "medgrape.datasets.sources",
    "backbone": "medgrape.model.backbones",
    "text encoder": "medgrape.vocabulary.encoders",
    "head": "medgrape.model.heads",
}
"""Packages whose modules register the parts of medgrape itself; a new module there needs no mention elsewhere."""
_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
"""Excludes paths and names of repositories on a model hub."""
_registered: dict[Kind, dict[str, Any]] = {kind: {} for kind in KINDS}


def register(kind: Kind, name: str) -> Callable[[Part], Part]:
    """Return a decorator that makes a class or function a part of medgrape under ``name``."""

    def add(part: Part) -> Part:
        if _registered[kind].setdefault(name, part) is not part:
            raise ValueError(f"two parts of medgrape register as the {kind} {name!r}")
        return part

    return add


@lru_cache
def built_in(kind: Kind) -> Mapping[str, Any]:
    """Return the parts of medgrape itself by name, sorted: what builds each, or a ``DataSource``."""
    package = import_module(_PACKAGES[kind])
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        import_module(module.name)
    return dict(sorted(_registered[kind].items()))


class PluginError(UserError):
    """A part that is not installed, or that does not keep the contract of its kind."""


@dataclass(frozen=True)
class Plugin:
    """A part that an installed package offers; its code is not imported yet."""

    kind: Kind
    name: str
    distribution: str
    """Name of the package for pip."""
    version: str
    target: str
    """Where its code is: ``module:object``."""

    def __str__(self) -> str:
        return f"the {self.kind} {self.name!r} of {self.distribution} {self.version}"

    @property
    def record(self) -> dict[str, str]:
        """Name, package and version, as a run stores them."""
        return {"name": self.name, "distribution": self.distribution, "version": self.version}

    def to_json(self) -> dict[str, str]:
        """Return all fields as plain data."""
        return asdict(self)

    def load(self) -> Any:  # noqa: ANN401 (each kind has its own contract)
        """Import and return the object; this runs code of the package."""
        try:
            factory = EntryPoint(self.name, self.target, GROUPS[self.kind]).load()
        except Exception as error:  # whatever the module raises on import
            raise PluginError(
                f"{self._subject} cannot be imported ({_described(error)}); fix or reinstall {self.distribution}."
            ) from error
        if not callable(factory):
            raise PluginError(f"{self._subject} is not callable; {self.target} should be a function.")
        return factory

    def make(self, *args: object, **named: object) -> Any:  # noqa: ANN401 (each kind has its own contract)
        """Call the object and return its result; an exception becomes an error that names the package."""
        factory = self.load()
        try:
            return factory(*args, **named)
        except UserError:
            raise
        except Exception as error:  # whatever the function raises
            raise PluginError(
                f"{self._subject} failed ({_described(error)}); MEDGRAPE_DEBUG=1 shows the traceback."
            ) from error

    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Return the parameters of the object by name."""
        factory = self.load()
        with self.answering("has no signature that can be inspected, as a function has"):
            return inspect.signature(factory).parameters

    @contextmanager
    def answering(self, failure: str) -> Iterator[None]:
        """Turn any exception of the package's code into an error that names the package; ``failure`` says what failed.

        An exception that is already a ``UserError`` passes.
        """
        try:
            yield
        except UserError:
            raise
        except Exception as error:  # whatever the package's code raises
            raise self.refuse(f"{failure} ({_described(error)})") from error

    def refuse(self, reason: str) -> PluginError:
        """Return the error for a part that breaks the contract of its kind."""
        return PluginError(f"{self._subject} {reason}; this is for {self.distribution} to fix.")

    @property
    def _subject(self) -> str:
        return f"T{str(self)[1:]}"


@dataclass(frozen=True)
class RefusedPart:
    """A part that cannot be used under its name."""

    part: Plugin
    reason: str


def offered(kind: Kind) -> tuple[list[Plugin], list[RefusedPart]]:
    """Return the plugins of installed packages, sorted by name: the usable ones, and the others with the reason."""
    plugins = set[Plugin]()  # a set, as a folder may be on the path twice
    for entry in entry_points(group=GROUPS[kind]):
        metadata = None if entry.dist is None else entry.dist.metadata
        package, version = ("unknown", "unknown") if metadata is None else (metadata["Name"], metadata["Version"])
        plugins.add(Plugin(kind, entry.name, package, version, entry.value))
    names = [plugin.name for plugin in plugins]
    usable, refused = list[Plugin](), list[RefusedPart]()
    for plugin in sorted(plugins, key=lambda plugin: (plugin.name, plugin.distribution, plugin.version, plugin.target)):
        reason = _objection(plugin, names)
        refused.append(RefusedPart(plugin, reason)) if reason else usable.append(plugin)
    return usable, refused


def find_plugin(kind: Kind, name: str) -> Plugin | None:
    """Return the plugin of that name, or None; a name that cannot be used is an error that says why."""
    if name in built_in(kind) or not _NAME.fullmatch(name):
        return None
    usable, refused = offered(kind)
    for refusal in refused:
        if refusal.part.name == name:
            raise PluginError(f"The {kind} {name!r} cannot be used: {refusal.reason}.")
    return next((plugin for plugin in usable if plugin.name == name), None)


def get(kind: Kind, name: str) -> Plugin:
    """Return the plugin of that name; if there is none, the error suggests the closest name."""
    plugin = find_plugin(kind, name)
    if plugin is None:
        raise PluginError(f"There is no {kind} {name!r}{nearest(name, part_names(kind))}; see medgrape parts.")
    return plugin


def part_names(kind: Kind) -> list[str]:
    """Return the names of all usable parts of a kind."""
    return sorted([*built_in(kind), *(plugin.name for plugin in offered(kind)[0])])


def find_recorded_plugin(kind: Kind, record: Mapping[str, str]) -> Plugin:
    """Return the plugin that a run recorded, in whatever version is installed; otherwise say what to install."""
    name, requirement = record["name"], f"{record['distribution']}=={record['version']}"
    origin = f"This was made with the {kind} {name!r} of the package {record['distribution']} {record['version']}"
    plugin = find_plugin(kind, name)
    if plugin is None:
        raise PluginError(f"{origin}, which is not installed here: pip install {requirement}")
    if _normalised(plugin.distribution) != _normalised(record["distribution"]):
        raise PluginError(
            f"{origin}; here another package, {plugin.distribution}, has that name: uninstall it, and pip install "
            f"{requirement}"
        )
    return plugin


def _objection(plugin: Plugin, names: list[str]) -> str:
    if plugin.name in built_in(plugin.kind):
        return f"{plugin.distribution} gives it the name of a part of medgrape; it needs another name"
    if not _NAME.fullmatch(plugin.name):
        return (
            f"{plugin.distribution} names it {plugin.name!r}; a name has lower-case letters, digits, and - . _ "
            "between them"
        )
    if names.count(plugin.name) > 1:
        return "several packages have that name; uninstall all but one"
    return ""


def _normalised(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(error)}"
