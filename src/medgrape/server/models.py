"""Models of the room: given at the start, or made here by teaching and curating. One of them is in use."""

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from medgrape.reader import Reader
from medgrape.runs.manifest import unseal, version_of
from medgrape.server.accounts import SERVER, User, new_id
from medgrape.server.errors import Problem, not_found
from medgrape.server.inference import LoadedModel, ModelUnavailableError
from medgrape.server.room import Room, RoomStore, logger
from medgrape.server.storage.tables import ModelRow, SettingRow, StudyRow

IN_USE = "model_in_use"


def register(store: RoomStore, runs: Sequence[Path]) -> list[ModelRow]:
    """Add runs before the server starts; the first one that is new becomes the model in use."""
    for run in runs:
        unseal(run)
    rows, added = [], []
    with store.database.writing() as session:
        for folder in (run.resolve() for run in runs):
            version = version_of(folder)
            row = session.get(ModelRow, version)
            if row is None:
                row = ModelRow(
                    version=version, name=folder.name[:128], folder=str(folder), made_here=False, parent=None,
                    what=f"Given to the server as {folder.name}.", added_at=datetime.now(UTC), added_by=SERVER,
                    removed_at=None,
                )  # fmt: skip
                session.add(row)
                store.record(session, SERVER, "model.added", model=version, name=row.name, what=row.what)
                added.append(row)
            elif not row.made_here:
                row.folder, row.removed_at = str(folder), None
            rows.append(row)
        if added or in_use(session) is None:
            _use(store, session, SERVER, (added or rows)[0].version)
    return rows


def in_use(session: Session) -> str | None:
    """Return the version of the model in use: the one that reads films unless a request names another."""
    row = session.get(SettingRow, IN_USE)
    return None if row is None else row.value


def models(session: Session) -> Sequence[ModelRow]:
    """Return the models that were not removed, the oldest first."""
    return session.scalars(select(ModelRow).where(ModelRow.removed_at.is_(None)).order_by(ModelRow.added_at)).all()


def model_row(session: Session, version: str | None, *, lock: bool = False) -> ModelRow:
    """Return a model, or the one in use; if locked, it cannot be removed until the session ends."""
    wanted = version or in_use(session) or ""
    row = session.get(ModelRow, wanted, with_for_update=lock)
    if row is None or row.removed_at is not None:
        raise not_found("model", wanted)
    return row


def _use(store: RoomStore, session: Session, user: User | str, version: str) -> None:
    """Store and log which model is in use."""
    before = in_use(session)
    session.merge(SettingRow(key=IN_USE, value=version))
    store.record(session, user, "model.put_to_use", model=version, before=before)


def loaded(room: Room, row: ModelRow) -> LoadedModel:
    """Return the loaded model, after a check that its files are unaltered."""
    try:
        return room.model_cache.get(row.version, folder_of(room, row))
    except ModelUnavailableError as error:
        logger.error("model %s cannot be used: %s", row.version, error.__cause__)
        detail = (
            f"The files of model {row.name} ({row.version}) are missing or were altered, so nothing is read with it; "
            "put them back as they were. Nothing was changed."
        )
        raise Problem(503, "model_unavailable", detail) from error


def find_model(room: Room, version: str | None) -> tuple[ModelRow, Reader]:
    """Return a model, or the one in use, and its reader."""
    with room.database.reading() as session:
        row = model_row(session, version)
    return row, loaded(room, row).reader


def folder_of(room: Room, row: ModelRow) -> Path:
    """Return the folder of a model; models made here lie in the room's folder."""
    return room.folder.models / row.folder if row.made_here else Path(row.folder)


def put_to_use(room: Room, user: User, version: str) -> ModelRow:
    """Make this the model in use."""
    row, _ = find_model(room, version)
    with room.database.writing() as session:
        model_row(session, version, lock=True)  # it may have been removed meanwhile
        _use(room.store, session, user, version)
    return row


def store_model(
    room: Room, user: User, changed: Reader, parent: ModelRow, name: str, event: str, body: dict[str, Any]
) -> ModelRow:
    """Store a model made by teaching or curating. The same change to the same model gives the known model."""
    folder = room.folder.models / new_id()
    saved = changed.save(folder)
    version, what = version_of(folder), saved.loaded.run.changes[-1].what
    with room.database.writing() as session:
        known = session.get(ModelRow, version)
        if known is None or known.removed_at is not None:
            row = ModelRow(
                version=version, name=name[:128], folder=folder.name, made_here=True, parent=parent.version,
                what=what, added_at=datetime.now(UTC), added_by=user.name, removed_at=None,
            )  # fmt: skip
            body = body | {"parent": parent.version, "name": row.name, "what": what}
            room.store.record(session, user, event, model=version, **body)
            return session.merge(row)
    shutil.rmtree(folder)
    return known


def remove(room: Room, user: User, version: str) -> None:
    """Remove a model that was made here, is not in use and has no studies."""
    with room.database.writing() as session:
        row = model_row(session, version, lock=True)
        if not row.made_here:
            raise Problem(409, "model_given", "This model was given to the server, not made here; it stays.")
        if in_use(session) == version:
            raise Problem(409, "model_in_use", "This model is in use; put another one to use first.")
        if session.scalar(select(func.count()).select_from(StudyRow).where(StudyRow.model == version)):
            raise Problem(409, "model_has_studies", "Films were read with this model, so it must stay.")
        row.removed_at = datetime.now(UTC)
        room.store.record(session, user, "model.removed", model=version)
    room.model_cache.forget(version)
    shutil.rmtree(folder_of(room, row), ignore_errors=True)
    for path in room.folder.assessment_files(version):
        path.unlink(missing_ok=True)
