"""Parts that other packages bring along by entry points: data sources, backbones, text encoders, heads.

Only what is installed as a package can be found here. A run names the parts that it was made with, and never brings
code along.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, get_args

from medgrape.errors import UserError, first_line, nearest

Kind = Literal["source", "backbone", "text encoder", "head"]
KINDS: tuple[Kind, ...] = get_args(Kind)
GROUPS: Mapping[Kind, str] = {
    "source": "medgrape.sources",
    "backbone": "medgrape.backbones",
    "text encoder": "medgrape.text_encoders",
    "head": "medgrape.heads",
}
BUILT_IN: Mapping[Kind, tuple[str, ...]] = {
    "source": ("coco", "cvat", "labelstudio", "nih", "phantom", "table", "tbx11k", "vindr"),
    "backbone": ("efficientnet-lite0", "resnet-18", "resnet-50"),
    "text encoder": ("biovil-t", "lexical", "minilm", "none"),
    "head": ("add-gcn", "gat", "linear", "ml-gcn", "mlp"),
}
"""Names that no package can take."""
_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
"""Nothing that could be a path, or a name of a model hub."""


class PartError(UserError):
    """A part that is not there, or does not keep to what is asked of its kind."""


@dataclass(frozen=True)
class OwnPart:
    """A part that an installed package offers; nothing of it was imported yet."""

    kind: Kind
    name: str
    distribution: str
    """The package to install for it, as pip calls it."""
    version: str
    target: str
    """Where its code is: ``module:object``."""

    def __str__(self) -> str:
        return f"the {self.kind} {self.name!r} of {self.distribution} {self.version}"

    @property
    def record(self) -> dict[str, str]:
        """What a run keeps of it."""
        return {"name": self.name, "distribution": self.distribution, "version": self.version}

    def to_json(self) -> dict[str, str]:
        """Plain data."""
        return asdict(self)

    def load(self) -> Any:  # noqa: ANN401 (each kind has its own contract)
        """The object itself; this runs the package's code."""
        try:
            found = EntryPoint(self.name, self.target, GROUPS[self.kind]).load()
        except Exception as error:  # whatever somebody's module raises while it is imported
            raise PartError(
                f"{self._told} cannot be imported ({type(error).__name__}: {first_line(error)}); mend or reinstall "
                f"{self.distribution}."
            ) from error
        if not callable(found):
            raise PartError(f"{self._told} is nothing that can be called; {self.target} should be a function.")
        return found

    def make(self, *given: object, **named: object) -> Any:  # noqa: ANN401 (each kind has its own contract)
        """What the part makes when it is called; its own mistakes are told as its own."""
        build = self.load()
        try:
            return build(*given, **named)
        except UserError:
            raise
        except Exception as error:  # whatever somebody's function raises
            raise PartError(
                f"{self._told} failed ({type(error).__name__}: {first_line(error)}); MEDGRAPE_DEBUG=1 shows where."
            ) from error

    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """What the part can be called with, by name."""
        found = self.load()
        with self.answering("is nothing that tells what it takes, as a function does"):
            return inspect.signature(found).parameters

    @contextmanager
    def answering(self, failure: str) -> Iterator[None]:
        """While the part is asked something, or is looked at: whatever is raised is for its package to mend."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:  # whatever somebody's code raises
            raise self.refuse(f"{failure} ({type(error).__name__}: {first_line(error)})") from error

    def refuse(self, reason: str) -> PartError:
        """An error that says who is to mend what."""
        return PartError(f"{self._told} {reason}; this is for {self.distribution} to mend.")

    @property
    def _told(self) -> str:
        return f"T{str(self)[1:]}"


@dataclass(frozen=True)
class RefusedPart:
    """A part that cannot be used under its name."""

    part: OwnPart
    reason: str


def offered(kind: Kind) -> tuple[list[OwnPart], list[RefusedPart]]:
    """What installed packages offer, by name: what can be used, and what cannot, with the reason."""
    found = sorted((_part(kind, entry) for entry in entry_points(group=GROUPS[kind])), key=_order)
    found = list(dict.fromkeys(found))  # a folder that is on the path twice is one package
    names = [part.name for part in found]
    usable, refused = list[OwnPart](), list[RefusedPart]()
    for part in found:
        reason = _objection(part, names)
        refused.append(RefusedPart(part, reason)) if reason else usable.append(part)
    return usable, refused


def find(kind: Kind, name: str) -> OwnPart | None:
    """The part of that name, or None; a name that is refused is an error that says why."""
    if name in BUILT_IN[kind] or not _NAME.fullmatch(name):
        return None
    usable, refused = offered(kind)
    for one in refused:
        if one.part.name == name:
            raise PartError(f"The {kind} {name!r} cannot be used: {one.reason}.")
    return next((part for part in usable if part.name == name), None)


def get(kind: Kind, name: str) -> OwnPart:
    """The part of that name; where there is none, the nearest name is told."""
    part = find(kind, name)
    if part is None:
        raise PartError(f"There is no {kind} {name!r}{nearest(name, names_of(kind))}; see medgrape parts.")
    return part


def names_of(kind: Kind) -> list[str]:
    """Every name that can be asked for."""
    return sorted([*BUILT_IN[kind], *(part.name for part in offered(kind)[0])])


def same_again(kind: Kind, record: Mapping[str, str]) -> OwnPart:
    """The part that a run was made with, if it is installed here, in whatever version."""
    name, wanted = record["name"], f"{record['distribution']}=={record['version']}"
    made = f"This was made with the {kind} {name!r} of the package {record['distribution']} {record['version']}"
    part = find(kind, name)
    if part is None:
        raise PartError(f"{made}, which is not installed here: pip install {wanted}")
    if _normal(part.distribution) != _normal(record["distribution"]):
        raise PartError(
            f"{made}; here another package, {part.distribution}, has that name: uninstall it, and pip install {wanted}"
        )
    return part


def _part(kind: Kind, entry: EntryPoint) -> OwnPart:
    about = None if entry.dist is None else entry.dist.metadata
    name, version = ("unknown", "unknown") if about is None else (about["Name"], about["Version"])
    return OwnPart(kind, entry.name, name, version, entry.value)


def _order(part: OwnPart) -> tuple[str, str]:
    return part.name, part.distribution


def _objection(part: OwnPart, names: list[str]) -> str:
    if part.name in BUILT_IN[part.kind]:
        return f"{part.distribution} calls it as a part of medgrape is called; it needs another name"
    if not _NAME.fullmatch(part.name):
        return f"{part.distribution} calls it {part.name!r}; a name has small letters, digits, and - . _ between them"
    if names.count(part.name) > 1:
        return "several packages have that name, so nobody knows which is meant; uninstall all but one"
    return ""


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()
