"""Films of a server as files in a folder, each whole or not there, and none fetched twice."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from medgrape.config import FilmLimits
from medgrape.data.decoder import Decoder
from medgrape.data.files import whole_file
from medgrape.data.film import FilmError
from medgrape.interchange.pacs.connection import Connection
from medgrape.interchange.pacs.failures import AwayError, BarredError, PacsError
from medgrape.interchange.pacs.query import ListedFilm, Wanted, films, series, series_of
from medgrape.interchange.pacs.retrieval import fetch
from medgrape.progress import Track, quietly


@dataclass(frozen=True)
class PullOrder:
    """Which films, and where to."""

    out: Path
    studies: tuple[str, ...] = ()
    """None: those that are ``wanted``."""
    wanted: Wanted = field(default_factory=Wanted)
    clean: bool = False
    """Whether to keep copies without anything that names a patient, under names that do not lead to the films."""


@dataclass
class Pulled:
    """What became of the films."""

    fetched: int = 0
    there: int = 0
    """Before this call."""
    refused: list[dict[str, str]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def pull(connection: Connection, order: PullOrder, track: Track = quietly) -> Pulled:
    """Fetch what is not there yet. A server that goes away ends it; given again, it goes on."""
    pulled = Pulled()
    listed = list(_listed(connection, order, pulled))
    with tempfile.TemporaryDirectory(prefix="medgrape-pulled-") as private, Decoder() as decoder:
        scratch = Path(private) / "film.dcm"
        for film in track(listed, "fetching films", len(listed)):
            target = order.out / film_name(film, clean=order.clean)
            if target.exists():
                pulled.there += 1
                continue
            try:
                _pull(connection, film, target, scratch, decoder if order.clean else None)
                pulled.fetched += 1
            except (AwayError, BarredError):
                raise
            except (PacsError, FilmError) as refusal:
                pulled.refused.append({"film": film.uid, "reason": reason_of(refusal, scratch)})
    return pulled


def film_name(film: ListedFilm, *, clean: bool = False) -> Path:
    """A name of our own making; that of a cleaned copy does not lead back to the film without the server's list."""
    if clean:
        return Path(f"{hashlib.sha256(film.uid.encode()).hexdigest()[:32]}.dcm")
    return Path(film.study) / f"{film.uid}.dcm"


def reason_of(refusal: Exception, file: Path) -> str:
    """Why a film was refused, without the name of the file that it was in for a moment."""
    return str(refusal).removeprefix(f"{file}: ")


def _listed(connection: Connection, order: PullOrder, pulled: Pulled) -> Iterator[ListedFilm]:
    """The films that are asked for; a study that was named and has none is refused."""
    if not order.studies:
        for one in series(connection, order.wanted):
            yield from films(connection, one)
    for study in dict.fromkeys(order.studies):
        found = [film for one in series_of(connection, study, order.wanted) for film in films(connection, one)]
        if not found:
            kinds = " or ".join(order.wanted.modalities)
            reason = f"{connection.name} has no {kinds} film of it; see --modality."
            pulled.refused.append({"film": f"study {study}", "reason": reason})
        yield from found


def _pull(connection: Connection, film: ListedFilm, target: Path, scratch: Path, decoder: Decoder | None) -> None:
    """The film under its name; what names a patient stays in a private folder, and not for long."""
    with whole_file(target) as draft:
        os.close(os.open(draft, os.O_CREAT | os.O_WRONLY, 0o600))
        if decoder is None:
            fetch(connection, film, draft)
            return
        try:
            fetch(connection, film, scratch)
            limits = FilmLimits(max_bytes=connection.server.settings.max_bytes)
            draft.write_bytes(decoder.clean(scratch, limits).content)
        finally:
            scratch.unlink(missing_ok=True)
