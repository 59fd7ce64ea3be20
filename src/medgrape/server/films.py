"""Films: stored without patient names, listed, searched, removed."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field
from sqlalchemy import ColumnElement, Select, String, cast, exists, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from medgrape.films.anonymise import SUFFIXES
from medgrape.films.film import Film, FilmFacts, LazyFilm
from medgrape.progress import Track, quietly
from medgrape.server.accounts import Role, User, local_user, new_id
from medgrape.server.errors import forbidden, not_found
from medgrape.server.models import in_use
from medgrape.server.room import Room, RoomFolder, RoomStore
from medgrape.server.settings import ServerSettings
from medgrape.server.storage.database import DATABASE_ERRORS
from medgrape.server.storage.tables import FilmRow, ImpressionRow, StudyRow, UserRow

Text = Annotated[str, AfterValidator(lambda text: text.replace("\0", ""))]  # PostgreSQL refuses NUL


class FilmQuery(BaseModel):
    """Filter and page of the list of films."""

    page: int = Field(1, ge=1, le=10**6, examples=[1], description="From 1.")
    size: int = Field(50, ge=1, le=200, examples=[50], description="Films on a page.")
    search: Text = Field("", max_length=100, examples=["active"], description="Id, view, format, class or uploader.")
    likeliest: Text = Field(
        "", max_length=64, examples=["active_tb"], description="Likeliest class by the model in use."
    )
    view: Text = Field("", max_length=16, examples=["PA"], description="As DICOM names it.")
    unread: bool = Field(False, description="Only films that you have not opened.")
    mine: bool = Field(False, description="Only films that you uploaded.")


@dataclass(frozen=True)
class ListedFilm:
    """A film in the list."""

    film: FilmRow
    arrived_by: str
    prediction: dict[str, Any] | None  # of the model in use; None until it has read the film
    studies: tuple[tuple[StudyRow, str], ...]  # with their readers' names


def add_film(room: Room, user: User, upload: Path) -> tuple[FilmRow, bool]:
    """Store an uploaded film without data of its patient; return it, and whether the same file was known."""
    with upload.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    known = _by_content(room, content)
    if known is not None:
        return known, True
    clean = room.decoder_pool.clean(upload)
    metadata, film = clean.metadata, new_id()
    row = FilmRow(
        id=film, content=content, suffix=metadata.suffix, facts=metadata.facts.to_json(), view=metadata.facts.view,
        sex=metadata.sex, age=metadata.age, arrived_at=datetime.now(UTC), arrived_by=user.id, deleted_at=None,
    )  # fmt: skip
    try:
        room.keep_film(film, clean)
        with room.database.writing() as session:
            session.add(row)
            session.flush()
            room.store.record(session, user, "film.arrived", film=film, content=content, format=metadata.facts.format)
    except (IntegrityError, OSError, *DATABASE_ERRORS) as error:
        with room.database.reading() as session:  # if the database does not answer here, the files stay
            written = session.get(FilmRow, film) is not None
        if written:  # only the database's confirmation was lost
            return row, False
        room.drop_film(film, row.suffix)
        known = _by_content(room, content) if isinstance(error, IntegrityError) else None
        if known is None:
            raise
        return known, True  # the same file was uploaded at the same moment
    return row, False


def add_films_before_start(
    folder: RoomFolder, settings: ServerSettings, paths: Sequence[Path], *, login: bool, track: Track = quietly
) -> list[str]:
    """Add films to a room that is not served yet, as the local user, and return their ids."""
    room = Room(RoomStore.opened(folder, settings), settings, login=login)
    try:
        with room.database.writing() as session:
            user = local_user(session)
        return [add_film(room, user, path)[0].id for path in track(paths, "adding films", len(paths))]
    finally:
        room.close()


def _by_content(room: Room, content: str) -> FilmRow | None:
    with room.database.reading() as session:
        return session.scalar(select(FilmRow).where(FilmRow.content == content, FilmRow.deleted_at.is_(None)))


def film_row(session: Session, film: str, *, lock: bool = False) -> FilmRow:
    """Return a film that was not removed; if locked, it cannot be removed until the session ends."""
    row = session.get(FilmRow, film, with_for_update=lock)
    if row is None or row.deleted_at is not None:
        raise not_found("film", film)
    return row


def lazy_film(room: Room, row: FilmRow) -> Film:
    """Return a film whose pixels are decoded when they are first used."""
    path = room.folder.film(row.id, row.suffix)
    return LazyFilm(FilmFacts.from_json(row.facts), lambda: room.decoder_pool.pixels(path))


def list_films(session: Session, user: User, query: FilmQuery) -> tuple[int, list[ListedFilm]]:
    """Return the number of films that match, and one page of them, the newest first."""
    matching = _listing(session).where(FilmRow.deleted_at.is_(None), *_conditions(user, query))
    total = session.scalar(select(func.count()).select_from(matching.subquery())) or 0
    page = matching.order_by(FilmRow.arrived_at.desc(), FilmRow.id)
    return total, _listed(session, page.limit(query.size).offset((query.page - 1) * query.size))


def listed_film(session: Session, film: FilmRow) -> ListedFilm:
    """Return one film as it is in the list."""
    return _listed(session, _listing(session).where(FilmRow.id == film.id))[0]


def _listing(session: Session) -> "Select[FilmRow, str, dict[str, Any]]":
    """Select films with their uploaders' names and the predictions of the model in use."""
    by_model = (ImpressionRow.film_id == FilmRow.id) & (ImpressionRow.model == (in_use(session) or ""))
    query = select(FilmRow, UserRow.name, ImpressionRow.prediction)
    return query.join(UserRow, UserRow.id == FilmRow.arrived_by).outerjoin(ImpressionRow, by_model)


def _listed(session: Session, query: "Select[FilmRow, str, dict[str, Any]]") -> list[ListedFilm]:
    rows = session.execute(query).all()
    studies = defaultdict(list)
    of_films = select(StudyRow, UserRow.name).join(UserRow, UserRow.id == StudyRow.reader_id)
    of_films = of_films.where(StudyRow.film_id.in_([film.id for film, _, _ in rows])).order_by(StudyRow.opened_at)
    for study, reader in session.execute(of_films):
        studies[study.film_id].append((study, reader))
    return [ListedFilm(film, name, prediction, tuple(studies[film.id])) for film, name, prediction in rows]


def _conditions(user: User, query: FilmQuery) -> list[ColumnElement[bool]]:
    own = exists().where(StudyRow.film_id == FilmRow.id, StudyRow.reader_id == user.id)
    word = query.search.strip().lower()
    matches_word = or_(
        FilmRow.id.startswith(word, autoescape=True),
        func.lower(cast(FilmRow.view, String)) == word,
        ImpressionRow.likeliest.contains(word, autoescape=True),
        UserRow.name.contains(word, autoescape=True),
        FilmRow.suffix == SUFFIXES.get(word.upper(), "-"),
    )
    conditions: list[tuple[object, ColumnElement[bool]]] = [
        (query.search, matches_word),
        (query.likeliest, ImpressionRow.likeliest == query.likeliest),
        (query.view, FilmRow.view == query.view.upper()),
        (query.unread, ~own),
        (query.mine, FilmRow.arrived_by == user.id),
    ]
    return [condition for value, condition in conditions if value]


def remove(room: Room, user: User, film: str) -> None:
    """Delete a film's files and features; its events stay in the log."""
    with room.database.writing() as session:
        row = film_row(session, film, lock=True)
        others = select(func.count()).select_from(StudyRow)
        others = others.where(StudyRow.film_id == film, StudyRow.reader_id != user.id)
        own = row.arrived_by == user.id and not session.scalar(others)
        if not (own or user.role.covers(Role.CURATOR)):
            raise forbidden("Only a curator removes films that others uploaded or have read.")
        row.deleted_at = datetime.now(UTC)
        room.store.record(session, user, "film.removed", film=film)
    room.drop_film(film, row.suffix)
    room.features.drop(row.content)
