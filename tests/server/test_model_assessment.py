"""Assessment of a model on the server's data set."""

import json
import time
from collections import Counter
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from reading_room import reading_room
from sklearn.metrics import accuracy_score, f1_score
from typer.testing import CliRunner

import medgrape as mg
from medgrape.cli.app import app
from medgrape.datasets.dataset import Dataset, DatasetError, checksum
from medgrape.server.process import prepare
from medgrape.server.room import RoomFolder
from medgrape.server.settings import ServerSettings


@pytest.fixture
def measuring(tmp_path, trained_run, drawn_dataset, database):
    """A room whose server was given the data set that its model was trained on."""
    with reading_room(tmp_path / "room", trained_run, database, data=str(drawn_dataset)) as opened:
        yield opened


def measured(room, model, who="cora"):
    """What the job of measuring a model ended with."""
    asked = room.post(who, f"/models/{model}/worth")
    assert asked.status_code == 202, asked.text
    assert asked.json()["kind"] == "model.worth"
    job = asked.json()
    while job["state"] in ("waiting", "running"):
        time.sleep(0.05)
        job = room.get(who, f"/jobs/{job['id']}").json()
    return job


def without(room, model, *prototypes):
    """The version of a model without some prototypes of active_tb."""
    address = f"/models/{model}/concepts/active_tb/discard"
    return room.post("cora", address, json={"prototypes": list(prototypes)}).json()["version"]


def named(reader, film):
    """The class that a reader gives a film, one film at a time."""
    shares = reader.open(film).prediction
    return max(shares, key=shares.get)


def figures(truth, answers):
    """Macro-F1 and accuracy as scikit-learn counts them."""
    f1 = f1_score(truth, answers, labels=sorted(set(truth)), average="macro", zero_division=0)
    return {"macro_f1": pytest.approx(f1), "accuracy": pytest.approx(accuracy_score(truth, answers))}


def commonest(dataset):
    """The class that most training films are of."""
    return Counter(film.class_name for film in dataset.in_split("train")).most_common(1)[0][0]


def test_usage_of_prototypes_is_the_same_as_from_the_command(measuring, trained_run, drawn_dataset):
    model = measuring.model_in_use()
    assert measuring.get("rita", f"/models/{model}/worth").json()["code"] == "not_measured"
    job = measured(measuring, model)
    assert (job["state"], job["result"]["model"]) == ("done", model), job
    assessment = measuring.get("rita", f"/models/{model}/worth").json()
    words = ["atlas", "list", str(trained_run), "--data", str(drawn_dataset), "--json"]
    cards = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)["prototypes"]
    used = [
        (concept["name"], one["number"], concept["shown"], one["strongest"], one["in_box"])
        for concept in assessment["concepts"]
        for one in concept["prototypes"]
    ]
    assert used == [tuple(card[key] for key in ("concept", "number", "shown", "strongest", "in_box")) for card in cards]
    assert sum(one[3] for one in used) == sum(concept["shown"] for concept in assessment["concepts"]) > 0
    assert (assessment["its_own"], assessment["checksum"], assessment["parent"]) == (
        True,
        checksum(drawn_dataset),
        None,
    )


@pytest.fixture(scope="module")
def wayward(trained_run, tmp_path_factory):
    """The trained_run with a head drawn by lot, so that every prototype counts for some class."""
    reader, chance = mg.load(trained_run), torch.Generator().manual_seed(1)
    model = deepcopy(reader.loaded.run.model)
    with torch.no_grad():
        for weights in model.head.parameters():
            weights.copy_(torch.randn(weights.shape, generator=chance))
    drawn = reader.changed(replace(reader.loaded.run, model=model), "Drew a head by lot.")
    return drawn.save(tmp_path_factory.mktemp("runs") / "wayward").loaded.folder


def test_the_effect_of_discarding_is_compared_with_the_parent_and_the_trivial_answer(
    tmp_path, wayward, drawn_dataset, database
):
    with reading_room(tmp_path / "room", wayward, database, data=str(drawn_dataset)) as room:
        model = room.model_in_use()
        made = without(room, model, 0, 1, 2)
        assert measured(room, made)["state"] == "done"
        assessment = room.get("rita", f"/models/{made}/worth").json()
    reader, dataset = mg.load(wayward), Dataset.load(drawn_dataset)
    curated, films = reader.discard("active_tb", [0, 1, 2]), dataset.in_split("val")
    before, after = ([named(one, dataset.film_path(film)) for film in films] for one in (reader, curated))
    truth, common = [film.class_name for film in films], commonest(dataset)
    assert assessment["films"] == len(films)
    assert before != after
    assert assessment["parent"] == {
        "parent": model, "changed": sum(one != other for one, other in zip(before, after, strict=True)),
    } | figures(truth, before)  # fmt: skip
    assert assessment["standing"] == figures(truth, after)
    assert assessment["trivial"] == {"answer": common} | figures(truth, [common] * len(films))
    concept = next(one["prototypes"] for one in assessment["concepts"] if one["name"] == "active_tb")
    assert [one["strongest"] for one in concept[:3]] == [0, 0, 0]
    assert concept[3]["strongest"] > 0


def test_a_model_that_is_removed_takes_its_assessment_with_it(measuring):
    made = without(measuring, measuring.model_in_use(), 1)
    measured(measuring, made)
    folder = measuring.room.folder
    assert len(folder.assessment_files(made)) == 1
    assert measuring.ask("cora", "DELETE", f"/models/{made}").status_code == 204
    assert folder.assessment_files(made) == []
    assert without(measuring, measuring.model_in_use(), 1) == made
    assert measuring.get("rita", f"/models/{made}/worth").json()["code"] == "not_measured"


def test_the_assessment_of_a_model_removed_meanwhile_is_not_stored(tmp_path, trained_run, drawn_dataset, monkeypatch):
    from medgrape.training import assessment

    real = assessment.assess
    with reading_room(tmp_path / "room", trained_run, data=str(drawn_dataset)) as room:
        made = without(room, room.model_in_use(), 1)

        def slow(*given, **more):
            found = real(*given, **more)
            assert room.ask("cora", "DELETE", f"/models/{made}").status_code == 204
            return found

        monkeypatch.setattr(assessment, "assess", slow)
        end = measured(room, made)
        assert end["state"] == "failed"
        assert made in end["news"]
        assert list(room.room.folder.assessments.iterdir()) == []


def test_without_a_data_set_nothing_is_measured_but_the_last_assessment_is_shown(tmp_path, trained_run, drawn_dataset):
    with reading_room(tmp_path / "room", trained_run) as room:
        model = room.model_in_use()
        asked, missing = room.post("cora", f"/models/{model}/worth"), room.get("rita", f"/models/{model}/worth")
        assert (asked.status_code, asked.json()["code"]) == (409, "no_data_set")
        assert (missing.status_code, missing.json()["code"]) == (404, "not_measured")
        assert "--data" in asked.json()["detail"]
        assert "--data" in missing.json()["detail"]
    with reading_room(tmp_path / "room", trained_run, data=str(drawn_dataset)) as room:
        measured(room, model)
    with reading_room(tmp_path / "room", trained_run) as room:
        assert room.get("rita", f"/models/{model}/worth").json()["data_set"] == Dataset.load(drawn_dataset).name


def test_an_assessment_on_another_data_set_is_not_shown(tmp_path, trained_run, drawn_dataset):
    elsewhere = tmp_path / "elsewhere"
    replace(Dataset.load(drawn_dataset), name="elsewhere").save(elsewhere)
    with reading_room(tmp_path / "room", trained_run, data=str(drawn_dataset)) as room:
        model = room.model_in_use()
        measured(room, model)
    with reading_room(tmp_path / "room", trained_run, data=str(elsewhere)) as room:
        assert room.get("rita", f"/models/{model}/worth").json()["code"] == "not_measured"
        measured(room, model)
        assessment = room.get("rita", f"/models/{model}/worth").json()
        assert (assessment["data_set"], assessment["its_own"]) == ("elsewhere", False)


def test_a_data_set_with_other_classes_is_refused_at_once(tmp_path, trained_run, drawn_dataset):
    swapped = replace(Dataset.load(drawn_dataset), classes=tuple(reversed(Dataset.load(drawn_dataset).classes)))
    swapped.save(tmp_path / "swapped")
    with reading_room(tmp_path / "room", trained_run, data=str(tmp_path / "swapped")) as room:
        answer = room.post("cora", f"/models/{room.model_in_use()}/worth")
        assert (answer.status_code, answer.json()["code"]) == (409, "other_classes")
        assert room.get("cora", "/jobs").json() == []


def test_a_damaged_assessment_counts_as_not_measured(tmp_path, trained_run, drawn_dataset):
    with reading_room(tmp_path / "room", trained_run, data=str(drawn_dataset)) as room:
        model = room.model_in_use()
        room.room.folder.assessment_file(model, checksum(drawn_dataset)).write_text('{"model": 1')
        assert room.get("rita", f"/models/{model}/worth").json()["code"] == "not_measured"


def test_an_invalid_data_set_is_refused_at_the_start(tmp_path, trained_run):
    with pytest.raises(DatasetError, match="no prepared data set"):
        prepare([trained_run], RoomFolder(tmp_path / "room"), ServerSettings(port=0, data=str(tmp_path)))
    assert not (tmp_path / "room").exists()


def test_at_the_start_assessments_of_unknown_models_are_deleted(tmp_path, trained_run, drawn_dataset):
    folder = RoomFolder(tmp_path / "room")
    with reading_room(folder.root, trained_run, data=str(drawn_dataset)) as room:
        model = room.model_in_use()
        measured(room, model)
    folder.assessment_file("0" * 16, checksum(drawn_dataset)).write_text("{}")
    ready = prepare([trained_run], folder, ServerSettings(port=0, data=str(drawn_dataset)))
    ready.listening.close()
    ready.lock.release()
    assert [path.name.split(".")[0] for path in folder.assessments.iterdir()] == [model]


def test_without_login_only_the_ways_to_log_in_are_shown(tmp_path, trained_run):
    notice = "Research software, not a medical device."
    for number, (login, oidc) in enumerate([(True, {}), (False, {}), (True, {"issuer": "https://login.example.org"})]):
        with reading_room(tmp_path / f"room{number}", trained_run, login=login, oidc=oidc) as room:
            methods = room.get(None, "/session/ways").json()
        assert methods == {"login": login, "provider": bool(oidc), "version": mg.__version__, "notice": notice}
