"""A reading to take along, and a look at a film that leaves no study behind."""

import io
import subprocess
import sys

import numpy as np
import pypdf
import pytest
from PIL import Image
from reading_room import corners

from medgrape.feedback.reader import load

LEFT = corners((5, 5, 40, 80))
A_DAY = "private, max-age=86400, immutable"


@pytest.fixture
def corrected(shared_room):
    """A study with two steps, opened anew for each test."""
    number = np.random.default_rng().integers(10**6, 10**9)
    study = shared_room.study("rita", shared_room.film("rita", seed=int(number)))["id"]
    said = {"box": LEFT, "concept": None, "reason": "Früher schon da: <b>β</b>"}
    assert shared_room.post("rita", f"/studies/{study}/boxes", json=said).status_code == 200
    assert shared_room.post("rita", f"/studies/{study}/rejections", json={"concept": "active_tb"}).status_code == 200
    return study


def words(answer):
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/pdf"
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(answer.content)).pages)


def test_a_reading_for_programs_holds_everything_that_is_told_elsewhere(shared_room, corrected, sceptic):
    address = f"/studies/{corrected}"
    answer = shared_room.get("rita", f"{address}/reading.json")
    told = answer.json()
    study = shared_room.get("rita", address).json()
    assert told["study"] == study
    assert told["explanation"] == shared_room.get("rita", f"{address}/explanation").json()
    assert told["history"] == shared_room.get("rita", f"{address}/history").json()
    assert told["history"][0]["reason"] == "Früher schon da: <b>β</b>"
    film = shared_room.get("rita", f"/films/{study['film']}").json()
    assert told["film"] == {name: film[name] for name in ("id", "arrived_at", "facts", "sex", "age")}
    fingerprint = load(sceptic).loaded.manifest.fingerprint
    assert told["model"] == {"name": "sceptic", "version": study["model"], "fingerprint": fingerprint}
    assert told["notice"] == "Research software, not a medical device."
    assert answer.headers["content-disposition"] == f'attachment; filename="medgrape-{study["film"]}.json"'


def test_a_reading_is_printed_as_it_stands_and_as_it_stood(shared_room, corrected):
    address = f"/studies/{corrected}/reading.pdf"
    film = shared_room.get("rita", f"/studies/{corrected}").json()["film"]
    whole, before = shared_room.get("rita", address), shared_room.get("rita", f"{address}?at=1")
    assert whole.headers["content-disposition"] == f'attachment; filename="medgrape-{film}.pdf"'
    assert before.headers["content-disposition"] == f'attachment; filename="medgrape-{film}-step-1.pdf"'
    assert "Früher schon da: <b>β</b>" in words(whole)
    assert "Rejected:" in words(whole)
    assert "Rejected:" not in words(before)
    assert "after 1 of 2 steps" in words(before)
    assert "What was corrected" not in words(shared_room.get("rita", f"{address}?at=0"))
    assert shared_room.get("rita", f"{address}?at=3").status_code == 404


def test_looking_back_tells_no_later_step(shared_room, corrected):
    told = shared_room.get("rita", f"/studies/{corrected}/reading.json?at=1").json()
    assert [step["step"] for step in told["history"]] == [1]
    assert (told["study"]["at"], told["study"]["revision"]) == (1, 2)
    assert told["explanation"] == shared_room.get("rita", f"/studies/{corrected}/explanation?at=1").json()


def test_a_reading_of_somebody_else_is_for_curators_only(shared_room, corrected):
    for suffix in ("json", "pdf"):
        address = f"/studies/{corrected}/reading.{suffix}"
        assert shared_room.get("rolf", address).status_code == 404
        assert shared_room.get("cora", address).status_code == 200


def test_pictures_of_a_study_as_it_stood_are_kept_for_a_day_and_others_are_not(shared_room, corrected):
    for path in ("evidence.png", "maps/active_tb.png?side=64", "maps/active_tb.npy"):
        address = f"/studies/{corrected}/{path}"
        joined = "&" if "?" in path else "?"
        assert shared_room.get("rita", address).headers["cache-control"] == "no-store"
        assert shared_room.get("rita", f"{address}{joined}at=1").headers["cache-control"] == A_DAY
        assert shared_room.get("rita", f"{address}{joined}at=9").headers["cache-control"] == "no-store"


def test_an_explanation_tells_what_moved_the_classes_and_where_its_training_films_are(shared_room, corrected):
    address = f"/studies/{corrected}"
    study = shared_room.get("rita", address).json()
    told = shared_room.get("rita", f"{address}/explanation").json()
    found = {one["name"]: one for one in told["concepts"]}
    assert found["active_tb"]["moves"] == dict.fromkeys(study["prediction"], 0.0)
    other = next(name for name in found if name != "active_tb")
    moved = shared_room.post("rita", f"{address}/rejections", json={"concept": other}).json()
    change = {name: moved["before"][name] - moved["after"][name] for name in moved["before"]}
    assert found[other]["moves"] == pytest.approx(change, abs=1e-4)
    for exemplar in found[other]["exemplars"]:
        picture = shared_room.get("rita", f"/models/{study['model']}/exemplars/{exemplar['picture']}.png")
        assert Image.open(io.BytesIO(picture.content)).size == (exemplar["thumbnail_side"],) * 2


def test_a_film_is_looked_at_as_a_study_of_it_would_begin(shared_room):
    film, model = shared_room.film(seed=40), shared_room.model_in_use()
    first = shared_room.get("rita", f"/films/{film}/explanation").json()
    assert first == shared_room.get("rita", f"/films/{film}/explanation?model={model}").json()
    maps = shared_room.get("rita", f"/films/{film}/maps/active_tb.png?side=64&kind=disagreement&model={model}")
    study = shared_room.study("rita", film)["id"]
    assert first == shared_room.get("rita", f"/studies/{study}/explanation").json()
    same = shared_room.get("rita", f"/studies/{study}/maps/active_tb.png?side=64&kind=disagreement")
    assert maps.content == same.content
    assert maps.headers["cache-control"] == A_DAY
    unnamed = shared_room.get("rita", f"/films/{film}/maps/active_tb.png?side=64")
    assert unnamed.headers["cache-control"] == "no-store"
    for bad in (f"/films/{film}/explanation?model={'0' * 16}", f"/films/{'0' * 16}/explanation",
                f"/films/{film}/maps/nothing.png"):  # fmt: skip
        assert shared_room.get("rita", bad).status_code == 404


def test_a_model_that_was_only_looked_at_can_still_be_removed(room):
    film = room.film("rita")
    made = room.post("cora", f"/models/{room.model_in_use()}/concepts/active_tb/discard", json={"prototypes": [0]})
    model = made.json()["version"]
    events = room.get("alma", "/log?size=500").json()["events"]
    assert room.get("rita", f"/films/{film}/explanation?model={model}").status_code == 200
    assert room.get("rita", f"/films/{film}/maps/active_tb.png?model={model}&side=64").status_code == 200
    assert room.get("alma", "/log?size=500").json()["events"] == events
    assert room.get("cora", "/studies").json() == []
    assert room.get("rita", f"/films/{film}").json()["readings"] == []
    assert room.ask("cora", "DELETE", f"/models/{model}").status_code == 204
    assert room.get("rita", f"/films/{film}/explanation?model={model}").status_code == 404
    assert room.get("rita", f"/films/{film}/maps/active_tb.png?model={model}&side=64").status_code == 404


def test_a_worker_starts_without_what_only_paper_needs():
    seen = "import sys, medgrape.server.app; print(sorted({'reportlab', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True).stdout == "[]\n"
