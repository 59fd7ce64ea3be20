"""Data sources: what ``medgrape data prepare`` can read, from medgrape itself and from other packages.

A source is a function that reads a folder or a file into a ``Draft``; its keyword-only parameters are its options. A
new one is a module of this package that registers a function::

    @source("clinic", help="Films of the clinic.", example="clinic films --out data/clinic", test=0.2)
    def read_clinic(folder: Path, *, deep: Annotated[bool, Option("Also read subfolders.", "--deep")] = False) -> Draft:
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from medgrape.datasets.dataset import SPLITS, DrawnBox, FilmRecord
from medgrape.datasets.draft import Draft, SourceError
from medgrape.errors import nearest
from medgrape.geometry import Box, FilmSize
from medgrape.plugins import Plugin, built_in, get, register
from medgrape.progress import Track, quietly

_ORDER = ("tbx11k", "nih", "vindr", "coco", "labelstudio", "cvat", "table")  # of the commands; others follow
_OPTION_TYPES = (bool, int, float, str, Path)
R = TypeVar("R", bound=Callable[..., Draft])


@dataclass(frozen=True)
class Option:
    """How a parameter of a source appears on the command line."""

    help: str
    flag: str | None = None  # name of the option; by default that of the parameter
    min: int | None = None
    max: int | None = None
    file: bool = False  # whether it names a file that must exist


@dataclass(frozen=True)
class DataSource:
    """A kind of data that can be prepared."""

    name: str
    read: Callable[..., Draft]  # takes the path, its options by name, and ``track``
    help: str
    example: str = ""  # arguments of ``medgrape data prepare``
    test: float = 0.0  # default share of patients to test on, where no published test film is there
    file: str = ""  # description of the file that it reads; empty where it reads a folder


def source(name: str, *, help: str, example: str, test: float = 0.0, file: str = "") -> Callable[[R], R]:  # noqa: A002
    """Register the decorated function as the reader of a source."""

    def add(read: R) -> R:
        register("source", name)(DataSource(name, read, help, example, test, file))
        return read

    return add


def built_in_sources() -> list[DataSource]:
    """Return the sources of this package that read films, in the order of their commands."""
    known = {name: part for name, part in built_in("source").items() if isinstance(part, DataSource)}
    return [known[name] for name in dict.fromkeys([*_ORDER, *known])]


def read_with_plugin(name: str, folder: Path, options: Mapping[str, str], *, track: Track = quietly) -> Draft:
    """Read a folder with the source of that name; ``options`` are texts for its keyword-only parameters."""
    part = get("source", name)
    parameters = part.parameters()
    arguments = {key: _parse_option(part, parameters, key, text) for key, text in options.items()}
    if "track" in parameters:
        arguments["track"] = track
    draft = part.make(folder, **arguments)
    if not isinstance(draft, Draft):
        raise part.refuse(f"made a {type(draft).__name__}, not a Draft")
    with part.answering("made a Draft of something else than films, boxes, concepts and classes"):
        _check(part, draft)
    draft.notes.append(f"read by {part}")
    return replace(draft, kind=name)


def _parse_option(part: Plugin, parameters: Mapping[str, inspect.Parameter], key: str, text: str) -> object:
    """The text as the type that the parameter is annotated with; ``int | None`` is an int, no annotation a text."""
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    known = [name for name, other in parameters.items() if other.kind is keyword_only and name != "track"]
    if key not in known:
        raise SourceError(f"{part} has no option {key!r}{nearest(key, known)}.".replace("the", "The", 1))
    kind = _resolve_annotation(part, key, parameters[key].annotation)
    alternatives = [other for other in get_args(kind) if other is not NoneType]
    if get_origin(kind) in (Union, UnionType) and len(alternatives) == 1:
        kind = alternatives[0]
    kind = str if kind is inspect.Parameter.empty else kind
    if kind not in _OPTION_TYPES:
        allowed = "use bool, int, float, str or Path, optionally with None"
        raise part.refuse(f"has an option {key!r} with an unsupported type; {allowed}")
    try:
        return TypeAdapter(kind).validate_python(text)
    except ValidationError:
        raise SourceError(f"--option {key} takes {kind.__name__}, not {text!r}.") from None


def _resolve_annotation(part: Plugin, key: str, annotation: object) -> Any:  # noqa: ANN401 (a type)
    """The annotation as a type, also where the module keeps annotations as text; other parameters are not evaluated."""
    if not isinstance(annotation, str):
        return annotation
    try:
        names = vars(sys.modules[part.load().__module__])
        return get_type_hints(SimpleNamespace(__annotations__={key: annotation}), names)[key]
    except Exception as error:  # the package may raise anything
        raise part.refuse(
            f"has the option {key!r} with an annotation that cannot be read ({type(error).__name__}: {error})"
        ) from error


def _check(part: Plugin, draft: Draft) -> None:
    """Refuse a draft that could not be written, with the reason for the author of the source."""
    for film in draft.films:
        if not isinstance(film, FilmRecord):
            raise part.refuse(f"lists a {type(film).__name__} among its films, not a FilmRecord")
        for reason in _film_errors(draft, film):
            raise part.refuse(reason)
    ids = {film.id for film in draft.films}
    for drawn in draft.boxes:
        if not isinstance(drawn, DrawnBox) or not isinstance(drawn.box, Box):
            raise part.refuse(f"lists a {type(drawn).__name__} among its boxes, not a DrawnBox with a Box")
        if drawn.film not in ids:
            raise part.refuse(f"drew a box on {drawn.film!r}, which is none of its films")
        if drawn.concept not in draft.concepts:
            raise part.refuse(f"drew a box of {drawn.concept!r}, which is none of its concepts")


def _film_errors(draft: Draft, film: FilmRecord) -> Iterator[str]:
    for name, text in (("id", film.id), ("patient", film.patient)):
        if not isinstance(text, str) or not text.strip():
            yield f"gives a film the {name} {text!r}, which is no text, or an empty one"
    if not isinstance(film.size, FilmSize):
        yield f"gives {film.id!r} the size {film.size!r}, which is no FilmSize"
    if film.split not in SPLITS:
        yield f"puts {film.id!r} into the split {film.split!r}, which is none of {', '.join(SPLITS)}"
    path = Path(film.path)  # in the folder, since a data set may be moved together with its films
    if film.path and (path.is_absolute() or ".." in path.parts):
        yield f"names the film {film.path!r}, which is no path from {draft.folder} that stays in it"
    elif film.path and not (draft.folder / path).is_file():
        yield f"names the film {film.path!r}, which is not in {draft.folder}"
    if film.class_name and film.class_name not in draft.classes:
        yield f"gives {film.id!r} the class {film.class_name!r}, which is none of its classes"
    yield from _label_errors(draft, film)


def _label_errors(draft: Draft, film: FilmRecord) -> Iterator[str]:
    for name in draft.concepts.names:
        if name not in film.labels:
            yield f"says nothing of {name!r} on {film.id!r}; None is for what is not known"
        elif film.labels[name] not in (True, False, None):
            yield f"says {film.labels[name]!r} of {name!r} on {film.id!r}, not True, False or None"
