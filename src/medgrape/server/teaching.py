"""Teaching and curating: both make another model, and leave the one they start from as it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from medgrape.concepts import Concept
from medgrape.datasets.cache import fingerprint
from medgrape.geometry import Box
from medgrape.progress import Track
from medgrape.reader import Reader
from medgrape.server.films import film_row
from medgrape.server.models import keep, loaded, model_row
from medgrape.server.room import Room
from medgrape.server.security.roles import User
from medgrape.server.storage.tables import ModelRow
from medgrape.vocabulary.new_concept import with_concept


@dataclass(frozen=True)
class Lesson:
    """A finding to be learnt."""

    name: str
    description: str
    title: str | None
    examples: Sequence[tuple[str, Box | None]]
    """Films by their ids."""
    seed: int


@dataclass(frozen=True)
class Prepared:
    """A lesson that was found possible."""

    lesson: Lesson
    parent: ModelRow
    shown: tuple[Path | tuple[Path, Box], ...]
    contents: tuple[str, ...]
    """Of the example films, as they came."""


def prepare(room: Room, lesson: Lesson, model: str | None) -> Prepared:
    """Refuse at once what cannot be learnt: a film that is not there, a name that is taken."""
    with room.database.reading() as session:
        parent = model_row(session, model)
        films = [film_row(session, film) for film, _ in lesson.examples]
    known = loaded(room, parent).reader.concepts
    with_concept(known, Concept(lesson.name, lesson.title or lesson.name.replace("_", " "), lesson.description))
    paths = [room.folder.film(film.id, film.suffix) for film in films]
    boxes = [box for _, box in lesson.examples]
    shown = tuple(path if box is None else (path, box) for path, box in zip(paths, boxes, strict=True))
    return Prepared(lesson, parent, shown, tuple(film.content for film in films))


def teach(room: Room, user: User, prepared: Prepared, track: Track) -> dict[str, Any]:
    """Learn the finding and keep the model that knows it; what came of it."""
    lesson, reader = prepared.lesson, loaded(room, prepared.parent).reader
    learnt = reader.learn(
        lesson.name, lesson.description, prepared.shown, title=lesson.title, seed=lesson.seed, track=track
    )
    list(track([None], "writing the model", 1))  # the last moment at which it can be cancelled
    row = keep(
        room, user, _known_by_origin(learnt, prepared.contents), prepared.parent,
        f"{prepared.parent.name} + {lesson.name}", "concept.taught", concept=lesson.name,
        films=[film for film, _ in lesson.examples],
    )  # fmt: skip
    return {"model": row.version, "concept": lesson.name, "what": row.what}


def curate(
    room: Room, user: User, model: str, concept: str, numbers: Sequence[int], name: str | None,
    how: Literal["discarded", "restored"],
) -> ModelRow:  # fmt: skip
    """Discard or restore prototypes."""
    with room.database.reading() as session:
        parent = model_row(session, model)
    reader = loaded(room, parent).reader
    changed = (reader.discard if how == "discarded" else reader.restore)(concept, numbers)
    called = name or f"{parent.name}, {concept} {how}"
    return keep(room, user, changed, parent, called, f"prototypes.{how}", concept=concept, prototypes=sorted(numbers))


def _known_by_origin(learnt: Reader, contents: Sequence[str]) -> Reader:
    """A run knows the films it learnt from by their checksums; here also by that of the file as it came."""
    run = learnt.loaded.run
    films = tuple(dict.fromkeys((*run.learnt_from, *(fingerprint(content) for content in contents))))
    return Reader(replace(learnt.loaded, run=replace(run, learnt_from=films)))
