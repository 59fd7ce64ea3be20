"""The database and the log in it: all that commands and the start of a server need."""

import logging
from dataclasses import dataclass

from sqlalchemy.orm import Session

from medgrape.errors import UserError
from medgrape.server.folder import RoomFolder
from medgrape.server.security.roles import Person
from medgrape.server.settings import ServerSettings
from medgrape.server.storage.database import Database, default_url
from medgrape.server.storage.events import Deed, Event, EventLog

journal = logging.getLogger("medgrape.server")
"""Where the server speaks to whoever runs it; never of patients, and never of what people typed."""


class NoPairError(UserError):
    """A folder and a database of two different rooms, or of two different times."""


@dataclass(frozen=True)
class Archive:
    """The database and the log in it: all that commands need."""

    folder: RoomFolder
    database: Database
    log: EventLog

    @classmethod
    def opened(cls, folder: RoomFolder, settings: ServerSettings) -> "Archive":
        """The room's database, whose tables may still have to be made."""
        folder.prepare_place()
        database = Database(settings.database or default_url(folder.root))
        log = EventLog(folder.key(), folder.anchor)
        database.after_commit = log.note_head
        return cls(folder, database, log)

    @classmethod
    def ready(cls, folder: RoomFolder, settings: ServerSettings) -> "Archive":
        """The same with its tables, after a look whether database and folder belong together.

        The folder remembers the last event that it saw. Without this look, a room that is started with another
        database would take its own films for something that was never written down.
        """
        from medgrape.server.storage.migrating import migrate  # workers never need it

        archive = cls.opened(folder, settings)
        migrate(archive.database)
        with archive.database.reading() as session:
            together = archive.log.belongs(session)
        if not together:
            archive.close()
            raise NoPairError(
                f"{folder.root} and the database {archive.database} do not belong together: the last event that the "
                f"folder remembers ({folder.anchor.name}) is not in the database. Give the --room and --database that "
                "were used together, or put both back from the same backup."
            )
        return archive

    def close(self) -> None:
        """Let go of the database."""
        self.database.dispose()

    def note(self, session: Session, who: Person | str, kind: str, **told: object) -> Event:
        """Write down what somebody does; ``film``, ``study`` and ``model`` are columns, all else is the body."""
        columns = {name: told.pop(name, None) for name in ("film", "study", "model")}
        actor = who if isinstance(who, str) else who.name
        return self.log.add(session, Deed(actor, kind, body=told, **columns))  # type: ignore[arg-type]
