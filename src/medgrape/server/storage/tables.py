"""Every table. Times are text in UTC, so that both databases keep and sort them alike, to the microsecond."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text, TypeDecorator, UniqueConstraint, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

_FORM = "%Y-%m-%dT%H:%M:%S.%fZ"


def stamp(when: datetime) -> str:
    """A moment as it is kept: ``2026-11-18T09:30:00.000000Z``."""
    return when.astimezone(UTC).strftime(_FORM)


def moment(kept: str) -> datetime:
    """The inverse of ``stamp``."""
    return datetime.strptime(kept, _FORM).replace(tzinfo=UTC)


class Moment(TypeDecorator[datetime]):
    """A time in UTC, as text."""

    impl, cache_ok = String(27), True

    def process_bind_param(self, value: datetime | None, _dialect: object) -> str | None:
        """Into the database."""
        return None if value is None else stamp(value)

    def process_result_value(self, value: str | None, _dialect: object) -> datetime | None:
        """Out of it."""
        return None if value is None else moment(value)


class Base(DeclarativeBase):
    """What all tables have in common."""

    type_annotation_map = {datetime: Moment(), dict[str, Any]: JSON()}  # noqa: RUF012 (SQLAlchemy's own way)


class UserRow(Base):
    """Somebody who may use the server."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[str] = mapped_column(String(16))
    password: Mapped[str | None] = mapped_column(String(256))
    """Argon2; None for those who come through OIDC, by token, or from this machine alone."""
    subject: Mapped[str | None] = mapped_column(String(512), unique=True)
    """Issuer and subject by which an OIDC provider knows them."""
    disabled: Mapped[bool] = mapped_column(default=False)
    failures: Mapped[int] = mapped_column(default=0)
    """Wrong passwords since the last right one."""
    locked_until: Mapped[datetime | None]
    added_at: Mapped[datetime]


class SessionRow(Base):
    """Somebody who logged in; ``key`` is a hash of what the cookie holds."""

    __tablename__ = "sessions"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    opened_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class TokenRow(Base):
    """A key for a machine; only a hash of it is kept."""

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
    """A film that arrived; its file lies in the room's folder under its id."""

    __tablename__ = "films"
    __table_args__ = (
        Index(
            "one_film_for_each_content",
            "content",
            unique=True,
            sqlite_where=text("deleted_at IS NULL"),
            postgresql_where=text("deleted_at IS NULL"),
        ),
        Index("films_by_arrival", "arrived_at", "id"),
    )

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    content: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the file as it came: two uploads of one file are one film."""
    suffix: Mapped[str] = mapped_column(String(8))
    facts: Mapped[dict[str, Any]]
    view: Mapped[str | None] = mapped_column(String(16))
    sex: Mapped[str] = mapped_column(String(1))
    age: Mapped[int | None]
    arrived_at: Mapped[datetime]
    arrived_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    deleted_at: Mapped[datetime | None]


class ModelRow(Base):
    """A run that the server knows, by a hash of its manifest."""

    __tablename__ = "models"

    version: Mapped[str] = mapped_column(String(16), primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    folder: Mapped[str] = mapped_column(Text)
    made_here: Mapped[bool]
    """Whether the server wrote it, when somebody taught or curated a model."""
    parent: Mapped[str | None] = mapped_column(String(16))
    what: Mapped[str] = mapped_column(Text)
    """In one sentence, how it came about."""
    added_at: Mapped[datetime]
    added_by: Mapped[str] = mapped_column(String(64))
    removed_at: Mapped[datetime | None]


class ImpressionRow(Base):
    """What a model says of a film that nobody has corrected."""

    __tablename__ = "impressions"

    film_id: Mapped[str] = mapped_column(ForeignKey("films.id"), primary_key=True)
    model: Mapped[str] = mapped_column(ForeignKey("models.version"), primary_key=True)
    likeliest: Mapped[str] = mapped_column(String(64), index=True)
    prediction: Mapped[dict[str, Any]]


class StudyRow(Base):
    """One film in front of one model and one person. What was done in it stands in the events."""

    __tablename__ = "studies"
    __table_args__ = (UniqueConstraint("film_id", "model", "reader_id", name="one_study_for_each_reader"),)

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    film_id: Mapped[str] = mapped_column(ForeignKey("films.id"), index=True)
    model: Mapped[str] = mapped_column(ForeignKey("models.version"))
    reader_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    revision: Mapped[int] = mapped_column(default=0)
    """Counted up with every step: a correction made, withdrawn or redrawn, undo and redo."""
    prediction: Mapped[dict[str, Any]]
    """As it stands after the last of them."""
    opened_at: Mapped[datetime]
    changed_at: Mapped[datetime]


class EventRow(Base):
    """Something that was done. Rows are only ever added."""

    __tablename__ = "events"

    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    at: Mapped[str] = mapped_column(String(27))
    actor: Mapped[str] = mapped_column(String(64), index=True)
    kind: Mapped[str] = mapped_column(String(32), index=True)
    film: Mapped[str | None] = mapped_column(String(16), index=True)
    study: Mapped[str | None] = mapped_column(String(16), index=True)
    model: Mapped[str | None] = mapped_column(String(16))
    body: Mapped[str] = mapped_column(Text)
    """JSON, as it was hashed."""
    previous: Mapped[str] = mapped_column(String(64))
    hash: Mapped[str] = mapped_column(String(64))
    seal: Mapped[str] = mapped_column(String(64))


class ChainRow(Base):
    """Where the chain of events ends; locked by whoever adds to it."""

    __tablename__ = "chain"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    seq: Mapped[int]
    hash: Mapped[str] = mapped_column(String(64))


class JobRow(Base):
    """Work that takes longer than a request."""

    __tablename__ = "jobs"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    kind: Mapped[str] = mapped_column(String(32))
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    state: Mapped[str] = mapped_column(String(16))
    progress: Mapped[float] = mapped_column(default=0.0)
    news: Mapped[str] = mapped_column(Text, default="")
    result: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime]
    beat_at: Mapped[datetime]
    """When whoever does it was last seen alive."""
    cancelled: Mapped[bool] = mapped_column(default=False)
    """Whether somebody asked for it to stop."""


class SettingRow(Base):
    """What is in force for everybody, such as the model that films are opened with."""

    __tablename__ = "settings"

    key: Mapped[str] = mapped_column(String(32), primary_key=True)
    value: Mapped[str] = mapped_column(Text)
