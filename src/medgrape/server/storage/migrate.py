"""Bringing a database to the tables that this version knows."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from medgrape.errors import UserError
from medgrape.server.storage.database import Database, what_is_wrong

SCRIPTS = Path(__file__).parent / "migrations"
_LOCK = 4711_0001
"""PostgreSQL's advisory lock under which tables are changed."""


class MigrationError(UserError):
    """A database that does not answer, is none, or is of a version that this one does not know."""


def migrate(database: Database, revision: str = "head") -> None:
    """Change the tables step by step; several servers may start at once."""
    try:
        with database.engine.execution_options(writes=True).begin() as connection:
            if not database.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            config = config_for(connection)
            _refuse_newer(connection, ScriptDirectory.from_config(config))
            command.upgrade(config, revision)
    except DBAPIError as error:
        raise MigrationError(f"The database {database} cannot be used: {what_is_wrong(error)}.") from error


def config_for(connection: Connection) -> Config:
    """Alembic's settings, for a connection that is open already."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _refuse_newer(connection: Connection, scripts: ScriptDirectory) -> None:
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in {script.revision for script in scripts.walk_revisions()}:
        raise MigrationError(f"The database is of a newer version (revision {current}); update medgrape.")
