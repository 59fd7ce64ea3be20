"""The database: SQLite in the room's folder, or PostgreSQL by URL; the same tables, durable before acknowledged."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, NoSuchModuleError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from medgrape.errors import UserError

PATIENCE = 10
"""Seconds that a request waits for its turn to write, or for a connection."""
CONNECTIONS = 24
DATABASE_ERRORS = (OperationalError, InterfaceError, PoolTimeoutError)
"""What it means when the database does not answer, or its disk is full."""


class DatabaseUrlError(UserError):
    """A database that cannot be used."""


class Database:
    """Transactions that read, and transactions that write one after another."""

    def __init__(self, url: str) -> None:
        self.url = _parsed(url)
        self.engine = _engine(self.url)
        self._writers = self.engine.execution_options(writes=True)
        self.after_commit: Callable[[Session], None] = lambda _: None
        """Called once what a session wrote is safe."""
        self._queue = threading.Lock()

    @property
    def is_sqlite(self) -> bool:
        """Else it is PostgreSQL."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A look at one moment; what is loaded stays usable afterwards."""
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """All that is done in it, or nothing; safe on disk when it ends.

        SQLite lets one writer in at a time and makes the others ask again and again; in one process they wait in a
        queue instead, which is fair and much quicker.
        """
        with Session(self._writers, expire_on_commit=False) as session:
            with self._turn():
                yield session
                session.commit()
            self.after_commit(session)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self.is_sqlite:
            yield
            return
        if not self._queue.acquire(timeout=PATIENCE):
            raise TimeoutError
        try:
            yield
        finally:
            self._queue.release()

    def dispose(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def __str__(self) -> str:
        return self.url.render_as_string(hide_password=True)


def default_url(folder: Path) -> str:
    """SQLite in a folder."""
    return f"sqlite:///{folder.resolve() / 'medgrape.db'}"


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise DatabaseUrlError(
            "A database is named like sqlite:///room.db or postgresql://user:password@host/name."
        ) from None
    if parsed.get_backend_name() == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise DatabaseUrlError(f"{parsed.drivername} is no database for the server; take a SQLite file or PostgreSQL.")
    return parsed


def _engine(url: URL) -> Engine:
    common: dict[str, Any] = {
        "pool_size": CONNECTIONS,
        "max_overflow": 0,
        "pool_timeout": PATIENCE,
        "hide_parameters": True,
    }
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, **common, connect_args={"timeout": PATIENCE, "check_same_thread": False})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    # A database that was made without a character set would give bytes where words are expected.
    words = {"connect_timeout": PATIENCE, "client_encoding": "utf8"}
    try:
        return create_engine(url, **common, pool_pre_ping=True, connect_args=words)
    except (ModuleNotFoundError, NoSuchModuleError) as missing:
        raise DatabaseUrlError("PostgreSQL needs: pip install 'medgrape[postgres]'.") from missing


def _prepare_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401 (whatever the driver gives)
    connection.isolation_level = None  # we say BEGIN ourselves, below
    cursor = connection.cursor()
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        "recursive_triggers=ON",
        f"busy_timeout={PATIENCE * 1000}",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """Writers take the lock at once: one that began as a reader would be refused when it comes to write."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def what_is_wrong(error: Exception) -> str:
    """What to tell an operator about a database that does not answer, in one line."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return (str(cause).strip().splitlines() or [type(cause).__name__])[0]
