"""Fetch films from a server into files, and store files on it."""

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
from medgrape.hospital.pacs.connection import (
    AuthenticationError,
    Connection,
    NotFoundError,
    PacsError,
    ResponseError,
    UnreachableError,
)
from medgrape.hospital.pacs.dicom_json import Item, Tag, integer, items, text, values
from medgrape.hospital.pacs.header import read_header
from medgrape.hospital.pacs.multipart import IncompleteResponseError, MultipartFile, first_object
from medgrape.hospital.pacs.query import ListedFilm, SeriesFilter, find_films, find_series, find_study_series
from medgrape.progress import Track, quietly


def fetch(connection: Connection, film: ListedFilm, target: Path) -> None:
    """Write a film to ``target``; raise an error if it is incomplete, too large or another object."""
    name, limit, size = connection.name, connection.server.settings.max_bytes, 0
    with connection.retrieve(film.path) as (media_type, chunks), target.open("wb") as file:
        try:
            for chunk in first_object(media_type, chunks):
                size += len(chunk)
                if size > limit:
                    raise FilmError(f"it has more than {limit:,} bytes, the limit for {name} (max_bytes).")
                file.write(chunk)
        except IncompleteResponseError:
            if size:
                raise UnreachableError(f"{name} stopped in the middle of a film; try again.") from None
            raise ResponseError(f"{name} sent something that is not a film.") from None
    header = read_header(target)
    if header is None or header.uid != film.uid:
        raise ResponseError(f"{name} sent another object than the requested film.")


_DUPLICATE = 0x0111
_REASONS = {
    0x0106: "the server does not accept one of its values",
    0x0110: "the server failed while storing it",
    0x0117: "its UID is not valid",
    0x0122: "the server does not store objects of this kind",
    0x0124: "we are not allowed to store there",
    0xA700: "the server is out of space",
    0xA900: "it does not match its SOP class",
    0xC000: "the server cannot parse it",
    0xC122: "the server does not support its transfer syntax",
}
"""Failure reasons of STOW-RS (DICOM PS3.18). A7xx and A9xx are families of codes."""
_TEMPORARY = (0x0110, 0x0124, 0xA700)  # the server's administrator can fix these


@dataclass(frozen=True)
class StoreResult:
    """Whether the server stored a file."""

    path: Path
    uid: str
    accepted: bool
    reason: str = ""  # why it was refused
    is_temporary: bool = False  # whether the server may accept the same object later

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"file": str(self.path), "uid": self.uid, "accepted": self.accepted, "reason": self.reason or None}


def store(connection: Connection, path: Path) -> StoreResult:
    """Send the file unchanged. An object that the server already has counts as accepted."""
    header = read_header(path)
    if header is None:
        return StoreResult(path, "", False, "it is not a DICOM file with a valid UID")
    body = MultipartFile(path)
    try:
        status, payload = connection.store(iter(body), body.length, body.media_type)
    except (ResponseError, NotFoundError) as error:  # concerns this file only, which may be too large
        return StoreResult(path, header.uid, False, str(error))
    response = next(iter(items(payload)), Item())
    stored = [text(item, Tag.REFERENCED_INSTANCE) for item in items(values(response, Tag.STORED))]
    failed, others = values(response, Tag.FAILED), values(response, Tag.OTHER_FAILURES)
    # An object whose UID the server could not read is listed among the other failures.
    failures = [item for item in items(failed) if text(item, Tag.REFERENCED_INSTANCE) == header.uid] + items(others)
    code = integer(failures[0], Tag.FAILURE_REASON) if failures else None
    complete = status == 200 and not failed and not others  # with 202 the server must list what it stored
    if header.uid in stored or complete or code == _DUPLICATE:
        return StoreResult(path, header.uid, True)
    if code is None:
        return StoreResult(path, header.uid, False, f"the server gives no reason (HTTP {status})")
    known = code if code in _REASONS else code & 0xFF00
    reason = f"{_REASONS.get(known, 'the server gives a code of its own')} ({code:04X}H)"
    return StoreResult(path, header.uid, False, reason, known in _TEMPORARY)


def dicom_files(paths: list[Path]) -> list[Path]:
    """Return the files, and all DICOM files below the folders; a missing path is an error."""
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} does not exist.")
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted(file for file in path.rglob("*") if file.is_file() and read_header(file) is not None)
        if not inside:
            raise UserError(f"There is no DICOM file in {path}.")
        files.extend(inside)
    return files


@dataclass(frozen=True)
class PullOptions:
    """Which films to fetch, and where to."""

    out: Path
    studies: tuple[str, ...] = ()  # UIDs; if empty, all studies with the wanted series
    wanted: SeriesFilter = field(default_factory=SeriesFilter)
    clean: bool = False  # keep copies without anything that names a patient, under names that do not lead to the films


@dataclass
class PullResult:
    """How many films were fetched or already present, and which were refused."""

    fetched: int = 0
    there: int = 0
    refused: list[dict[str, str]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def pull(connection: Connection, options: PullOptions, track: Track = quietly) -> PullResult:
    """Fetch the films that are missing in the folder. If the server fails, run it again to continue."""
    result = PullResult()
    films = list(_find_requested(connection, options, result))
    with tempfile.TemporaryDirectory(prefix="medgrape-pulled-") as private, Decoder() as decoder:
        original = Path(private) / "film.dcm"
        for film in track(films, "fetching films", len(films)):
            name = f"{film.study}/{film.uid}"
            if options.clean:
                name = hashlib.sha256(film.uid.encode()).hexdigest()[:32]
            target = options.out / f"{name}.dcm"
            if target.exists():
                result.there += 1
                continue
            try:
                _fetch_whole(connection, film, target, original, decoder if options.clean else None)
                result.fetched += 1
            except (UnreachableError, AuthenticationError):
                raise
            except (PacsError, FilmError) as error:
                result.refused.append({"film": film.uid, "reason": without_path(error, original)})
    return result


def without_path(error: Exception, path: Path) -> str:
    """Return the message without the path of a temporary file in front."""
    return str(error).removeprefix(f"{path}: ")


def _find_requested(connection: Connection, options: PullOptions, result: PullResult) -> Iterator[ListedFilm]:
    """Yield the requested films; a requested study without any is refused."""
    if not options.studies:
        for series in find_series(connection, options.wanted):
            yield from find_films(connection, series)
    for study in dict.fromkeys(options.studies):
        of_study = find_study_series(connection, study, options.wanted)
        films = [film for series in of_study for film in find_films(connection, series)]
        if not films:
            modalities = " or ".join(options.wanted.modalities)
            reason = f"{connection.name} has no {modalities} film of it; see --modality."
            result.refused.append({"film": f"study {study}", "reason": reason})
        yield from films


def _fetch_whole(
    connection: Connection, film: ListedFilm, target: Path, original: Path, decoder: Decoder | None
) -> None:
    """Fetch a film to ``target``. With a decoder, fetch to ``original``, which is private, and keep a cleaned copy."""
    with whole_file(target) as draft:
        os.close(os.open(draft, os.O_CREAT | os.O_WRONLY, 0o600))
        if decoder is None:
            fetch(connection, film, draft)
            return
        try:
            fetch(connection, film, original)
            limits = FilmLimits(max_bytes=connection.server.settings.max_bytes)
            draft.write_bytes(decoder.clean(original, limits).content)
        finally:
            original.unlink(missing_ok=True)
