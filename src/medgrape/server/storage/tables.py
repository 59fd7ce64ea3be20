"""The tables. Times are text in UTC, so that SQLite and PostgreSQL sort them alike, to the microsecond."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text, TypeDecorator, UniqueConstraint, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

_PRESENT = text("deleted_at IS NULL")
_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


def stamp(when: datetime) -> str:
    """Format a time like 2026-11-18T09:30:00.000000Z."""
    return when.astimezone(UTC).strftime(_FORMAT)


class Moment(TypeDecorator[datetime]):
    """A time in UTC, as text."""

    impl, cache_ok = String(27), True

    def process_bind_param(self, value: datetime | None, _dialect: object) -> str | None:
        """To the database."""
        return None if value is None else stamp(value)

    def process_result_value(self, value: str | None, _dialect: object) -> datetime | None:
        """From the database."""
        return None if value is None else datetime.strptime(value, _FORMAT).replace(tzinfo=UTC)


class Base(DeclarativeBase):
    """Base class of all tables."""

    type_annotation_map = {datetime: Moment(), dict[str, Any]: JSON()}  # noqa: RUF012 (SQLAlchemy's own way)

    def columns(self) -> dict[str, Any]:
        """Return the row's values by column."""
        return {column.key: getattr(self, column.key) for column in self.__table__.columns}


class UserRow(Base):
    """A user of the server."""

    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[str] = mapped_column(String(16))
    password: Mapped[str | None] = mapped_column(String(256))  # Argon2 hash; None: log in by OIDC or token only
    subject: Mapped[str | None] = mapped_column(String(512), unique=True)  # OIDC issuer and subject
    disabled: Mapped[bool] = mapped_column(default=False)
    failures: Mapped[int] = mapped_column(default=0)  # wrong passwords since the last login
    locked_until: Mapped[datetime | None]
    added_at: Mapped[datetime]


class SessionRow(Base):
    """A login session; ``key`` is a hash of the cookie's content."""

    __tablename__ = "sessions"
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    opened_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class TokenRow(Base):
    """A bearer token; only its hash is stored."""

    __tablename__ = "tokens"
    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    name: Mapped[str] = mapped_column(String(64))
    role: Mapped[str] = mapped_column(String(16))
    key: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class FilmRow(Base):
    """An uploaded film; its file lies in the room's folder under its id."""

    __tablename__ = "films"
    __table_args__ = (
        Index("one_film_for_each_content", "content", unique=True, sqlite_where=_PRESENT, postgresql_where=_PRESENT),
        Index("films_by_arrival", "arrived_at", "id"),
    )

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    content: Mapped[str] = mapped_column(String(64))  # SHA-256 of the uploaded file, so that it is stored once
    suffix: Mapped[str] = mapped_column(String(8))
    facts: Mapped[dict[str, Any]]
    view: Mapped[str | None] = mapped_column(String(16))
    sex: Mapped[str] = mapped_column(String(1))
    age: Mapped[int | None]
    arrived_at: Mapped[datetime]
    arrived_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    deleted_at: Mapped[datetime | None]


class ModelRow(Base):
    """A run known to the server, by a hash of its manifest."""

    __tablename__ = "models"
    version: Mapped[str] = mapped_column(String(16), primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    folder: Mapped[str] = mapped_column(Text)
    made_here: Mapped[bool]  # whether it was created here, by teaching or curating a model
    parent: Mapped[str | None] = mapped_column(String(16))
    what: Mapped[str] = mapped_column(Text)  # how it was made, in one sentence
    added_at: Mapped[datetime]
    added_by: Mapped[str] = mapped_column(String(64))
    removed_at: Mapped[datetime | None]


class ImpressionRow(Base):
    """Prediction of a model for a film without corrections."""

    __tablename__ = "impressions"
    film_id: Mapped[str] = mapped_column(ForeignKey("films.id"), primary_key=True)
    model: Mapped[str] = mapped_column(ForeignKey("models.version"), primary_key=True)
    likeliest: Mapped[str] = mapped_column(String(64), index=True)
    prediction: Mapped[dict[str, Any]]


class StudyRow(Base):
    """A study of one film with one model by one reader. Its steps are events."""

    __tablename__ = "studies"
    __table_args__ = (UniqueConstraint("film_id", "model", "reader_id", name="one_study_for_each_reader"),)

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    film_id: Mapped[str] = mapped_column(ForeignKey("films.id"), index=True)
    model: Mapped[str] = mapped_column(ForeignKey("models.version"))
    reader_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    revision: Mapped[int] = mapped_column(default=0)  # number of steps, with undo and redo
    prediction: Mapped[dict[str, Any]]  # after the last step
    opened_at: Mapped[datetime]
    changed_at: Mapped[datetime]


class EventRow(Base):
    """An event of the log. Rows are only ever added."""

    __tablename__ = "events"
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    at: Mapped[str] = mapped_column(String(27))
    actor: Mapped[str] = mapped_column(String(64), index=True)
    kind: Mapped[str] = mapped_column(String(32), index=True)
    film: Mapped[str | None] = mapped_column(String(16), index=True)
    study: Mapped[str | None] = mapped_column(String(16), index=True)
    model: Mapped[str | None] = mapped_column(String(16))
    body: Mapped[str] = mapped_column(Text)  # JSON, as hashed
    previous: Mapped[str] = mapped_column(String(64))
    hash: Mapped[str] = mapped_column(String(64))
    seal: Mapped[str] = mapped_column(String(64))


class ChainRow(Base):
    """End of the chain of events; locked while an event is added."""

    __tablename__ = "chain"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    seq: Mapped[int]
    hash: Mapped[str] = mapped_column(String(64))


class JobRow(Base):
    """A background job."""

    __tablename__ = "jobs"
    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    kind: Mapped[str] = mapped_column(String(32))
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    state: Mapped[str] = mapped_column(String(16))
    progress: Mapped[float] = mapped_column(default=0.0)
    news: Mapped[str] = mapped_column(Text, default="")
    result: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime]
    beat_at: Mapped[datetime]  # last heartbeat of its worker
    cancelled: Mapped[bool] = mapped_column(default=False)  # True once a user asked to cancel it


class SettingRow(Base):
    """A setting for all users, such as the model in use."""

    __tablename__ = "settings"
    key: Mapped[str] = mapped_column(String(32), primary_key=True)
    value: Mapped[str] = mapped_column(Text)
