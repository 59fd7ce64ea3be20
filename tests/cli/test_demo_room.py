"""The reading room of the demo: its films, and the box that it suggests to try."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from medgrape.cli import demo
from medgrape.datasets.dataset import Dataset
from medgrape.errors import UserError
from medgrape.reader import load
from medgrape.runs.checkpoint import SafetyThresholds
from medgrape.server import process
from medgrape.server.room import RoomStore
from medgrape.server.storage.tables import FilmRow


@pytest.fixture
def strict_run(trained_run):
    """Return the trained run with a check that doubts every box in which another finding leads."""
    reader = load(trained_run)
    thresholds = SafetyThresholds({}, 0.0, None, None, None, {}, {})
    return replace(reader, loaded=replace(reader.loaded, run=replace(reader.loaded.run, safety=thresholds)))


@pytest.fixture
def opened(trained_run, drawn_dataset, tmp_path, monkeypatch):
    """Return a function that opens the room of the demo and returns its films, the newest first."""
    monkeypatch.setattr(demo, "_open_browser", lambda *_: None)

    def open_room():
        found = []

        def run(ready):
            archive = RoomStore.opened(ready.folder, ready.settings)
            with archive.database.reading() as session:
                found.extend(session.scalars(select(FilmRow).order_by(FilmRow.arrived_at.desc())).all())
            archive.close()
            ready.listening.close()
            ready.lock.release()

        monkeypatch.setattr(process, "run", run)
        demo.open_room(load(trained_run), drawn_dataset, tmp_path / "room", port=0)
        return found

    return open_room


def test_films_of_the_room_have_view_sex_and_age(opened, drawn_dataset):
    films = opened()
    test_films = len(list(Dataset.load(drawn_dataset).in_split("test")))
    assert len(films) == min(test_films, demo.FILMS_IN_ROOM)
    for film in films:
        assert film.facts["format"] == "DICOM"
        assert film.view in ("PA", "AP")
        assert film.sex in ("M", "F")
        assert film.facts["spacing"]


def test_opening_the_room_again_adds_no_film_twice(opened):
    assert [film.id for film in opened()] == [film.id for film in opened()]


def test_the_suggested_box_is_one_that_the_model_doubts(strict_run, drawn_dataset):
    suggestion = demo.find_suggestion(strict_run, Dataset.load(drawn_dataset))
    assert suggestion is not None, "the model doubts no box; draw other films"
    study = strict_run.open(Dataset.load(drawn_dataset).film_path(suggestion.film))
    assert study.check(suggestion.box, suggestion.concept).mismatch
    assert demo.films_for_room(Dataset.load(drawn_dataset), suggestion)[-1] == suggestion.film
    address = demo.page_address("0" * 16, suggestion)
    assert address.startswith(f"#/try/{'0' * 16}/{suggestion.concept}/")
    assert len(address.rsplit("/", 1)[1].split(",")) == 4


def test_without_a_suggestion_the_page_opens_the_film(drawn_dataset):
    assert demo.page_address("0" * 16, None) == f"#/films/{'0' * 16}"
    assert len(demo.films_for_room(Dataset.load(drawn_dataset), None)) > 1


def test_missing_packages_are_reported_before_the_work(monkeypatch):
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UserError, match="--no-serve"):
        demo.check_installed()
