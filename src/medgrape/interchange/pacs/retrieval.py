"""A film from a server into a file (WADO)."""

from pathlib import Path

from medgrape.data.film import FilmError
from medgrape.interchange.pacs.connection import Connection
from medgrape.interchange.pacs.failures import AwayError, RefusalError
from medgrape.interchange.pacs.header import header_of
from medgrape.interchange.pacs.multipart import BrokenAnswerError, content
from medgrape.interchange.pacs.query import ListedFilm


def fetch(connection: Connection, film: ListedFilm, target: Path) -> None:
    """Write the film to ``target``: the whole of it, no more than a film may have, and no other film."""
    name, most, taken = connection.name, connection.server.settings.max_bytes, 0
    with connection.retrieve(film.path) as (media_type, chunks), target.open("wb") as file:
        try:
            for piece in content(media_type, chunks):
                taken += len(piece)
                if taken > most:
                    raise FilmError(f"it has more than {most:,} bytes, the limit for {name} (max_bytes).")
                file.write(piece)
        except BrokenAnswerError:
            if taken:
                raise AwayError(f"{name} broke off in the middle of a film; try again.") from None
            raise RefusalError(f"{name} sends something else than a film.") from None
    found = header_of(target)
    if found is None or found.uid != film.uid:
        raise RefusalError(f"{name} sends another object than it was asked for, or none.")
