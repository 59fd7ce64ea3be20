"""The database and the log in it: all that commands and the start of a server need."""

import logging
import os
import secrets
import shutil
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from medgrape.errors import UserError
from medgrape.server.security.roles import User
from medgrape.server.settings import ServerSettings
from medgrape.server.storage.anchor import Anchor
from medgrape.server.storage.database import Database, default_url
from medgrape.server.storage.events import Event, EventLog, NewEvent


class RoomError(UserError):
    """A folder that cannot be a reading room."""


@dataclass(frozen=True)
class RoomFolder:
    """Places in the folder. Names in it are made by us, never taken from a file or a request."""

    root: Path

    def prepare_place(self) -> None:
        """Make what is missing, for our eyes only."""
        if self.root.exists() and not self.root.is_dir():
            raise RoomError(f"{self.root} is no folder; choose another --room.")
        if (self.root / "manifest.json").exists():
            raise RoomError(f"{self.root} is a run; choose another --room.")
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.uploads, self.films, self.features, self.models, self.assessments):
            folder.mkdir(mode=0o700, exist_ok=True)

    def sweep(
        self, films: Collection[str], contents: Collection[str], models: Collection[str], versions: Collection[str]
    ) -> None:
        """Before anybody works here: drop uploads, films, features and models of which the database knows nothing.

        They are left by a server that was killed between writing files and writing them down.
        """
        shutil.rmtree(self.uploads, ignore_errors=True)
        self.uploads.mkdir(mode=0o700)
        _keep_only(self.films.glob("*/*"), films)
        _keep_only(self.features.glob("*/*/*"), contents)
        _keep_only(self.models.iterdir(), models)
        _keep_only(self.assessments.iterdir(), versions)

    def drop_stale_uploads(self, seconds: float) -> None:
        """Uploads that a killed worker left; those that are younger may be somebody's."""
        for path in self.uploads.iterdir():
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > seconds:
                    path.unlink()

    @property
    def uploads(self) -> Path:
        """Uploads on their way in."""
        return self.root / "arrivals"

    @property
    def films(self) -> Path:
        """Films that are kept, and previews of them."""
        return self.root / "films"

    @property
    def features(self) -> Path:
        """What backbones made of films."""
        return self.root / "features"

    @property
    def models(self) -> Path:
        """Runs that were made here."""
        return self.root / "models"

    @property
    def assessments(self) -> Path:
        """What was found out about models on data sets."""
        return self.root / "worth"

    @property
    def anchor(self) -> Path:
        """Where the log's end is written down."""
        return self.root / "log-end"

    def film(self, film: str, suffix: str) -> Path:
        """A film's file."""
        return self.films / film[:2] / f"{film}{suffix}"

    def preview(self, film: str) -> Path:
        """Its preview."""
        return self.films / film[:2] / f"{film}.preview.png"

    def assessment_file(self, version: str, data_set: str) -> Path:
        """What was found out about a model on a data set, named by its checksum."""
        return self.assessments / f"{version}.{data_set[:16]}.json"

    def assessment_files(self, version: str) -> list[Path]:
        """The same on every data set."""
        return sorted(self.assessments.glob(f"{version}.*.json"))

    def key(self) -> bytes:
        """The secret that seals events and ties CSRF tokens to sessions; made with the room, as is the log's anchor."""
        path = self.root / "secret.key"
        if not path.exists():
            self._make_key(path)
        key = path.read_bytes()
        if len(key) != 32:
            raise RoomError(f"{path} is damaged; put it back from a backup, for the log is sealed with it.")
        return key

    def _make_key(self, path: Path) -> None:
        """Whole or not there: two commands may make the room at once, and each may be killed."""
        draft = path.with_name(f".secret.key.{os.getpid()}.part")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            Anchor(self.anchor).make()
        with suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()


def _keep_only(paths: Iterable[Path], known: Collection[str]) -> None:
    for path in [one for one in paths if one.name.split(".")[0] not in known]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


logger = logging.getLogger("medgrape.server")
"""Where the server speaks to whoever runs it; never of patients, and never of what people typed."""


class MismatchedRoomError(UserError):
    """A folder and a database of two different rooms, or of two different times."""


@dataclass(frozen=True)
class RoomStore:
    """The database and the log in it: all that commands need."""

    folder: RoomFolder
    database: Database
    log: EventLog

    @classmethod
    def opened(cls, folder: RoomFolder, settings: ServerSettings) -> "RoomStore":
        """The room's database, whose tables may still have to be made."""
        folder.prepare_place()
        database = Database(settings.database or default_url(folder.root))
        log = EventLog(folder.key(), folder.anchor)
        database.after_commit = log.note_head
        return cls(folder, database, log)

    @classmethod
    def ready(cls, folder: RoomFolder, settings: ServerSettings) -> "RoomStore":
        """The same with its tables, after a look whether database and folder belong together.

        The folder remembers the last event that it saw. Without this look, a room that is started with another
        database would take its own films for something that was never written down.
        """
        from medgrape.server.storage.migrate import migrate  # workers never need it

        store = cls.opened(folder, settings)
        migrate(store.database)
        with store.database.reading() as session:
            together = store.log.belongs(session)
        if not together:
            store.close()
            raise MismatchedRoomError(
                f"{folder.root} and the database {store.database} do not belong together: the last event that the "
                f"folder remembers ({folder.anchor.name}) is not in the database. Give the --room and --database that "
                "were used together, or put both back from the same backup."
            )
        return store

    def close(self) -> None:
        """Let go of the database."""
        self.database.dispose()

    def record(self, session: Session, actor: User | str, kind: str, **told: object) -> Event:
        """Write down what somebody does; ``film``, ``study`` and ``model`` are columns, all else is the body."""
        columns = {name: told.pop(name, None) for name in ("film", "study", "model")}
        name = actor if isinstance(actor, str) else actor.name
        return self.log.add(session, NewEvent(name, kind, body=told, **columns))  # type: ignore[arg-type]
