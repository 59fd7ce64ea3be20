"""Models that the room knows: given at the start, or made here by teaching and curating; one of them is in use."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import func, select

from medgrape.feedback.reader import Reader
from medgrape.model.manifest import version_of
from medgrape.server.archive import journal
from medgrape.server.model_rows import in_use, model_row, note_use
from medgrape.server.problems import Problem
from medgrape.server.reading.shelf import Loaded, ModelUnavailableError
from medgrape.server.room import Room
from medgrape.server.security.keys import new_id
from medgrape.server.security.roles import Person
from medgrape.server.storage.tables import ModelRow, StudyRow


def loaded(room: Room, row: ModelRow) -> Loaded:
    """A model ready to read."""
    try:
        return room.shelf.get(row.version, folder_of(room, row))
    except ModelUnavailableError as error:
        journal.error("model %s cannot be used: %s", row.version, error.__cause__)
        raise Problem(
            503,
            "model_unavailable",
            f"The files of model {row.name} ({row.version}) are missing or were altered, so nothing is read with it; "
            "put them back as they were. Nothing was changed.",
        ) from error


def folder_of(room: Room, row: ModelRow) -> Path:
    """Where its files lie; a model that was made here lies in the room, wherever the room was moved to."""
    return room.folder.models / row.folder if row.made_here else Path(row.folder)


def put_to_use(room: Room, person: Person, version: str) -> ModelRow:
    """Open films with this model from now on."""
    with room.database.reading() as session:
        row = model_row(session, version)
    loaded(room, row)
    with room.database.writing() as session:
        model_row(session, version, lock=True)  # it may be gone by now
        note_use(room.archive, session, person, version)
    return row


def keep(
    room: Room, person: Person, changed: Reader, parent: ModelRow, name: str, kind: str, **told: object
) -> ModelRow:
    """Write a model that somebody taught or curated into the room's folder and make it known, once."""
    folder = room.folder.models / new_id()
    saved = changed.save(folder)
    version, what = version_of(folder), saved.loaded.run.changes[-1].what
    with room.database.writing() as session:
        known = session.get(ModelRow, version)
        if known is None or known.removed_at is not None:
            row = ModelRow(
                version=version, name=name[:128], folder=folder.name, made_here=True, parent=parent.version,
                what=what, added_at=datetime.now(UTC), added_by=person.name, removed_at=None,
            )  # fmt: skip
            told |= {"parent": parent.version, "name": row.name, "what": what}
            room.archive.note(session, person, kind, model=version, **told)
            return session.merge(row)
    shutil.rmtree(folder)  # who does the same thing again gets the same model
    return known


def remove(room: Room, person: Person, version: str) -> None:
    """Forget a model that was made here and that nothing depends on."""
    with room.database.writing() as session:
        row = model_row(session, version, lock=True)
        if not row.made_here:
            raise Problem(409, "model_given", "This model was given to the server, not made here; it stays.")
        if in_use(session) == version:
            raise Problem(409, "model_in_use", "This model is in use; put another one to use first.")
        if session.scalar(select(func.count()).select_from(StudyRow).where(StudyRow.model == version)):
            raise Problem(409, "model_has_studies", "Films were read with this model, so it must stay.")
        row.removed_at = datetime.now(UTC)
        room.archive.note(session, person, "model.removed", model=version)
    room.shelf.forget(version)
    shutil.rmtree(folder_of(room, row), ignore_errors=True)
    for path in room.folder.all_worth_of(version):
        path.unlink(missing_ok=True)
