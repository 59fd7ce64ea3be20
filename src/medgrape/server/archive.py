"""The database and the log in it: all that commands and the start of a server need."""

import logging
from dataclasses import dataclass

from sqlalchemy.orm import Session

from medgrape.server.folder import RoomFolder
from medgrape.server.security.roles import Person
from medgrape.server.settings import ServerSettings
from medgrape.server.storage.database import Database, default_url
from medgrape.server.storage.events import Deed, Event, EventLog

journal = logging.getLogger("medgrape.server")
"""Where the server speaks to whoever runs it; never of patients, and never of what people typed."""


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

    def note(self, session: Session, who: Person | str, kind: str, **told: object) -> Event:
        """Write down what somebody does; ``film``, ``study`` and ``model`` are columns, all else is the body."""
        columns = {name: told.pop(name, None) for name in ("film", "study", "model")}
        actor = who if isinstance(who, str) else who.name
        return self.log.add(session, Deed(actor, kind, body=told, **columns))  # type: ignore[arg-type]
