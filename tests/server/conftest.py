"""The reading room, on both databases."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from reading_room import reading_room

from medgrape.benchmarks.postgres import programs, temporary_postgres
from medgrape.feedback.reader import load
from medgrape.model.safety_thresholds import SafetyThresholds

DATABASES = ["sqlite", "postgresql"]


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server; where there is none, whatever needs it is passed over, but never in CI."""
    if programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed")
    with temporary_postgres() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def sceptic(graduate: Path, tmp_path_factory) -> Path:
    """The graduate, who doubts every box in which another finding leads by ever so little."""
    reader = load(graduate)
    thresholds = SafetyThresholds({}, 0.0, None, None, None, {}, {})
    strict = reader.changed(replace(reader.loaded.run, safety=thresholds), "Made to doubt.")
    return strict.save(tmp_path_factory.mktemp("runs") / "sceptic").loaded.folder


@pytest.fixture(params=DATABASES)
def database(request) -> str:
    """The URL of an empty database; "" is SQLite in the room's folder."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres").new_database()


@pytest.fixture
def room(tmp_path: Path, sceptic: Path, database: str):
    """A reading room of one's own."""
    with reading_room(tmp_path / "room", sceptic, database) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_room(tmp_path_factory, sceptic):
    """A reading room for all tests of a file, on SQLite."""
    with reading_room(tmp_path_factory.mktemp("shared") / "room", sceptic) as opened:
        yield opened
