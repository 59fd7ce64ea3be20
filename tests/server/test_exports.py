"""Exports of a reading, and explanations of films without a study."""

import io
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pypdf
import pytest
from PIL import Image
from pydicom import dcmread
from pydicom.uid import generate_uid
from reading_room import corners

from medgrape.reader import load
from scenes import SECRET, planted

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


def test_the_json_export_has_everything_that_other_addresses_show(shared_room, corrected, strict_run):
    address = f"/studies/{corrected}"
    answer = shared_room.get("rita", f"{address}/reading.json")
    reading = answer.json()
    study = shared_room.get("rita", address).json()
    assert reading["study"] == study
    assert reading["explanation"] == shared_room.get("rita", f"{address}/explanation").json()
    assert reading["history"] == shared_room.get("rita", f"{address}/history").json()
    assert reading["history"][0]["reason"] == "Früher schon da: <b>β</b>"
    film = shared_room.get("rita", f"/films/{study['film']}").json()
    assert reading["film"] == {name: film[name] for name in ("id", "arrived_at", "facts", "sex", "age")}
    fingerprint = load(strict_run).loaded.manifest.fingerprint
    assert reading["model"] == {"name": "strict_run", "version": study["model"], "fingerprint": fingerprint}
    assert reading["notice"] == "Research software, not a medical device."
    assert answer.headers["content-disposition"] == f'attachment; filename="medgrape-{study["film"]}.json"'


def test_a_reading_is_printed_in_its_present_and_in_a_past_state(shared_room, corrected):
    address = f"/studies/{corrected}/reading.pdf"
    film = shared_room.get("rita", f"/studies/{corrected}").json()["film"]
    whole, before = shared_room.get("rita", address), shared_room.get("rita", f"{address}?at=1")
    assert whole.headers["content-disposition"] == f'attachment; filename="medgrape-{film}.pdf"'
    assert before.headers["content-disposition"] == f'attachment; filename="medgrape-{film}-step-1.pdf"'
    assert "Früher schon da: <b>β</b>" in words(whole)
    assert "Rejected:" in words(whole)
    assert "Rejected:" not in words(before)
    assert "after 1 of 2 steps" in words(before)
    assert "Corrections" not in words(shared_room.get("rita", f"{address}?at=0"))
    assert shared_room.get("rita", f"{address}?at=3").status_code == 404


def test_the_export_of_a_past_step_has_no_later_step(shared_room, corrected):
    reading = shared_room.get("rita", f"/studies/{corrected}/reading.json?at=1").json()
    assert [step["step"] for step in reading["history"]] == [1]
    assert (reading["study"]["at"], reading["study"]["revision"]) == (1, 2)
    assert reading["explanation"] == shared_room.get("rita", f"/studies/{corrected}/explanation?at=1").json()


def test_only_curators_export_a_reading_of_another_user(shared_room, corrected):
    for suffix in ("json", "pdf"):  # DICOM is another story: this film came as a picture
        address = f"/studies/{corrected}/reading.{suffix}"
        assert shared_room.get("rolf", address).status_code == 404
        assert shared_room.get("cora", address).status_code == 200


def test_pictures_of_past_steps_are_cached_for_a_day_and_others_are_not(shared_room, corrected):
    for path in ("evidence.png", "maps/active_tb.png?side=64", "maps/active_tb.npy"):
        address = f"/studies/{corrected}/{path}"
        joined = "&" if "?" in path else "?"
        assert shared_room.get("rita", address).headers["cache-control"] == "no-store"
        assert shared_room.get("rita", f"{address}{joined}at=1").headers["cache-control"] == A_DAY
        assert shared_room.get("rita", f"{address}{joined}at=9").headers["cache-control"] == "no-store"


def test_an_explanation_shows_what_moved_the_classes_and_its_training_films(shared_room, corrected):
    address = f"/studies/{corrected}"
    study = shared_room.get("rita", address).json()
    explanation = shared_room.get("rita", f"{address}/explanation").json()
    found = {one["name"]: one for one in explanation["concepts"]}
    assert found["active_tb"]["moves"] == dict.fromkeys(study["prediction"], 0.0)
    other = next(name for name in found if name != "active_tb")
    moved = shared_room.post("rita", f"{address}/rejections", json={"concept": other}).json()
    change = {name: moved["before"][name] - moved["after"][name] for name in moved["before"]}
    assert found[other]["moves"] == pytest.approx(change, abs=1e-4)
    for exemplar in found[other]["exemplars"]:
        picture = shared_room.get("rita", f"/models/{study['model']}/exemplars/{exemplar['picture']}.png")
        assert Image.open(io.BytesIO(picture.content)).size == (exemplar["thumbnail_side"],) * 2


def test_the_explanation_of_a_film_equals_that_of_a_new_study(shared_room):
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


def test_a_model_without_studies_can_be_removed_after_its_explanations_were_shown(room):
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


def test_a_worker_starts_without_importing_the_pdf_libraries():
    seen = "import sys, medgrape.server.app; print(sorted({'reportlab', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.fixture
def dicom_study(shared_room, chest):
    """A study of a DICOM film whose header names its patient everywhere, with a box."""
    content = io.BytesIO()
    said = {"PatientOrientation": ["R", "F"], "StudyInstanceUID": generate_uid(), "SeriesInstanceUID": generate_uid()}
    planted(chest + np.random.default_rng().integers(0, 9, chest.shape, np.uint16), **said).save_as(
        content, enforce_file_format=True
    )
    film = shared_room.upload("rita", content.getvalue(), "film.dcm").json()["film"]["id"]
    study = shared_room.study("rita", film)["id"]
    box = {"box": LEFT, "concept": None}
    assert shared_room.post("rita", f"/studies/{study}/boxes", json=box).status_code == 200
    return study


def test_the_dicom_export_has_the_film_that_the_server_stores(shared_room, dicom_study, tmp_path):
    answer = shared_room.get("rita", f"/studies/{dicom_study}/reading.dcm.zip")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"].endswith('.dcm.zip"')
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
        assert sorted(packed.namelist()) == ["boxes.dcm", "film.dcm", "maps.dcm", "report.dcm"]
        packed.extractall(tmp_path)
    files = {path.name: dcmread(path) for path in tmp_path.iterdir()}
    assert len({one.StudyInstanceUID for one in files.values()}) == 1
    assert {one.PatientIdentityRemoved for one in files.values()} == {"YES"}
    for path in tmp_path.iterdir():
        assert SECRET.encode() not in path.read_bytes()
        assert path.name == "film.dcm" or not errors(path), path.name
    drawn = files["boxes.dcm"].GraphicAnnotationSequence[0].GraphicObjectSequence[0]
    columns = files["film.dcm"].Columns
    mirrored = [columns - 40, 5, columns - 5, 5, columns - 5, 80, columns - 40, 80, columns - 40, 5]
    assert list(drawn.GraphicData) == mirrored
    assert "rita^" in str(files["report.dcm"]), "the observer"


def test_a_film_uploaded_as_a_picture_has_no_dicom_export(shared_room, corrected):
    answer = shared_room.get("rita", f"/studies/{corrected}/reading.dcm.zip")
    assert (answer.status_code, answer.json()["code"]) == (422, "no_dicom_film")
    assert answer.json()["detail"].startswith("The film is not a DICOM file")


def test_the_dicom_export_of_a_past_step_has_no_later_boxes(shared_room, dicom_study):
    first = shared_room.get("rita", f"/studies/{dicom_study}/reading.dcm.zip?at=0")
    with zipfile.ZipFile(io.BytesIO(first.content)) as packed:
        assert "boxes.dcm" not in packed.namelist()
    assert shared_room.get("rolf", f"/studies/{dicom_study}/reading.dcm.zip").status_code == 404
    assert shared_room.get("cora", f"/studies/{dicom_study}/reading.dcm.zip").status_code == 200


def errors(path):
    """What dciodvfy refuses; nothing where it is not installed."""
    if shutil.which("dciodvfy") is None:
        return []
    said = subprocess.run(["dciodvfy", path], capture_output=True, text=True)
    return [line for line in (said.stdout + said.stderr).splitlines() if line.startswith(("Error", "Abort"))]
