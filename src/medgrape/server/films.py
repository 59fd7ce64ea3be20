"""Films: taken in without names, listed, searched, removed."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field
from sqlalchemy import ColumnElement, String, cast, exists, func, or_, select
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

Text = Annotated[str, AfterValidator(lambda text: text.replace("\0", ""))]
"""PostgreSQL cannot be asked for a text with a zero."""


@dataclass(frozen=True)
class Upload:
    """A film that was uploaded."""

    film: FilmRow
    known: bool
    """Whether the same file was here before."""


class FilmQuery(BaseModel):
    """Which films to list."""

    page: int = Field(1, ge=1, le=10**6, examples=[1], description="From 1.")
    size: int = Field(50, ge=1, le=200, examples=[50], description="Films on a page.")
    search: Text = Field(
        "", max_length=100, examples=["active"], description="Start of an id, or a view, format, class, uploader."
    )
    likeliest: Text = Field("", max_length=64, examples=["active_tb"], description="Likeliest by the model in use.")
    view: Text = Field("", max_length=16, examples=["PA"], description="As DICOM names it.")
    unread: bool = Field(False, description="Only films that you have not opened.")
    mine: bool = Field(False, description="Only films that you uploaded.")


@dataclass(frozen=True)
class ListedFilm:
    """A film in the list."""

    film: FilmRow
    arrived_by: str
    prediction: dict[str, Any] | None
    """Of the model in use; None until it has read the film."""
    studies: tuple[tuple[StudyRow, str], ...]
    """Studies of it, with their readers' names."""


def take_in(room: Room, user: User, upload: Path) -> Upload:
    """Store an uploaded film: its pixels and what may stay of its header, and nothing else."""
    with upload.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    known = _by_content(room, content)
    if known is not None:
        return Upload(known, known=True)
    clean = room.decoder_pool.clean(upload)
    arrival, film = clean.arrival, new_id()
    row = FilmRow(
        id=film, content=content, suffix=arrival.suffix, facts=arrival.facts.to_json(), view=arrival.facts.view,
        sex=arrival.sex, age=arrival.age, arrived_at=datetime.now(UTC), arrived_by=user.id, deleted_at=None,
    )  # fmt: skip
    try:
        room.keep_film(film, clean)
        with room.database.writing() as session:
            session.add(row)
            session.flush()
            room.store.record(session, user, "film.arrived", film=film, content=content, format=arrival.facts.format)
    except (IntegrityError, OSError, *DATABASE_ERRORS) as error:
        with room.database.reading() as session:  # if the database does not answer here, the files stay
            written = session.get(FilmRow, film) is not None
        if written:  # only the database's confirmation was lost
            return Upload(row, known=False)
        room.drop_film(film, row.suffix)
        known = _by_content(room, content) if isinstance(error, IntegrityError) else None
        if known is None:
            raise
        return Upload(known, known=True)  # somebody uploaded the same film at the same moment
    return Upload(row, known=False)


def take_in_before_start(
    folder: RoomFolder, settings: ServerSettings, paths: Sequence[Path], *, login: bool, track: Track = quietly
) -> list[str]:
    """Take films into a room that is not served yet, as the person at this machine; return their ids."""
    room = Room(RoomStore.opened(folder, settings), settings, login=login)
    try:
        with room.database.writing() as session:
            user = local_user(session)
        return [take_in(room, user, path).film.id for path in track(paths, "adding films", len(paths))]
    finally:
        room.close()


def _by_content(room: Room, content: str) -> FilmRow | None:
    with room.database.reading() as session:
        return session.scalar(select(FilmRow).where(FilmRow.content == content, FilmRow.deleted_at.is_(None)))


def film_row(session: Session, film: str, *, lock: bool = False) -> FilmRow:
    """Return a film that is there; if locked, it cannot be removed until the session ends."""
    row = session.get(FilmRow, film, with_for_update=lock)
    if row is None or row.deleted_at is not None:
        raise not_found("film", film)
    return row


def pictured(room: Room, row: FilmRow) -> Film:
    """Return a film whose pixels are decoded when they are first used."""
    path = room.folder.film(row.id, row.suffix)
    return LazyFilm(FilmFacts.from_json(row.facts), lambda: room.decoder_pool.pixels(path))


def listed(session: Session, user: User, query: FilmQuery) -> tuple[int, list[ListedFilm]]:
    """Return how many films fit, and one page of them, the newest first."""
    model = in_use(session) or ""
    fitting = (
        select(FilmRow, UserRow.name, ImpressionRow.prediction)
        .join(UserRow, UserRow.id == FilmRow.arrived_by)
        .outerjoin(ImpressionRow, (ImpressionRow.film_id == FilmRow.id) & (ImpressionRow.model == model))
        .where(FilmRow.deleted_at.is_(None), *_conditions(user, query))
    )
    total = session.scalar(select(func.count()).select_from(fitting.subquery())) or 0
    page = fitting.order_by(FilmRow.arrived_at.desc(), FilmRow.id)
    rows = session.execute(page.limit(query.size).offset((query.page - 1) * query.size)).all()
    studies = _studies(session, [film.id for film, _, _ in rows])
    return total, [ListedFilm(film, name, shares, studies.get(film.id, ())) for film, name, shares in rows]


def one_listed(session: Session, film: FilmRow) -> ListedFilm:
    """Return one film as it is in the list."""
    impression = session.get(ImpressionRow, (film.id, in_use(session) or ""))
    name = session.get_one(UserRow, film.arrived_by).name
    prediction = None if impression is None else impression.prediction
    return ListedFilm(film, name, prediction, _studies(session, [film.id]).get(film.id, ()))


def _conditions(user: User, query: FilmQuery) -> list[ColumnElement[bool]]:
    own = exists().where(StudyRow.film_id == FilmRow.id, StudyRow.reader_id == user.id)
    conditions: list[tuple[object, ColumnElement[bool]]] = [
        (query.search, _matching(query.search)),
        (query.likeliest, ImpressionRow.likeliest == query.likeliest),
        (query.view, FilmRow.view == query.view.upper()),
        (query.unread, ~own),
        (query.mine, FilmRow.arrived_by == user.id),
    ]
    return [condition for given, condition in conditions if given]


def _matching(search: str) -> ColumnElement[bool]:
    """Match the start of an id, a view or a format, or part of the likeliest class or of the uploader's name."""
    low = search.strip().lower()
    return or_(
        FilmRow.id.startswith(low, autoescape=True),
        func.lower(cast(FilmRow.view, String)) == low,
        ImpressionRow.likeliest.contains(low, autoescape=True),
        UserRow.name.contains(low, autoescape=True),
        FilmRow.suffix == SUFFIXES.get(low.upper(), "-"),
    )


def _studies(session: Session, films: Sequence[str]) -> dict[str, tuple[tuple[StudyRow, str], ...]]:
    wanted = select(StudyRow, UserRow.name).join(UserRow, UserRow.id == StudyRow.reader_id)
    studies: dict[str, tuple[tuple[StudyRow, str], ...]] = {}
    for study, name in session.execute(wanted.where(StudyRow.film_id.in_(films)).order_by(StudyRow.opened_at)):
        studies[study.film_id] = (*studies.get(study.film_id, ()), (study, name))
    return studies


def remove(room: Room, user: User, film: str) -> None:
    """Remove a film's files and features for good; what was done with it stays in the log."""
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
