"""A data source that another package brings along, held to what every draft promises."""

import inspect
import sys
from collections.abc import Callable, Collection, Mapping
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

_TRUTH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_KINDS: Mapping[Any, Callable[[str], object]] = {
    bool: lambda text: _TRUTH[text.lower()],
    int: int,
    float: float,
    Path: Path,
    str: str,
    inspect.Parameter.empty: str,
}


def read_own(name: str, folder: Path, options: Mapping[str, str], *, track: Track = quietly) -> Draft:
    """What the source of that name makes of a folder; ``options`` are for its own parameters, by name."""
    part = get("source", name)
    parameters = part.parameters()
    given = {key: _value(part, parameters, key, text) for key, text in options.items()}
    if "track" in parameters:
        given["track"] = track
    draft = part.make(folder, **given)
    if not isinstance(draft, Draft):
        raise part.refuse(f"made a {type(draft).__name__}, not a Draft")
    with part.answering("made a Draft of something else than films, boxes, concepts and classes"):
        _check(part, draft)
    draft.notes.append(f"read by {part}")
    return replace(draft, kind=name)


def _value(part: OwnPart, parameters: Mapping[str, inspect.Parameter], key: str, text: str) -> object:
    """The text as what the parameter is annotated with."""
    known = [name for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY and name != "track"]
    if key not in known:
        raise SourceError(f"{part} has no option {key!r}{nearest(key, known)}.".replace("the", "The", 1))
    kind = _kind(part, key, parameters[key].annotation)
    try:
        return _KINDS[kind](text)
    except (KeyError, ValueError):
        raise SourceError(f"--option {key} takes {getattr(kind, '__name__', kind)}, not {text!r}.") from None


def _kind(part: OwnPart, key: str, annotation: object) -> object:
    """What a text is read as. ``int | None`` is an int: who gives an option does not give nothing."""
    annotation = _evaluated(part, key, annotation)
    kinds = [one for one in get_args(annotation) if one is not NoneType]
    either = get_origin(annotation) in (Union, UnionType) and len(kinds) == 1
    kind = kinds[0] if either else annotation
    if not isinstance(kind, type) or kind not in _KINDS:
        known = "bool, int, float, str or Path, or one of these or None"
        raise part.refuse(f"has the option {key!r} of a kind that no text is read as, for it should be {known}")
    return kind


def _evaluated(part: OwnPart, key: str, annotation: object) -> object:
    """This annotation as a type, also where its module keeps all as text; the others may name what is not there."""
    if not isinstance(annotation, str):
        return annotation
    try:
        names = vars(sys.modules[part.load().__module__])
        return get_type_hints(SimpleNamespace(__annotations__={key: annotation}), names)[key]
    except Exception as error:  # whatever somebody wrote there
        raise part.refuse(
            f"has the option {key!r} with an annotation that cannot be read ({type(error).__name__}: {error})"
        ) from error


def _check(part: OwnPart, draft: Draft) -> None:
    """Everything that writing the set would stumble over, told to whoever wrote the source."""
    for film in draft.films:
        if not isinstance(film, FilmRecord):
            raise part.refuse(f"lists a {type(film).__name__} among its films, not a FilmRecord")
        _check_film(part, draft, film)
    ids = {film.id for film in draft.films}
    for drawn in draft.boxes:
        if not isinstance(drawn, DrawnBox) or not isinstance(drawn.box, Box):
            raise part.refuse(f"lists a {type(drawn).__name__} among its boxes, not a DrawnBox with a Box")
        _check_box(part, draft, ids, drawn)


def _check_box(part: OwnPart, draft: Draft, ids: Collection[str], drawn: DrawnBox) -> None:
    if drawn.film not in ids:
        raise part.refuse(f"drew a box on {drawn.film!r}, which is none of its films")
    if drawn.concept not in draft.concepts:
        raise part.refuse(f"drew a box of {drawn.concept!r}, which is none of its concepts")


def _check_film(part: OwnPart, draft: Draft, film: FilmRecord) -> None:
    _check_identity(part, film)
    _check_labels(part, draft, film)
    _check_file(part, draft, film)
    if film.class_name and film.class_name not in draft.classes:
        raise part.refuse(f"gives {film.id!r} the class {film.class_name!r}, which is none of its classes")
    if film.split not in SPLITS:
        raise part.refuse(f"puts {film.id!r} into the split {film.split!r}, which is none of {', '.join(SPLITS)}")


def _check_identity(part: OwnPart, film: FilmRecord) -> None:
    for name, text in (("id", film.id), ("patient", film.patient)):
        if not isinstance(text, str) or not text.strip():
            raise part.refuse(f"gives a film the {name} {text!r}, which is no text, or an empty one")
    if not isinstance(film.size, FilmSize):
        raise part.refuse(f"gives {film.id!r} the size {film.size!r}, which is no FilmSize")


def _check_labels(part: OwnPart, draft: Draft, film: FilmRecord) -> None:
    for name in draft.concepts.names:
        if name not in film.labels:
            raise part.refuse(f"says nothing of {name!r} on {film.id!r}; None is for what is not known")
        if film.labels[name] not in (True, False, None):
            raise part.refuse(f"says {film.labels[name]!r} of {name!r} on {film.id!r}, not True, False or None")


def _check_file(part: OwnPart, draft: Draft, film: FilmRecord) -> None:
    """A set may be moved together with its films, so none lies elsewhere."""
    if not film.path:
        return
    path = Path(film.path)
    if path.is_absolute() or ".." in path.parts:
        raise part.refuse(f"names the film {film.path!r}, which is no path from {draft.folder} that stays in it")
    if not (draft.folder / path).is_file():
        raise part.refuse(f"names the film {film.path!r}, which is not in {draft.folder}")
