"""A data source that another package brings along, held to what every draft promises."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from medgrape.data.dataset import SPLITS, FilmRecord
from medgrape.data.draft import Draft
from medgrape.data.label_files import SourceError
from medgrape.own_parts import OwnPart, get
from medgrape.progress import Track, quietly
from medgrape.spelling import nearest

_TRUTH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_KINDS: Mapping[Any, Callable[[str], object]] = {
    bool: lambda text: _TRUTH[text.lower()],
    int: int,
    float: float,
    Path: Path,
}


def read_own(name: str, folder: Path, options: Mapping[str, str], *, track: Track = quietly) -> Draft:
    """What the source of that name makes of a folder; ``options`` are for its own parameters, by name."""
    part = get("source", name)
    parameters = inspect.signature(part.load()).parameters
    given = {key: _value(part, parameters, key, text) for key, text in options.items()}
    if "track" in parameters:
        given["track"] = track
    draft = part.make(folder, **given)
    if not isinstance(draft, Draft):
        raise part.refuse(f"made a {type(draft).__name__}, not a Draft")
    _check(part, draft)
    draft.notes.append(f"read by {part}")
    return replace(draft, kind=name)


def _value(part: OwnPart, parameters: Mapping[str, inspect.Parameter], key: str, text: str) -> object:
    """The text as what the parameter is annotated with."""
    known = [name for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY and name != "track"]
    if key not in known:
        raise SourceError(f"{part} has no option {key!r}{nearest(key, known)}.".replace("the", "The", 1))
    kind = parameters[key].annotation
    try:
        return _KINDS.get(kind, str)(text)
    except (KeyError, ValueError):
        raise SourceError(f"--option {key} takes {getattr(kind, '__name__', kind)}, not {text!r}.") from None


def _check(part: OwnPart, draft: Draft) -> None:
    """Everything that writing the set would stumble over, told to whoever wrote the source."""
    ids = {film.id for film in draft.films}
    for film in draft.films:
        _check_film(part, draft, film)
    for drawn in draft.boxes:
        if drawn.film not in ids:
            raise part.refuse(f"drew a box on {drawn.film!r}, which is none of its films")
        if drawn.concept not in draft.concepts:
            raise part.refuse(f"drew a box of {drawn.concept!r}, which is none of its concepts")


def _check_film(part: OwnPart, draft: Draft, film: FilmRecord) -> None:
    unlabelled = [name for name in draft.concepts.names if name not in film.labels]
    if unlabelled:
        raise part.refuse(f"says nothing of {unlabelled[0]!r} on {film.id!r}; None is for what is not known")
    if film.class_name and film.class_name not in draft.classes:
        raise part.refuse(f"gives {film.id!r} the class {film.class_name!r}, which is none of its classes")
    if film.split not in SPLITS:
        raise part.refuse(f"puts {film.id!r} into the split {film.split!r}, which is none of {', '.join(SPLITS)}")
    if film.path and not (draft.folder / film.path).is_file():
        raise part.refuse(f"names the film {film.path!r}, which is not in {draft.folder}")
