"""A reading room of version 0.1.0 opens, answers as it did, and goes on (tests/fixtures/version-0.1.0/room)."""

import shutil

import pytest
from reading_room import drawn, reading_room

from made_before import BEFORE, EXPECTED, alike

ROOM = EXPECTED["room"]
STUDY = f"/studies/{ROOM['study']['id']}"
LAST_EVENT = 14


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(BEFORE / "run", tmp_path / "run")
    return shutil.copytree(BEFORE / "room", tmp_path / "room")


@pytest.fixture
def room(folder):
    with reading_room(folder, folder.with_name("run")) as opened:
        yield opened


def test_its_log_is_whole_and_ends_with_the_last_event_of_that_time(room):
    verdict = room.get("alma", "/log/verification").json()
    assert (verdict["whole"], verdict["faults"], verdict["events"]) == (True, [], LAST_EVENT)
    assert room.get("alma", "/log?size=1").json()["events"][0]["kind"] == "prototypes.discarded"


def test_its_study_history_films_models_jobs_and_users_are_answered_as_they_were(room):
    assert alike(room.get("rita", STUDY).json(), ROOM["study"])
    assert alike(room.get("rita", f"{STUDY}/history").json(), ROOM["history"])
    assert alike(room.get("rita", "/films").json(), ROOM["films"])
    assert alike(room.get("rita", "/models").json(), ROOM["models"])
    assert room.get("cora", "/jobs").json() == ROOM["jobs"]
    assert room.get("alma", "/users").json() == ROOM["users"]


def test_its_reading_is_exported_as_it_was(room):
    now = room.get("rita", f"{STUDY}/reading.json").json()
    before = ROOM["reading"]
    assert alike(now | {"made_at": before["made_at"], "software": before["software"]}, before)


def test_a_study_goes_back_step_by_step_to_the_film_as_the_model_read_it(room):
    for _ in range(4):
        assert room.post("rita", f"{STUDY}/undo", json={}).status_code == 200
    study = room.get("rita", STUDY).json()
    assert (study["corrections"], study["can_undo"], study["can_redo"]) == ([], False, True)
    assert alike(study["prediction"], ROOM["study"]["first_prediction"])


def test_a_film_is_read_again_without_its_stored_features(folder):
    shutil.rmtree(folder / "features")
    with reading_room(folder, folder.with_name("run")) as room:
        assert alike(room.get("rita", STUDY).json()["prediction"], ROOM["study"]["prediction"])


def test_a_new_correction_and_a_new_film_continue_the_log(room):
    step = room.post("rita", f"{STUDY}/rejections", json={"concept": "obsolete_tb", "revision": 6})
    assert step.status_code == 200, step.text
    assert step.json()["study"]["revision"] == 7
    assert room.upload("rolf", drawn(3)).status_code == 201
    verdict = room.get("alma", "/log/verification").json()
    assert (verdict["whole"], verdict["events"]) == (True, LAST_EVENT + 2)


def test_models_that_were_taught_and_curated_in_it_still_read_films(room):
    made_here = [model["version"] for model in ROOM["models"] if model["made_here"]]
    assert len(made_here) == 2
    for version in made_here:
        study = room.study("cora", ROOM["study"]["film"], model=version)
        assert study["model"] == version
        assert sum(study["prediction"].values()) == pytest.approx(1, abs=1e-5)
