"""What the model in use says of films as they arrive, worked out in the background, so that the list can tell."""

import threading
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import exists, select

from medgrape.errors import UserError
from medgrape.server.films import film_row
from medgrape.server.inference.decoder_pool import DecodersBusyError
from medgrape.server.models import in_use, model_row
from medgrape.server.problems import Problem
from medgrape.server.room import Room
from medgrape.server.room_folder import logger
from medgrape.server.storage.database import DATABASE_ERRORS
from medgrape.server.storage.tables import FilmRow, ImpressionRow
from medgrape.server.studies import StudyService

BACKLOG = 500
"""Films that are caught up with at a start, or when another model is put to use: the newest ones."""


class BackgroundReader:
    """One film after another, behind everything that somebody waits for."""

    def __init__(self, room: Room, studies: StudyService) -> None:
        self._room, self._studies = room, studies
        self._hands = ThreadPoolExecutor(1, "first-sights")
        self._lock = threading.Lock()
        self._waiting: set[str] = set()

    def soon(self, film: str) -> None:
        """Look at a film when there is time."""
        with self._lock:
            if film in self._waiting or self._room.closing.is_set():
                return
            self._waiting.add(film)
        self._hands.submit(self._look, film)

    def catch_up(self) -> None:
        """Look at all new films that the model in use has not seen."""
        with self._room.database.reading() as session:
            seen = exists().where(ImpressionRow.film_id == FilmRow.id, ImpressionRow.model == (in_use(session) or ""))
            wanted = select(FilmRow.id).where(FilmRow.deleted_at.is_(None), ~seen).order_by(FilmRow.arrived_at.desc())
            found = session.scalars(wanted.limit(BACKLOG)).all()
        for film in found:
            self.soon(film)

    def close(self) -> None:
        """Leave the rest for the next start."""
        self._hands.shutdown(cancel_futures=True)

    def _look(self, film: str) -> None:
        try:
            with self._room.database.reading() as session:
                row, model = film_row(session, film), model_row(session, None)
            self._studies.first_sight(row, model)
        except (Problem, UserError, DecodersBusyError, TimeoutError, OSError, *DATABASE_ERRORS) as error:
            logger.warning("film %s was not looked at: %s", film, type(error).__name__)
        except RuntimeError as error:  # the encoder ends with the server
            logger.warning("film %s was not looked at: %s", film, error)
        finally:
            with self._lock:
                self._waiting.discard(film)
