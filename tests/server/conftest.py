"""Fixtures: reading rooms on SQLite and PostgreSQL."""

import os
from pathlib import Path

import pytest
from reading_room import reading_room

from benchmarks.postgres import programs, temporary_postgres

DATABASES = ["sqlite", "postgresql"]


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server; where there is none, whatever needs it is passed over, but never in CI."""
    if programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed")
    with temporary_postgres() as cluster:
        yield cluster


@pytest.fixture(params=DATABASES)
def database(request) -> str:
    """The URL of an empty database; "" is SQLite in the room's folder."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres").new_database()


@pytest.fixture
def room(tmp_path: Path, strict_run: Path, database: str):
    """A reading room of one's own."""
    with reading_room(tmp_path / "room", strict_run, database) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_room(tmp_path_factory, strict_run):
    """A reading room for all tests of a file, on SQLite."""
    with reading_room(tmp_path_factory.mktemp("shared") / "room", strict_run) as opened:
        yield opened
