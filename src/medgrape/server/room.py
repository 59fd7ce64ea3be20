"""A reading room: its folder, its database with the event log, and the decoders, encoder and caches of a worker."""

import logging
import os
import secrets
import shutil
import threading
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from PIL import Image
from sqlalchemy import select
from sqlalchemy.orm import Session

from medgrape.errors import UserError
from medgrape.files import whole_file
from medgrape.films.anonymise import CleanFilm
from medgrape.server.accounts import User
from medgrape.server.decoder_pool import DecoderPool
from medgrape.server.inference import Encoder, FeatureStore, ModelCache
from medgrape.server.settings import ServerSettings
from medgrape.server.storage.database import Database, default_url, migrate
from medgrape.server.storage.events import Anchor, Event, EventLog
from medgrape.server.storage.tables import FilmRow, ModelRow

logger = logging.getLogger("medgrape.server")  # without data of patients and input of users


class RoomError(UserError):
    """A folder that cannot be a reading room."""


class MismatchedRoomError(UserError):
    """A folder and a database of different rooms, or from different backups."""


class RoomFolder:
    """Paths in the room's folder. The server makes all names, never a file or a request."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.uploads = root / "arrivals"  # uploads in progress
        self.films = root / "films"  # films and their previews
        self.features = root / "features"  # outputs of backbones
        self.models = root / "models"  # runs made here
        self.assessments = root / "worth"  # assessments of models on data sets
        self.anchor = root / "log-end"  # the file with the end of the event log

    def film(self, film: str, suffix: str) -> Path:
        """Return the path of a film's file."""
        return self.films / film[:2] / f"{film}{suffix}"

    def preview(self, film: str) -> Path:
        """Return the path of a film's preview."""
        return self.films / film[:2] / f"{film}.preview.png"

    def assessment_file(self, version: str, data_set: str) -> Path:
        """Return the path of a model's assessment on a data set, given by its checksum."""
        return self.assessments / f"{version}.{data_set[:16]}.json"

    def assessment_files(self, version: str) -> list[Path]:
        """Return the paths of a model's assessments."""
        return sorted(self.assessments.glob(f"{version}.*.json"))

    def prepare(self) -> None:
        """Create missing folders, readable by the server's user only."""
        if self.root.exists() and not self.root.is_dir():
            raise RoomError(f"{self.root} is not a folder; choose another --room.")
        if (self.root / "manifest.json").exists():
            raise RoomError(f"{self.root} is a run; choose another --room.")
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.uploads, self.films, self.features, self.models, self.assessments):
            folder.mkdir(mode=0o700, exist_ok=True)

    def drop_stale_uploads(self, seconds: float) -> None:
        """Delete uploads older than ``seconds``, left by a killed worker; younger ones may be in progress."""
        for path in self.uploads.iterdir():
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > seconds:
                    path.unlink()

    def key(self) -> bytes:
        """Return the secret that seals events and CSRF tokens; it and the log's anchor are created with the room."""
        path = self.root / "secret.key"
        if not path.exists():
            self._make_key(path)
        key = path.read_bytes()
        if len(key) != 32:
            raise RoomError(f"{path} is damaged; restore it from a backup, because the log is sealed with it.")
        return key

    def _make_key(self, path: Path) -> None:
        """Create the key atomically: two commands may create the room at once, and each may be killed."""
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


def _delete_others(paths: Iterable[Path], known: Collection[str]) -> None:
    for path in list(paths):
        if path.name.split(".")[0] in known:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class RoomStore:
    """The folder, the database and the event log, as commands need them."""

    folder: RoomFolder
    database: Database
    log: EventLog

    @classmethod
    def opened(cls, folder: RoomFolder, settings: ServerSettings) -> "RoomStore":
        """Open a room whose database may not have its tables yet."""
        folder.prepare()
        database = Database(settings.database or default_url(folder.root))
        log = EventLog(folder.key(), folder.anchor)
        database.after_commit = log.write_anchor
        return cls(folder, database, log)

    @classmethod
    def ready(cls, folder: RoomFolder, settings: ServerSettings) -> "RoomStore":
        """Open a room, update its tables, and check that database and folder belong together.

        Without this check, a server started with another database would delete the room's films as unknown files.
        """
        store = cls.opened(folder, settings)
        migrate(store.database)
        with store.database.reading() as session:
            together = store.log.belongs(session)
        if not together:
            store.close()
            raise MismatchedRoomError(
                f"{folder.root} and the database {store.database} do not belong together: the database does not have "
                f"the last event in {folder.anchor.name}. Give the --room and --database that were used together, or "
                "restore both from the same backup."
            )
        return store

    def record(
        self, session: Session, actor: User | str, kind: str, *, film: str | None = None, study: str | None = None,
        model: str | None = None, **body: object,
    ) -> Event:  # fmt: skip
        """Add an event to the log."""
        name = actor if isinstance(actor, str) else actor.name
        return self.log.add(session, name, kind, body, film=film, study=study, model=model)

    def delete_unknown_files(self) -> None:
        """Delete files that a server killed between writing them and committing left; no server may run meanwhile."""
        with self.database.reading() as session:
            films = session.scalars(select(FilmRow).where(FilmRow.deleted_at.is_(None))).all()
            models = session.scalars(select(ModelRow).where(ModelRow.removed_at.is_(None))).all()
        shutil.rmtree(self.folder.uploads, ignore_errors=True)
        self.folder.uploads.mkdir(mode=0o700)
        _delete_others(self.folder.films.glob("*/*"), {film.id for film in films})
        _delete_others(self.folder.features.glob("*/*/*"), {film.content for film in films})
        _delete_others(self.folder.models.iterdir(), {model.folder for model in models if model.made_here})
        _delete_others(self.folder.assessments.iterdir(), {model.version for model in models})

    def close(self) -> None:
        """Close the database."""
        self.database.dispose()


class Room:
    """A room in one worker: its store, and the decoders, encoder and caches that serve it."""

    def __init__(self, store: RoomStore, settings: ServerSettings, *, login: bool) -> None:
        self.store, self.settings, self.login = store, settings, login
        self.folder, self.database = store.folder, store.database
        self.key = store.folder.key()
        self.model_cache = ModelCache(settings.models_in_memory)
        self.features = FeatureStore(store.folder.features)
        self.closing = threading.Event()

    @cached_property
    def decoder_pool(self) -> DecoderPool:
        """The decoders, started when the first film needs them."""
        return DecoderPool(self.settings)

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder thread, started when the first film needs it."""
        return Encoder()

    def keep_film(self, film: str, clean: CleanFilm) -> None:
        """Write a film's files, each atomically."""
        with whole_file(self.folder.film(film, clean.metadata.suffix)) as draft:
            draft.write_bytes(clean.content)
        with whole_file(self.folder.preview(film)) as draft:
            Image.fromarray(clean.preview).save(draft, "PNG")

    def drop_film(self, film: str, suffix: str) -> None:
        """Delete a film's files."""
        path = self.folder.film(film, suffix)
        self.decoder_pool.forget(path)
        for file in (path, self.folder.preview(film)):
            file.unlink(missing_ok=True)

    def close(self) -> None:
        """Stop decoders and encoder and close the database."""
        self.closing.set()
        if "encoder" in self.__dict__:
            self.encoder.close()
        if "decoder_pool" in self.__dict__:
            self.decoder_pool.close()
        self.store.close()
