"""Films: taken in without names, listed, searched, removed."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Select, String, cast, exists, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from medgrape.films.anonymise import SUFFIXES
from medgrape.films.film import Film, FilmFacts
from medgrape.server.models import in_use
from medgrape.server.problems import forbidden, not_found
from medgrape.server.room import Room
from medgrape.server.security.credentials import new_id
from medgrape.server.security.roles import Role, User
from medgrape.server.storage.database import DATABASE_ERRORS
from medgrape.server.storage.tables import FilmRow, ImpressionRow, StudyRow, UserRow


@dataclass(frozen=True)
class Taken:
    """A film that came in, and whether it had come before."""

    film: FilmRow
    known: bool


@dataclass(frozen=True)
class Wanted:
    """Which films are asked for."""

    page: int = 1
    size: int = 50
    search: str = ""
    likeliest: str = ""
    view: str = ""
    unread: bool = False
    mine: bool = False


@dataclass(frozen=True)
class Listed:
    """A film in the list."""

    film: FilmRow
    arrived_by: str
    prediction: dict[str, Any] | None
    """Of the model in use; None while nobody has asked it."""
    readings: tuple[tuple[StudyRow, str], ...]
    """Studies of it, with their readers' names."""


def take_in(room: Room, user: User, upload: Path) -> Taken:
    """Keep a film that was uploaded: its pixels and what is allowed to stay of its header, and nothing else."""
    with upload.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    known = _known(room, content)
    if known is not None:
        return Taken(known, known=True)
    clean = room.decoder_pool.clean(upload)
    arrival, film = clean.arrival, new_id()
    row = FilmRow(
        id=film, content=content, suffix=arrival.suffix, facts=arrival.facts.to_json(), view=arrival.facts.view,
        sex=arrival.sex, age=arrival.age, arrived_at=datetime.now(UTC), arrived_by=user.id, deleted_at=None,
    )  # fmt: skip
    try:
        room.decoder_pool.keep(film, clean)
        with room.database.writing() as session:
            session.add(row)
            session.flush()
            room.store.record(session, user, "film.arrived", film=film, content=content, format=arrival.facts.format)
    except (IntegrityError, OSError, *DATABASE_ERRORS) as error:
        if _is_there(room, film):  # it was written down, and only the word of it was lost
            return Taken(row, known=False)
        room.decoder_pool.drop(film, row.suffix)
        known = _known(room, content) if isinstance(error, IntegrityError) else None
        if known is None:
            raise
        return Taken(known, known=True)  # somebody uploaded the same film at the same moment
    return Taken(row, known=False)


def _is_there(room: Room, film: str) -> bool:
    """Whether a film was written down; where nobody can say, that is raised, and its files stay."""
    with room.database.reading() as session:
        return session.get(FilmRow, film) is not None


def _known(room: Room, content: str) -> FilmRow | None:
    with room.database.reading() as session:
        return _by_content(session, content)


def _by_content(session: Session, content: str) -> FilmRow | None:
    return session.scalar(select(FilmRow).where(FilmRow.content == content, FilmRow.deleted_at.is_(None)))


def film_row(session: Session, film: str, *, lock: bool = False) -> FilmRow:
    """A film that is there; locked, it stays there until the session ends."""
    row = session.get(FilmRow, film, with_for_update=lock)
    if row is None or row.deleted_at is not None:
        raise not_found("film", film)
    return row


def pictured(room: Room, row: FilmRow) -> Film:
    """A film to look at; its pixels are decoded when somebody does."""
    return room.decoder_pool.film(row.id, row.suffix, FilmFacts.from_json(row.facts))


def listed(session: Session, user: User, wanted: Wanted) -> tuple[int, list[Listed]]:
    """How many films there are of the kind, and a page of them, the newest first."""
    model = in_use(session) or ""
    joined = (
        select(FilmRow, UserRow.name, ImpressionRow.prediction)
        .join(UserRow, UserRow.id == FilmRow.arrived_by)
        .outerjoin(ImpressionRow, (ImpressionRow.film_id == FilmRow.id) & (ImpressionRow.model == model))
        .where(FilmRow.deleted_at.is_(None), *_conditions(user, wanted))
    )
    total = session.scalar(select(func.count()).select_from(joined.subquery())) or 0
    page = _page(joined, wanted)
    rows = session.execute(page).all()
    readings = _readings(session, [film.id for film, _, _ in rows])
    return total, [Listed(film, name, said, readings.get(film.id, ())) for film, name, said in rows]


def _page(joined: Select[Any], wanted: Wanted) -> Select[Any]:
    order = joined.order_by(FilmRow.arrived_at.desc(), FilmRow.id)
    return order.limit(wanted.size).offset((wanted.page - 1) * wanted.size)


def one_listed(session: Session, film: FilmRow) -> Listed:
    """One film as it stands in the list."""
    impression = session.get(ImpressionRow, (film.id, in_use(session) or ""))
    name = session.get_one(UserRow, film.arrived_by).name
    prediction = None if impression is None else impression.prediction
    return Listed(film, name, prediction, _readings(session, [film.id]).get(film.id, ()))


def _conditions(user: User, wanted: Wanted) -> list[ColumnElement[bool]]:
    own = exists().where(StudyRow.film_id == FilmRow.id, StudyRow.reader_id == user.id)
    asked: list[tuple[object, ColumnElement[bool]]] = [
        (wanted.search, _matching(wanted.search)),
        (wanted.likeliest, ImpressionRow.likeliest == wanted.likeliest),
        (wanted.view, FilmRow.view == wanted.view.upper()),
        (wanted.unread, ~own),
        (wanted.mine, FilmRow.arrived_by == user.id),
    ]
    return [condition for given, condition in asked if given]


def _matching(search: str) -> ColumnElement[bool]:
    """Films whose id begins so, or whose view, sex, likeliest class or uploader is called so."""
    low = search.strip().lower()
    return or_(
        FilmRow.id.startswith(low, autoescape=True),
        func.lower(cast(FilmRow.view, String)) == low,
        ImpressionRow.likeliest.contains(low, autoescape=True),
        UserRow.name.contains(low, autoescape=True),
        FilmRow.suffix == SUFFIXES.get(low.upper(), "-"),
    )


def _readings(session: Session, films: Sequence[str]) -> dict[str, tuple[tuple[StudyRow, str], ...]]:
    wanted = select(StudyRow, UserRow.name).join(UserRow, UserRow.id == StudyRow.reader_id)
    found: dict[str, tuple[tuple[StudyRow, str], ...]] = {}
    for study, name in session.execute(wanted.where(StudyRow.film_id.in_(films)).order_by(StudyRow.opened_at)):
        found[study.film_id] = (*found.get(study.film_id, ()), (study, name))
    return found


def remove(room: Room, user: User, film: str) -> None:
    """Take a film away for good: its files, its features; what was done with it stays in the log."""
    with room.database.writing() as session:
        row = film_row(session, film, lock=True)
        others = select(func.count()).select_from(StudyRow)
        others = others.where(StudyRow.film_id == film, StudyRow.reader_id != user.id)
        own = row.arrived_by == user.id and not session.scalar(others)
        if not (own or user.role.covers(Role.CURATOR)):
            raise forbidden("Only a curator removes films that others uploaded or have read.")
        row.deleted_at = datetime.now(UTC)
        room.store.record(session, user, "film.removed", film=film)
    room.decoder_pool.drop(film, row.suffix)
    room.features.drop(row.content)
