"""Migrations of the database from every earlier revision."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from reading_room import reading_room
from sqlalchemy import text

from medgrape.server.room import RoomFolder, RoomStore
from medgrape.server.settings import ServerSettings
from medgrape.server.storage.database import Database, MigrationError, alembic_config, migrate
from medgrape.server.storage.tables import Base

NOW = "2026-11-18T09:30:00.000000Z"
FIRST = {
    "users": "INSERT INTO users (id, name, role, disabled, failures, added_at) "
    f"VALUES (1, 'ada', 'admin', false, 0, '{NOW}')",
    "models": "INSERT INTO models (version, name, folder, made_here, what, added_at, added_by) "
    f"VALUES ('m', 'run', '/nowhere', false, 'Given.', '{NOW}', 'server')",
    "films": "INSERT INTO films (id, content, suffix, facts, sex, arrived_at, arrived_by) "
    f"VALUES ('f', 'c', '.png', '{{}}', 'F', '{NOW}', 1)",
    "studies": "INSERT INTO studies (id, film_id, model, reader_id, revision, prediction, opened_at, changed_at) "
    f"VALUES ('s', 'f', 'm', 1, 0, '{{}}', '{NOW}', '{NOW}')",
    "settings": "INSERT INTO settings (key, value) VALUES ('model_in_use', 'm')",
}


@pytest.fixture
def store(tmp_path, database):
    opened = RoomStore.opened(RoomFolder(tmp_path / "room"), ServerSettings(database=database))
    yield opened
    opened.database.dispose()


def revisions():
    with_no_database = alembic_config(None)
    return [script.revision for script in ScriptDirectory.from_config(with_no_database).walk_revisions()][::-1]


def test_a_postgresql_database_without_a_character_set_keeps_names(postgres):
    whole = Database(postgres.new_database())
    with whole.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        made = "CREATE DATABASE bare ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        connection.execute(text(made))
    bare = Database(whole.url.set(database="bare").render_as_string(hide_password=False))
    migrate(bare)
    with bare.writing() as session:
        session.execute(text(FIRST["users"].replace("'ada'", "'Ådå 李'")))
    with bare.reading() as session:
        assert session.scalar(text("SELECT name FROM users")) == "Ådå 李"
    bare.dispose()
    whole.dispose()


def test_data_of_the_first_revision_survive_every_migration(store):
    first, *later = revisions()
    migrate(store.database, first)
    with store.database.engine.execution_options(writes=True).begin() as connection:
        for statement in FIRST.values():
            connection.execute(text(statement))
    with store.database.writing() as session:
        store.record(session, "ada", "film.arrived", film="f")
    assert len(later) >= 2
    for revision in later:
        migrate(store.database, revision)
        with store.database.reading() as session:
            for table in FIRST:
                assert session.scalar(text(f"SELECT count(*) FROM {table}")) == 1, table
        with store.database.reading() as session:
            assert store.log.verify(session).whole
    with store.database.writing() as session:
        store.record(session, "ada", "film.removed", film="f")
    with store.database.reading() as session:
        assert store.log.verify(session).events == 2


def test_the_last_revision_has_exactly_the_tables_of_the_code(store):
    migrate(store.database)
    with store.database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_migrating_twice_changes_nothing(store):
    migrate(store.database)
    migrate(store.database)


def test_a_database_of_a_newer_version_is_refused(store):
    migrate(store.database)
    with store.database.engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(MigrationError, match="newer"):
        migrate(store.database)


def test_a_migrated_database_serves(tmp_path, strict_run, database):
    opened = RoomStore.opened(RoomFolder(tmp_path / "room"), ServerSettings(database=database))
    migrate(opened.database, revisions()[0])
    opened.database.dispose()
    with reading_room(tmp_path / "room", strict_run, database) as room:
        assert room.study()["revision"] == 0
