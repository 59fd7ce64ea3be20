"""Which models the room knows, and which of them is in use: rows alone, without a model in memory."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from medgrape.model.manifest import unseal, version_of
from medgrape.server.archive import Archive
from medgrape.server.problems import not_found
from medgrape.server.security.accounts import SERVER
from medgrape.server.security.roles import Person
from medgrape.server.storage.tables import ModelRow, SettingRow

IN_USE = "model_in_use"


def register(archive: Archive, runs: Sequence[Path]) -> list[ModelRow]:
    """Make runs known, before the server starts; the first one that is new here becomes the one in use."""
    found = []
    for folder in runs:
        unseal(folder)
        found.append((folder.resolve(), version_of(folder)))
    with archive.database.writing() as session:
        rows = [_registered(archive, session, folder, version) for folder, version in found]
        fresh = [row for row, is_new in rows if is_new]
        if fresh or in_use(session) is None:
            note_use(archive, session, SERVER, (fresh or [row for row, _ in rows])[0].version)
        return [row for row, _ in rows]


def _registered(archive: Archive, session: Session, folder: Path, version: str) -> tuple[ModelRow, bool]:
    row = session.get(ModelRow, version)
    if row is not None:
        if not row.made_here:
            row.folder, row.removed_at = str(folder), None
        return row, False
    what = f"Given to the server as {folder.name}."
    row = ModelRow(
        version=version, name=folder.name[:128], folder=str(folder), made_here=False, parent=None, what=what,
        added_at=datetime.now(UTC), added_by=SERVER, removed_at=None,
    )  # fmt: skip
    session.add(row)
    archive.note(session, SERVER, "model.added", model=version, name=row.name, what=what)
    return row, True


def in_use(session: Session) -> str | None:
    """The version with which films are opened unless somebody asks for another."""
    row = session.get(SettingRow, IN_USE)
    return None if row is None else row.value


def models(session: Session) -> Sequence[ModelRow]:
    """All that were not removed, the oldest first."""
    return session.scalars(select(ModelRow).where(ModelRow.removed_at.is_(None)).order_by(ModelRow.added_at)).all()


def model_row(session: Session, version: str | None, *, lock: bool = False) -> ModelRow:
    """A model by its version, or the one in use; locked, it stays until the session ends."""
    wanted = version or in_use(session) or ""
    row = session.get(ModelRow, wanted, with_for_update=lock)
    if row is None or row.removed_at is not None:
        raise not_found("model", wanted)
    return row


def note_use(archive: Archive, session: Session, who: Person | str, version: str) -> None:
    """Write down that films are opened with this model from now on."""
    row = session.get(SettingRow, IN_USE)
    before = None if row is None else row.value
    if row is None:
        session.add(SettingRow(key=IN_USE, value=version))
    else:
        row.value = version
    archive.note(session, who, "model.put_to_use", model=version, before=before)
