"""Studies over HTTP: upload, read, correct, undo, restart."""

import io

import numpy as np
import pytest
from PIL import Image
from reading_room import boxed_film, corners, doubted, drawn, reading_room

from medgrape.geometry import Box
from medgrape.reader import load
from scenes import radiograph

LEFT = corners((5, 5, 40, 80))


def picture(answer):
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "image/png"
    return Image.open(io.BytesIO(answer.content))


def test_a_film_is_read_as_the_library_reads_it(room, strict_run, drawn_dataset, tmp_path):
    content, concept, box = boxed_film(drawn_dataset)
    path = tmp_path / "film.png"
    path.write_bytes(content)
    study = load(strict_run).open(path)
    there = room.study(film=room.upload("rita", content).json()["film"]["id"])

    assert there["prediction"] == pytest.approx(dict(study.prediction), abs=1e-6)
    checked = room.post("rita", f"/studies/{there['id']}/check", json={"box": corners(box), "concept": concept}).json()
    assert checked["gap"] == pytest.approx(study.check(Box(*box), concept).gap, abs=1e-5)
    explanation = room.get("rita", f"/studies/{there['id']}/explanation").json()
    assert [one["name"] for one in explanation["concepts"]] == [
        one["name"] for one in study.explain().to_json()["concepts"]
    ]
    raw = np.load(io.BytesIO(room.get("rita", f"/studies/{there['id']}/maps/{concept}.npy").content))
    row = study.evidence.concepts.index(concept)
    assert np.allclose(raw, study.evidence.mean[row].numpy(), atol=1e-5)


def test_a_box_with_a_mismatch_changes_nothing_until_it_is_confirmed(room):
    study = room.study()
    box, claimed, check = doubted(room, study["id"])

    refused = room.post("rita", f"/studies/{study['id']}/boxes", json={"box": box, "concept": claimed})
    assert refused.status_code == 409
    assert refused.json()["code"] == "concept_mismatch"
    assert refused.json()["check"] == check
    assert room.get("rita", f"/studies/{study['id']}").json() == study

    asked = {"box": box, "concept": claimed, "confirmed": True, "reason": "seen on the earlier film"}
    moved = room.post("rita", f"/studies/{study['id']}/boxes", json=asked).json()
    assert moved["before"] == study["prediction"]
    assert moved["after"] == moved["study"]["prediction"] != study["prediction"]
    (step,) = room.get("rita", f"/studies/{study['id']}/history").json()
    assert step["correction"]["confirmed"]
    assert step["correction"]["check"] == check
    assert (step["by"], step["reason"]) == ("rita", "seen on the earlier film")
    kinds = [event["kind"] for event in room.get("alma", f"/log?study={study['id']}").json()["events"]]
    assert kinds == ["study.corrected", "study.warned", "study.opened"]


def test_undo_redo_and_looking_back_are_exact(room):
    study = room.study()
    address = f"/studies/{study['id']}"
    first = room.post("rita", f"{address}/boxes", json={"box": LEFT, "concept": None}).json()["study"]
    second = room.post("rita", f"{address}/rejections", json={"concept": "active_tb"}).json()["study"]
    back = room.post("rita", f"{address}/undo", json={}).json()["study"]
    assert back["prediction"] == first["prediction"]
    assert back["corrections"] == first["corrections"]
    again = room.post("rita", f"{address}/redo", json={}).json()["study"]
    assert again["prediction"] == second["prediction"]
    assert (again["can_redo"], again["revision"]) == (False, 4)
    assert room.post("rita", f"{address}/redo", json={}).json()["code"] == "nothing_to_redo"
    for at, then in enumerate([study, first, second, first, second]):
        shown = room.get("rita", f"{address}?at={at}").json()
        assert (shown["prediction"], shown["corrections"], shown["at"]) == (then["prediction"], then["corrections"], at)
    assert room.get("rita", f"{address}?at=5").status_code == 404
    for _ in range(2):
        room.post("rita", f"{address}/undo", json={})
    assert room.post("rita", f"{address}/undo", json={}).json()["code"] == "nothing_to_undo"
    kinds = [step["kind"] for step in room.get("rita", f"{address}/history").json()]
    assert kinds == ["corrected", "corrected", "undone", "redone", "undone", "undone"]


def test_a_second_window_with_an_old_study_is_refused(room):
    study = room.study()
    address = f"/studies/{study['id']}/boxes"
    assert room.post("rita", address, json={"box": LEFT, "concept": None, "revision": 0}).status_code == 200
    stale = room.post("rita", address, json={"box": LEFT, "concept": None, "revision": 0})
    assert (stale.status_code, stale.json()["code"], stale.json()["revision"]) == (409, "stale_study", 1)


def test_two_readers_of_one_film_have_separate_studies(room):
    film = room.film("rita")
    hers, his = room.study("rita", film), room.study("rolf", film)
    assert hers["id"] != his["id"]
    room.post("rita", f"/studies/{hers['id']}/boxes", json={"box": LEFT, "concept": None})
    assert room.get("rolf", f"/studies/{his['id']}").json()["corrections"] == []
    assert room.get("rolf", f"/studies/{hers['id']}").status_code == 404
    assert room.get("cora", f"/studies/{hers['id']}").status_code == 200
    meddling = room.post("cora", f"/studies/{hers['id']}/boxes", json={"box": LEFT, "concept": None})
    assert meddling.status_code == 403
    seen = {one["reader"]: one["prediction"] for one in room.get("rolf", f"/films/{film}").json()["readings"]}
    assert seen["rita"] is None
    assert seen["rolf"] == his["prediction"]


def test_after_a_restart_a_study_is_as_it_was_and_nothing_is_encoded_again(tmp_path, strict_run, database):
    folder = tmp_path / "room"
    with reading_room(folder, strict_run, database) as before:
        study = before.study()
        before.post("rita", f"/studies/{study['id']}/boxes", json={"box": LEFT, "concept": None})
        kept = before.get("rita", f"/studies/{study['id']}").json()
        explanation = before.get("rita", f"/studies/{study['id']}/explanation").json()
        history = before.get("rita", f"/studies/{study['id']}/history").json()
        assert before.room.encoder.films == 1
    with reading_room(folder, strict_run, database) as after:
        assert after.get("rita", f"/studies/{study['id']}").json() == kept
        assert after.get("rita", f"/studies/{study['id']}/explanation").json() == explanation
        assert after.get("rita", f"/studies/{study['id']}/history").json() == history
        assert after.study(film=study["film"]) == kept
        assert after.room.encoder.films == 0


def test_a_dicom_film_is_shown_at_any_window_and_size(shared_room, chest):
    out = io.BytesIO()
    radiograph(chest, ViewPosition="PA", PatientSex="F", PatientAge="057Y").save_as(out, enforce_file_format=True)
    film = shared_room.upload("rita", out.getvalue(), "x.dcm").json()["film"]
    assert (film["sex"], film["age"], film["facts"]["view"]) == ("F", 57, "PA")
    address = f"/films/{film['id']}/picture.png"
    whole = np.asarray(picture(shared_room.get("rita", address)))
    assert whole.shape == chest.shape
    small = np.asarray(picture(shared_room.get("rita", f"{address}?side=60")))
    assert max(small.shape) == 60
    inverted = np.asarray(picture(shared_room.get("rita", f"{address}?inverted=true")))
    assert np.abs(255 - inverted.astype(int) - whole).max() <= 1
    dark = np.asarray(picture(shared_room.get("rita", f"{address}?centre=0.25&width=0.5")))
    assert (dark == 255).mean() > (whole == 255).mean()
    expected = np.clip(whole.astype(float) / 255 / 0.5, 0, 1) * 255
    assert np.abs(dark - expected).max() <= 2
    assert max(picture(shared_room.get("rita", f"/films/{film['id']}/preview.png")).size) == 256
    for bad in ("width=0", "width=nan", "side=0", "side=100000", "centre=9"):
        assert shared_room.get("rita", f"{address}?{bad}").status_code == 422


def test_maps_have_the_films_shape_and_are_transparent_where_nothing_is_seen(shared_room):
    study = shared_room.study()
    (name, *_) = [
        one["name"] for one in shared_room.get("rita", f"/studies/{study['id']}/explanation").json()["concepts"]
    ]
    for kind in ("mean", "disagreement"):
        overlay = picture(shared_room.get("rita", f"/studies/{study['id']}/maps/{name}.png?kind={kind}&side=200"))
        assert (overlay.mode, max(overlay.size)) == ("RGBA", 200)
    assert shared_room.get("rita", f"/studies/{study['id']}/maps/nothing.png").status_code == 404
    assert shared_room.get("rita", f"/studies/{study['id']}/maps/nothing.npy").status_code == 404
    evidence = picture(shared_room.get("rita", f"/studies/{study['id']}/evidence.png"))
    assert evidence.width > 1000


def test_the_same_file_is_one_film(room):
    first, second = room.upload("rita", drawn(7)), room.upload("rolf", drawn(7), "another-name.png")
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["film"]["id"] == second.json()["film"]["id"]
    assert second.json()["known"]


def test_films_are_listed_by_page_and_found(room):
    films = [room.film("rita" if number % 2 else "rolf", seed=number) for number in range(5)]
    study = room.study("rita", films[0])
    pages = [room.get("rita", f"/films?page={page}&size=2").json() for page in (1, 2, 3, 4)]
    assert [page["total"] for page in pages] == [5] * 4
    assert [one["id"] for page in pages for one in page["films"]] == films[::-1]
    assert _found(room, "unread=true") == films[:0:-1]
    assert set(_found(room, "mine=true")) == {films[1], films[3]}
    assert _found(room, f"search={films[2][:9]}") == [films[2]]
    assert set(_found(room, "search=rolf")) == {films[0], films[2], films[4]}
    likeliest = next(iter(study["prediction"]))
    assert films[0] in _found(room, f"likeliest={likeliest}")
    assert _found(room, "search=100%25_") == []
    assert _found(room, "search=%00") == films[::-1]


def test_a_film_can_be_removed_by_its_uploader_or_a_curator(room):
    film = room.film("rita")
    study = room.study("rolf", film)
    assert room.ask("rita", "DELETE", f"/films/{film}").status_code == 403
    assert room.ask("rolf", "DELETE", f"/films/{film}").status_code == 403
    files = [path for path in room.room.folder.root.rglob("*") if film in path.name]
    assert len(files) == 2
    assert room.ask("cora", "DELETE", f"/films/{film}").status_code == 204
    assert not any(path.exists() for path in files)
    assert list(room.room.folder.features.rglob("*.npy")) == []
    assert room.get("rita", f"/films/{film}").status_code == 404
    assert room.get("rolf", f"/studies/{study['id']}").status_code == 404
    own = room.film("rita", seed=1)
    assert room.ask("rita", "DELETE", f"/films/{own}").status_code == 204
    assert room.upload("rita", drawn(1)).status_code == 201


@pytest.mark.parametrize(
    ("box", "concept"),
    [
        (corners((40, 5, 5, 80)), "active_tb"),
        (corners((900, 900, 950, 950)), "active_tb"),
        (LEFT, "no_such_finding"),
        ({"x1": 1}, "active_tb"),
    ],
)
def test_an_invalid_box_is_refused_in_one_sentence(shared_room, box, concept):
    study = shared_room.study()
    for address in ("check", "boxes"):
        answer = shared_room.post("rita", f"/studies/{study['id']}/{address}", json={"box": box, "concept": concept})
        assert answer.status_code == 422
        assert answer.json()["detail"].endswith(".")


def _found(room, query):
    return [one["id"] for one in room.get("rita", f"/films?{query}").json()["films"]]
