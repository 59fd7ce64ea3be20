"""The end of the demo: a room with films that tell who is on them, opened on one with something to try."""

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
    """The trained_run, who doubts every box in which another finding leads."""
    reader = load(trained_run)
    thresholds = SafetyThresholds({}, 0.0, None, None, None, {}, {})
    return replace(reader, loaded=replace(reader.loaded, run=replace(reader.loaded.run, safety=thresholds)))


@pytest.fixture
def opened(trained_run, drawn_dataset, tmp_path, monkeypatch):
    """Opens the demo's room without anybody coming: the films in it, the newest first."""
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


def test_films_hang_with_view_sex_and_age(opened, drawn_dataset):
    films = opened()
    test_films = len(list(Dataset.load(drawn_dataset).in_split("test")))
    assert len(films) == min(test_films, demo.FILMS_IN_ROOM)
    for film in films:
        assert film.facts["format"] == "DICOM"
        assert film.view in ("PA", "AP")
        assert film.sex in ("M", "F")
        assert film.facts["spacing"]


def test_opening_the_room_again_hangs_nothing_twice(opened):
    assert [film.id for film in opened()] == [film.id for film in opened()]


def test_what_is_suggested_is_a_claim_to_which_the_model_objects(strict_run, drawn_dataset):
    suggestion = demo.find_suggestion(strict_run, Dataset.load(drawn_dataset))
    assert suggestion is not None, "the strict_run objects to nothing; draw other films for the drawn_dataset"
    study = strict_run.open(Dataset.load(drawn_dataset).film_path(suggestion.film))
    assert study.check(suggestion.box, suggestion.concept).mismatch
    assert demo.films_for_room(Dataset.load(drawn_dataset), suggestion)[-1] == suggestion.film
    address = demo.page_address("0" * 16, suggestion)
    assert address.startswith(f"#/try/{'0' * 16}/{suggestion.concept}/")
    assert len(address.rsplit("/", 1)[1].split(",")) == 4


def test_without_a_suggestion_the_film_is_simply_opened(drawn_dataset):
    assert demo.page_address("0" * 16, None) == f"#/films/{'0' * 16}"
    assert len(demo.films_for_room(Dataset.load(drawn_dataset), None)) > 1


def test_what_the_room_would_lack_is_told_before_the_work(monkeypatch):
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UserError, match="--no-serve"):
        demo.check_installed()
