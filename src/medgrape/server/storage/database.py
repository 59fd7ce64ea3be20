"""The database, SQLite in the room's folder or PostgreSQL by URL: connections, transactions and migrations."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, NoSuchModuleError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from medgrape.errors import UserError

if TYPE_CHECKING:
    from alembic.config import Config

LOCK_TIMEOUT = 10  # seconds that a request waits for the write lock or a connection
CONNECTIONS = 24
DATABASE_ERRORS = (OperationalError, InterfaceError, PoolTimeoutError)  # it does not answer, or its disk is full
_URL_FORMS = "A database is named like sqlite:///room.db or postgresql://user:password@host/name."
_SCRIPTS = Path(__file__).parent / "migrations"
_MIGRATION_LOCK = 4711_0001  # PostgreSQL's advisory lock under which tables are changed


class DatabaseUrlError(UserError):
    """A database URL that cannot be used."""


class MigrationError(UserError):
    """The database cannot be used, or its version is unknown."""


class Database:
    """Read transactions, and write transactions one after another."""

    def __init__(self, url: str) -> None:
        self.url = _parsed(url)
        self.engine = _engine(self.url)
        self._writers = self.engine.execution_options(writes=True)
        self.after_commit: Callable[[Session], None] = lambda _: None  # called with the session after each commit
        self._turn = threading.Lock()

    @property
    def is_sqlite(self) -> bool:
        """True for SQLite, False for PostgreSQL."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Open a session for reading; loaded objects stay usable afterwards."""
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Open a session that commits at the end, or rolls back if the block raises.

        SQLite has one writer at a time and others poll; in one process they wait for a lock instead, which is fair and
        much faster.
        """
        with Session(self._writers, expire_on_commit=False) as session:
            with self._lock() if self.is_sqlite else nullcontext():
                yield session
                session.commit()
            self.after_commit(session)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=LOCK_TIMEOUT):
            raise TimeoutError
        try:
            yield
        finally:
            self._turn.release()

    def dispose(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def __str__(self) -> str:
        return self.url.render_as_string(hide_password=True)


def default_url(folder: Path) -> str:
    """Return the URL of a SQLite database in a folder."""
    return f"sqlite:///{folder.resolve() / 'medgrape.db'}"


def error_line(error: Exception) -> str:
    """Return the database's message in one line, for the server's log."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return (str(cause).strip().splitlines() or [type(cause).__name__])[0]


def migrate(database: Database, revision: str = "head") -> None:
    """Create or update the tables; several servers may start at once."""
    from alembic import command  # slow to import, and workers never need it
    from alembic.util import CommandError

    try:
        with database.engine.execution_options(writes=True).begin() as connection:
            if not database.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            command.upgrade(alembic_config(connection), revision)
    except CommandError as error:
        raise MigrationError(f"The database has a newer version ({error}); update medgrape.") from error
    except DBAPIError as error:
        raise MigrationError(f"The database {database} cannot be used: {error_line(error)}.") from error


def alembic_config(connection: Connection) -> "Config":
    """Return Alembic's settings for an open connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise DatabaseUrlError(_URL_FORMS) from None
    if parsed.get_backend_name() == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise DatabaseUrlError(f"{parsed.drivername} is not supported; use a SQLite file or PostgreSQL.")
    return parsed


def _engine(url: URL) -> Engine:
    options: dict[str, Any] = {
        "pool_size": CONNECTIONS, "max_overflow": 0, "pool_timeout": LOCK_TIMEOUT, "hide_parameters": True,
    }  # fmt: skip
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, **options, connect_args={"timeout": LOCK_TIMEOUT, "check_same_thread": False})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    # Without client_encoding, a database created without a character set returns bytes instead of text.
    arguments = {"connect_timeout": LOCK_TIMEOUT, "client_encoding": "utf8"}
    try:
        return create_engine(url, **options, pool_pre_ping=True, connect_args=arguments)
    except (ModuleNotFoundError, NoSuchModuleError) as missing:
        raise DatabaseUrlError("PostgreSQL needs: pip install 'medgrape[postgres]'.") from missing


def _prepare_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401 (a connection of any driver)
    connection.isolation_level = None  # BEGIN is sent by _begin_sqlite
    cursor = connection.cursor()
    wait = f"busy_timeout={LOCK_TIMEOUT * 1000}"
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "recursive_triggers=ON", wait):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """Lock for writing at the begin: SQLite refuses to turn a read transaction into a write transaction."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
