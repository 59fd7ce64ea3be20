"""Export of all boxes and readings of a room."""

import csv
import io

import pytest
from reading_room import corners, doubted

from medgrape.datasets.sources.annotated import read_folder

FIRST, SECOND, THIRD = (5, 5, 40, 60), (50, 10, 70, 30), (1, 1, 9, 9)


def draw(room, who, study, box, concept="active_tb", **more):
    said = {"box": corners(box), "concept": concept, "confirmed": True} | more
    answer = room.post(who, f"/studies/{study}/boxes", json=said)
    assert answer.status_code == 200, answer.text


def exported(room, form="coco", who="cora"):
    answer = room.post(who, f"/boxes/export?format={form}")
    assert answer.status_code == 200, answer.text
    return answer


def scene(room):
    """Two readers of one film; steps undone, redone, withdrawn and redrawn; a film that nobody said anything of."""
    film, other = room.film("rita", 1), room.film("rita", 2)
    rita, rolf = room.study("rita", film)["id"], room.study("rolf", film)["id"]
    room.study("rita", other)
    draw(room, "rita", rita, FIRST, reason="Frau Schmidt, geb. 1961")
    draw(room, "rita", rita, FIRST)
    draw(room, "rita", rita, THIRD, "obsolete_tb")
    room.post("rita", f"/studies/{rita}/undo", json={})
    draw(room, "rita", rita, SECOND, "obsolete_tb")
    room.post("rita", f"/studies/{rita}/corrections/1/withdraw", json={})
    draw(room, "rita", rita, THIRD, positive=False)
    draw(room, "rita", rita, THIRD, None)
    draw(room, "rolf", rolf, THIRD)
    said = {"box": corners(SECOND), "concept": "active_tb", "confirmed": True}
    assert room.post("rolf", f"/studies/{rolf}/corrections/0/redraw", json=said).status_code == 200
    room.post("rolf", f"/studies/{rolf}/rejections", json={"concept": "obsolete_tb"})
    return {"film": film, "other": other, "rita": rita, "rolf": rolf}


@pytest.fixture(scope="module")
def drawn(shared_room):
    return scene(shared_room)


def test_coco_has_every_box_in_force_with_reader_and_time(room):
    empty = exported(room).json()
    assert (empty["images"], empty["annotations"], empty["categories"]) == ([], [], [])
    drawn = scene(room)
    answer = exported(room)
    assert answer.headers["content-disposition"] == 'attachment; filename="medgrape-boxes.json"'
    coco = answer.json()
    names = {one["id"]: one["name"] for one in coco["categories"]}
    (image,) = coco["images"]
    assert (image["width"], image["height"]) == (96, 86)
    found = [(names[one["category_id"]], one["bbox"], one["attributes"]["reader"]) for one in coco["annotations"]]
    assert found == [
        ("active_tb", [5, 5, 35, 55], "rita"), ("obsolete_tb", [50, 10, 20, 20], "rita"),
        ("active_tb", [50, 10, 20, 20], "rolf"),
    ]  # fmt: skip
    others = [(one["kind"], names.get(one["category_id"]), one["bbox"]) for one in coco["other_annotations"]]
    assert others == [
        ("not_box", "active_tb", [1, 1, 8, 8]),
        ("box", None, [1, 1, 8, 8]),
        ("reject", "obsolete_tb", None),
    ]
    about = coco["annotations"][2]["attributes"]
    steps = room.get("rolf", f"/studies/{drawn['rolf']}/history").json()
    assert about["at"] == steps[1]["at"], "when it was redrawn"
    assert (about["role"], about["study"], about["model"]) == ("reader", drawn["rolf"], room.model_in_use())
    assert "Schmidt" not in answer.text


def test_the_export_has_the_check_and_its_confirmation(shared_room):
    film = shared_room.film("rita", 3)
    study = shared_room.study("rita", film)["id"]
    box, claimed, check = doubted(shared_room, study)
    said = {"box": box, "concept": claimed, "confirmed": True}
    assert shared_room.post("rita", f"/studies/{study}/boxes", json=said).status_code == 200
    (one,) = (one for one in exported(shared_room).json()["annotations"] if one["attributes"]["study"] == study)
    assert one["attributes"]["check"] == "warned"
    assert one["attributes"]["model_sees"] == check["dominant"] != claimed
    assert (one["attributes"]["gap"], one["attributes"]["confirmed"]) == (pytest.approx(check["gap"]), True)


def test_csv_has_a_row_for_each_mark(shared_room, drawn):
    answer = exported(shared_room, "csv")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = [row for row in csv.DictReader(io.StringIO(answer.text)) if row["film"] == drawn["film"]]
    assert [row["kind"] for row in rows] == ["box", "box", "not_box", "box", "box", "reject"]
    assert (rows[0]["x1"], rows[0]["y2"], rows[0]["confirmed"]) == ("5", "60", "yes")
    assert (rows[3]["concept"], rows[5]["x1"]) == ("all", "")


def test_a_rooms_boxes_can_be_learnt_from(shared_room, drawn, tmp_path):
    (tmp_path / "boxes.json").write_bytes(exported(shared_room).content)
    draft = read_folder(shared_room.room.folder.films, tmp_path / "boxes.json")
    (film,) = (film for film in draft.films if film.path == f"{drawn['film'][:2]}/{drawn['film']}.png")
    assert [one.concept for one in draft.boxes if one.film == film.id] == ["active_tb", "obsolete_tb", "active_tb"]
    assert draft.complaints.lines() == ()


@pytest.mark.usefixtures("drawn")
def test_only_curators_export_all_boxes_and_the_log_says_who(shared_room):
    for who, status in (("rita", 403), (None, 401)):
        assert shared_room.post(who, "/boxes/export").status_code == status
    assert shared_room.post("cora", "/boxes/export?format=docx").status_code == 422
    rows = len(exported(shared_room, "csv").text.splitlines()) - 1
    event = shared_room.get("alma", "/log?kind=boxes.exported").json()["events"][0]
    assert (event["actor"], event["body"]["format"]) == ("cora", "csv")
    assert event["body"]["counted"]["marks"] == rows >= 6


def test_boxes_of_a_removed_film_are_not_exported(shared_room):
    film = shared_room.film("rita", 4)
    draw(shared_room, "rita", shared_room.study("rita", film)["id"], FIRST)
    assert film in exported(shared_room).text
    shared_room.ask("cora", "DELETE", f"/films/{film}")
    assert film not in exported(shared_room).text


def test_every_study_is_a_row_without_data_of_the_patient(shared_room, drawn):
    answer = shared_room.post("cora", "/readings/export")
    assert answer.headers["content-disposition"] == 'attachment; filename="medgrape-readings.csv"'
    rows = {row["study"]: row for row in csv.DictReader(io.StringIO(answer.text))}
    study = shared_room.get("rolf", f"/studies/{drawn['rolf']}").json()
    row = rows[drawn["rolf"]]
    assert (row["film"], row["reader"], row["role"], row["steps"]) == (drawn["film"], "rolf", "reader", "3")
    assert row["predicted"] == max(study["prediction"], key=study["prediction"].get)
    for name, share in study["prediction"].items():
        assert float(row[f"probability_{name}"]) == pytest.approx(share, abs=1e-9)
    assert not {"sex", "age", "reason"} & row.keys()
    assert shared_room.post("rita", "/readings/export").status_code == 403
    event = shared_room.get("alma", "/log?kind=readings.exported").json()["events"][0]
    assert (event["actor"], event["body"]["counted"]) == ("cora", {"readings": len(rows)})
