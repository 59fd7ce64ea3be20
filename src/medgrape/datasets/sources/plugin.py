"""Data sources of other packages: their options are parsed, and their drafts are checked before they are used."""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from medgrape.datasets.dataset import SPLITS, DrawnBox, FilmRecord
from medgrape.datasets.draft import Draft
from medgrape.datasets.label_files import SourceError
from medgrape.errors import nearest
from medgrape.geometry import Box, FilmSize
from medgrape.plugins import OwnPart, get
from medgrape.progress import Track, quietly

_BOOLEANS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_PARSERS: Mapping[Any, Callable[[str], object]] = {
    bool: lambda text: _BOOLEANS[text.lower()],
    int: int,
    float: float,
    Path: Path,
    str: str,
    inspect.Parameter.empty: str,
}


def read_own(name: str, folder: Path, options: Mapping[str, str], *, track: Track = quietly) -> Draft:
    """Read a folder with the source of that name; ``options`` are texts for its keyword-only parameters."""
    part = get("source", name)
    parameters = part.parameters()
    arguments = {key: _parsed(part, parameters, key, text) for key, text in options.items()}
    if "track" in parameters:
        arguments["track"] = track
    draft = part.make(folder, **arguments)
    if not isinstance(draft, Draft):
        raise part.refuse(f"made a {type(draft).__name__}, not a Draft")
    with part.answering("made a Draft of something else than films, boxes, concepts and classes"):
        _check(part, draft)
    draft.notes.append(f"read by {part}")
    return replace(draft, kind=name)


def _parsed(part: OwnPart, parameters: Mapping[str, inspect.Parameter], key: str, text: str) -> object:
    """The text as the type that the parameter is annotated with; ``int | None`` is an int."""
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    known = [name for name, one in parameters.items() if one.kind is keyword_only and name != "track"]
    if key not in known:
        raise SourceError(f"{part} has no option {key!r}{nearest(key, known)}.".replace("the", "The", 1))
    kind = _evaluated(part, key, parameters[key].annotation)
    alternatives = [one for one in get_args(kind) if one is not NoneType]
    if get_origin(kind) in (Union, UnionType) and len(alternatives) == 1:
        kind = alternatives[0]
    if not isinstance(kind, type) or kind not in _PARSERS:
        allowed = "bool, int, float, str or Path, or one of these or None"
        raise part.refuse(f"has the option {key!r} of a kind that no text is read as, for it should be {allowed}")
    try:
        return _PARSERS[kind](text)
    except (KeyError, ValueError):
        raise SourceError(f"--option {key} takes {kind.__name__}, not {text!r}.") from None


def _evaluated(part: OwnPart, key: str, annotation: object) -> object:
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


def _check(part: OwnPart, draft: Draft) -> None:
    """Refuse a draft that could not be written, with the reason for the author of the source."""
    for film in draft.films:
        if not isinstance(film, FilmRecord):
            raise part.refuse(f"lists a {type(film).__name__} among its films, not a FilmRecord")
        for reason in (_film_error(film), _label_error(draft, film), _path_error(draft, film)):
            if reason:
                raise part.refuse(reason)
        if film.class_name and film.class_name not in draft.classes:
            raise part.refuse(f"gives {film.id!r} the class {film.class_name!r}, which is none of its classes")
    ids = {film.id for film in draft.films}
    for drawn in draft.boxes:
        if not isinstance(drawn, DrawnBox) or not isinstance(drawn.box, Box):
            raise part.refuse(f"lists a {type(drawn).__name__} among its boxes, not a DrawnBox with a Box")
        if drawn.film not in ids:
            raise part.refuse(f"drew a box on {drawn.film!r}, which is none of its films")
        if drawn.concept not in draft.concepts:
            raise part.refuse(f"drew a box of {drawn.concept!r}, which is none of its concepts")


def _film_error(film: FilmRecord) -> str:
    for name, text in (("id", film.id), ("patient", film.patient)):
        if not isinstance(text, str) or not text.strip():
            return f"gives a film the {name} {text!r}, which is no text, or an empty one"
    if not isinstance(film.size, FilmSize):
        return f"gives {film.id!r} the size {film.size!r}, which is no FilmSize"
    if film.split not in SPLITS:
        return f"puts {film.id!r} into the split {film.split!r}, which is none of {', '.join(SPLITS)}"
    return ""


def _label_error(draft: Draft, film: FilmRecord) -> str:
    for name in draft.concepts.names:
        if name not in film.labels:
            return f"says nothing of {name!r} on {film.id!r}; None is for what is not known"
        if film.labels[name] not in (True, False, None):
            return f"says {film.labels[name]!r} of {name!r} on {film.id!r}, not True, False or None"
    return ""


def _path_error(draft: Draft, film: FilmRecord) -> str:
    """A film must lie in the folder, since a data set may be moved together with its films."""
    path = Path(film.path)
    if film.path and (path.is_absolute() or ".." in path.parts):
        return f"names the film {film.path!r}, which is no path from {draft.folder} that stays in it"
    if film.path and not (draft.folder / path).is_file():
        return f"names the film {film.path!r}, which is not in {draft.folder}"
    return ""
