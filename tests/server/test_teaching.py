"""Models in the room: taught as a job, curated, compared, put to use, removed."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from reading_room import corners, drawn

from medgrape.server.jobs import JobRunner

LESSON = {"name": "cavity", "description": "Thick-walled lucency in the upper lobe."}
BOX = corners((10, 10, 50, 50))


def followed(room, job, who="cora"):
    """Every piece of news of a job, until it ended."""
    with room.client.stream(
        "GET", f"/api/v1/jobs/{job}/news", headers={"Authorization": f"Bearer {room.tokens[who]}"}
    ) as news:
        assert news.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in news.iter_lines() if line]
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def taught(room, **more):
    answer = room.post("cora", "/concepts", json=LESSON | {"examples": [{"film": room.film(), "box": BOX}]} | more)
    assert answer.status_code == 202, answer.text
    return answer.json()


def test_a_finding_is_taught_as_a_job_whose_progress_can_be_followed(room):
    old = room.model_in_use()
    news = followed(room, taught(room)["id"])
    assert news[-1]["state"] == "done", news[-1]
    assert [one["progress"] for one in news] == sorted(one["progress"] for one in news)
    new = news[-1]["result"]["model"]
    assert room.model_in_use() == old
    names = [one["name"] for one in room.get("rita", f"/models/{new}/concepts").json()]
    assert names[-1] == "cavity"

    encoded = room.room.encoder.films
    before, after = room.study("rita", room.film()), room.study("rita", room.film(), model=new)
    assert after["prediction"] == before["prediction"]
    assert room.get("rita", f"/studies/{after['id']}/maps/cavity.png?side=100").status_code == 200
    assert room.room.encoder.films <= max(encoded, 1)  # both models encode alike, so the film was encoded once

    assert room.post("cora", f"/models/{new}/use").json()["in_use"]
    assert room.model_in_use() == new
    kinds = [event["kind"] for event in room.get("alma", "/log?size=500").json()["events"] if event["model"] == new]
    assert kinds[-1] == "concept.taught"
    assert "model.put_to_use" in kinds


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"name": "active_tb"}, 422, "bad_input"),
        ({"name": "Not A Name"}, 422, "bad_input"),
        ({"examples": [{"film": "0" * 16}]}, 404, "not_found"),
        ({"model": "0" * 16}, 404, "not_found"),
        ({"examples": [{"film": "nonsense"}]}, 422, "invalid_request"),
    ],
)
def test_an_invalid_lesson_is_refused_at_once(shared_room, change, status, code):
    answer = shared_room.post("cora", "/concepts", json=LESSON | change)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_box_outside_the_film_ends_the_job_with_a_message_and_no_model(shared_room):
    models = shared_room.get("rita", "/models").json()
    example = {"film": shared_room.film(), "box": corners((900, 900, 950, 950))}
    job = taught(shared_room, name="fibrosis", examples=[example])
    end = followed(shared_room, job["id"])[-1]
    assert end["state"] == "failed"
    assert "outside the film" in end["news"]
    assert str(shared_room.room.folder.root) not in end["news"]
    assert shared_room.get("rita", "/models").json() == models


def test_a_job_can_be_cancelled(shared_room, monkeypatch):
    real = JobRunner._report

    def slow(self, job, progress, news):
        time.sleep(0.2)
        return real(self, job, progress, news)

    monkeypatch.setattr(JobRunner, "_report", slow)
    job = taught(shared_room, name="scar")["id"]
    assert shared_room.post("rita", f"/jobs/{job}/cancel").status_code == 404
    assert shared_room.post("cora", f"/jobs/{job}/cancel").status_code == 200
    assert followed(shared_room, job)[-1]["state"] == "cancelled"
    assert shared_room.post("cora", f"/jobs/{job}/cancel").json()["code"] == "job_ended"
    assert "scar" not in shared_room.get("rita", "/models").text


def test_prototypes_are_listed_with_their_films_discarded_and_restored(room):
    model = room.model_in_use()
    cards = room.get("rita", f"/models/{model}/concepts/active_tb/prototypes").json()
    assert [card["number"] for card in cards] == list(range(len(cards)))
    shown = next(card["exemplar"] for card in cards if card["exemplar"] is not None)
    assert room.get("rita", f"/models/{model}/exemplars/{shown}.png").headers["content-type"] == "image/png"
    assert room.get("rita", f"/models/{model}/exemplars/99999.png").status_code == 404

    discarded = room.post("cora", f"/models/{model}/concepts/active_tb/discard", json={"prototypes": [1]}).json()
    kept = [
        card["kept"]
        for card in room.get("rita", f"/models/{discarded['version']}/concepts/active_tb/prototypes").json()
    ]
    assert kept == [True, False, *([True] * (len(cards) - 2))]
    address = f"/models/{discarded['version']}/concepts/active_tb"
    assert room.post("cora", f"{address}/discard", json={"prototypes": [1]}).json()["code"] == "bad_input"
    restored = room.post("cora", f"{address}/restore", json={"prototypes": [1], "name": "whole again"}).json()
    assert (restored["name"], restored["parent"]) == ("whole again", discarded["version"])
    compared = room.get("rita", f"/films/{room.film()}/comparison?one={model}&other={discarded['version']}").json()
    assert compared["models"] == [model, discarded["version"]]
    assert len(compared["concepts"]) == 3


def test_a_model_in_use_or_with_studies_cannot_be_removed(shared_room):
    room, model = shared_room, shared_room.model_in_use()
    made = room.post("cora", f"/models/{model}/concepts/active_tb/discard", json={"prototypes": [2]}).json()["version"]
    assert room.ask("cora", "DELETE", f"/models/{model}").json()["code"] == "model_given"
    room.post("cora", f"/models/{made}/use")
    assert room.ask("cora", "DELETE", f"/models/{made}").json()["code"] == "model_in_use"
    room.post("cora", f"/models/{model}/use")
    assert room.ask("cora", "DELETE", f"/models/{made}").status_code == 204
    assert room.get("rita", f"/models/{made}").status_code == 404
    other = room.post("cora", f"/models/{model}/concepts/active_tb/discard", json={"prototypes": [0]}).json()["version"]
    room.study("rita", room.film(), model=other)
    assert room.ask("cora", "DELETE", f"/models/{other}").json()["code"] == "model_has_studies"


def test_the_model_card_shows_training_data_and_changes(shared_room):
    card = shared_room.get("rita", f"/models/{shared_room.model_in_use()}").json()
    assert card["calibrated"]
    assert card["changes"] == ["Strict check."]
    assert card["data_set"]["checksum"]
    assert set(card["classes"]) == {"healthy", "sick_non_tb", "active_tb"}


def test_films_uploaded_together_are_encoded_in_few_batches(shared_room):
    room = shared_room.room
    films = [shared_room.upload("rita", drawn(100 + number)).json()["film"]["id"] for number in range(8)]
    batches, encoded = room.encoder.batches, room.encoder.films
    with ThreadPoolExecutor(8) as readers:
        studies = list(readers.map(lambda film: shared_room.study("rolf", film), films))
    assert len({study["id"] for study in studies}) == 8
    assert room.encoder.films - encoded <= 8
    assert room.encoder.batches - batches <= room.encoder.films - encoded
