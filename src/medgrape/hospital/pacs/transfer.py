"""Films of a server as files in a folder, each whole or not there, and none fetched twice."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from medgrape.config import FilmLimits
from medgrape.errors import UserError
from medgrape.files import whole_file
from medgrape.films.decoder import Decoder
from medgrape.films.film import FilmError
from medgrape.hospital.pacs.connection import AwayError, BarredError, Connection, MissingError, PacsError, RefusalError
from medgrape.hospital.pacs.header import header_of
from medgrape.hospital.pacs.messages import (
    FAILED,
    OTHER_FAILURES,
    REASON,
    REFERENCED,
    STORED,
    BrokenAnswerError,
    Item,
    OneFile,
    content,
    items,
    number,
    sequence,
    text,
    values,
)
from medgrape.hospital.pacs.query import ListedFilm, Wanted, films, series, series_of
from medgrape.progress import Track, quietly


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


_DUPLICATE = 0x0111
_REASONS = {
    0x0106: "it holds a value that the server does not take",
    0x0110: "the server failed while it stored it",
    0x0117: "its UID is not valid",
    0x0122: "the server does not store objects of this kind",
    0x0124: "we are not allowed to store there",
    0xA700: "the server has no room left",
    0xA900: "it is not what its SOP class promises",
    0xC000: "the server cannot understand it",
    0xC122: "the server does not know its transfer syntax",
}
_PASSING = (0x0110, 0x0124, 0xA700)
"""What somebody at the server can mend: the same object may be taken later."""


@dataclass(frozen=True)
class Stored:
    """What became of one file."""

    path: Path
    uid: str
    accepted: bool
    reason: str = ""
    """Why not."""
    may_pass: bool = False
    """Whether it is the server that is in trouble, and not the object."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"file": str(self.path), "uid": self.uid, "accepted": self.accepted, "reason": self.reason or None}


def store(connection: Connection, path: Path) -> Stored:
    """Send the file as it is. One that the server has already counts as accepted: sending twice stores once."""
    header = header_of(path)
    if header is None:
        return Stored(path, "", False, "it is no DICOM file with a UID of its own")
    body = OneFile(path)
    try:
        status, answer = connection.store(iter(body), body.length, body.media_type)
    except (RefusalError, MissingError) as refusal:  # of this file; the next may be smaller
        return Stored(path, header.uid, False, str(refusal))
    said = next(iter(items(answer)), Item())
    failed = [*values(said, FAILED), *values(said, OTHER_FAILURES)]
    if header.uid in _uids(said, STORED) or (status == 200 and not failed):  # 202: some, and it must say which
        return Stored(path, header.uid, True)
    code = _failure(said, header.uid)
    if code == _DUPLICATE:
        return Stored(path, header.uid, True)
    return Stored(path, header.uid, False, _in_words(code, status), _family(code) in _PASSING)


def _uids(answer: Item, tag: str) -> set[str]:
    return {text(one, REFERENCED) for one in sequence(answer, tag)}


def _failure(answer: Item, uid: str) -> int | None:
    """Why an object failed; one that the server could not even name is told among the others."""
    named = [one for one in sequence(answer, FAILED) if text(one, REFERENCED) == uid]
    return next((number(one, REASON) for one in [*named, *sequence(answer, OTHER_FAILURES)]), None)


def _in_words(code: int | None, status: int) -> str:
    if code is None:
        return f"the server does not say why (HTTP {status})"
    return f"{_REASONS.get(_family(code), 'the server gives a reason of its own')} ({code:04X}H)"


def _family(code: int | None) -> int:
    """A code, or the first of its like: A7xx and A9xx are families."""
    return 0 if code is None else code if code in _REASONS else code & 0xFF00


def dicom_files(paths: list[Path]) -> list[Path]:
    """Files, and those below folders that begin like DICOM; one that is not there is an error before any is sent."""
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} is not there.")
        if path.is_dir():
            below = sorted(one for one in path.rglob("*") if one.is_file() and header_of(one) is not None)
            if not below:
                raise UserError(f"There is no DICOM file in {path}.")
            found.extend(below)
        else:
            found.append(path)
    return found


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
