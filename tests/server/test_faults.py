"""Faults around the server: full disk, lost database, killed decoders, altered models."""

import contextlib
import io
import os
import shutil
import subprocess
import time

import numpy as np
import psutil
import pytest
from PIL import Image
from reading_room import corners, drawn, reading_room
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from medgrape.server.jobs import SILENCE, JobRunner
from medgrape.server.storage.tables import JobRow

BOX = {"box": corners((5, 5, 40, 80)), "concept": None}


def test_a_film_that_takes_too_long_is_refused_and_the_next_one_is_read(tmp_path, strict_run):
    noise = np.random.default_rng(0).integers(0, 2**16, (5000, 5000)).astype(np.uint16)
    heavy = io.BytesIO()
    Image.fromarray(noise).save(heavy, "PNG", compress_level=1)
    with reading_room(tmp_path / "room", strict_run, film_seconds=0.4, decoders=1) as room:
        answer = room.upload("rita", heavy.getvalue())
        assert (answer.status_code, answer.json()["code"]) == (422, "film_refused")
        assert "too long" in answer.json()["detail"]
        assert room.upload("rita", drawn(1)).status_code == 201
        assert list(room.room.folder.uploads.iterdir()) == []


def test_a_killed_decoder_is_replaced(shared_room):
    shared_room.film(seed=20)
    decoders = [psutil.Process(one) for one in shared_room.room.decoder_pool.process_ids()]
    for decoder in decoders:
        decoder.kill()
    while any(decoder.status() != psutil.STATUS_ZOMBIE for decoder in decoders):
        time.sleep(0.01)
    assert shared_room.upload("rita", drawn(21)).status_code == 201


def test_an_altered_model_reads_no_film_until_it_is_restored(tmp_path, strict_run):
    run = shutil.copytree(strict_run, tmp_path / "run")
    with reading_room(tmp_path / "room", run) as room:
        study = room.study()
        room.post("rita", f"/studies/{study['id']}/boxes", json=BOX)
        kept = room.get("rita", f"/studies/{study['id']}").json()
        metrics = run / "metrics.json"
        whole = metrics.read_bytes()
        metrics.write_bytes(whole.replace(b"0", b"1", 1))

        for refused in (
            room.post("rita", f"/studies/{study['id']}/boxes", json=BOX),
            room.post("rita", "/studies", json={"film": room.film(seed=2)}),
            room.get(None, "/ready"),
        ):
            assert (refused.status_code, refused.json()["code"]) == (503, "model_unavailable")
            assert str(tmp_path) not in refused.text
        assert room.get("rita", "/films").status_code == 200
        (run / "stranger.txt").write_text("not part of the run")
        metrics.write_bytes(whole)
        assert room.get(None, "/ready").status_code == 503
        (run / "stranger.txt").unlink()
        assert room.get(None, "/ready").status_code == 200
        assert room.get("rita", f"/studies/{study['id']}").json() == kept


def test_without_database_nothing_is_acknowledged_and_nothing_is_lost(tmp_path, strict_run, postgres):
    with reading_room(tmp_path / "room", strict_run, postgres.new_database()) as room:
        study = room.study()
        room.post("rita", f"/studies/{study['id']}/boxes", json=BOX)
        kept = room.get("rita", f"/studies/{study['id']}").json()
        postgres.stop("immediate")
        try:
            for gone in (
                room.post("rita", f"/studies/{study['id']}/boxes", json=BOX),
                room.upload("rita", drawn(3)),
                room.get(None, "/ready"),
            ):
                assert (gone.status_code, gone.json()["code"]) == (503, "database_unavailable")
                assert gone.headers["retry-after"]
                assert "127.0.0.1" not in gone.text
            assert room.get(None, "/health").status_code == 200
        finally:
            postgres.start()
        assert room.get("rita", f"/studies/{study['id']}").json() == kept
        assert room.post("rita", f"/studies/{study['id']}/boxes", json=BOX).status_code == 200
        assert room.get("alma", "/log/verification").json()["whole"]


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 12 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can make a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_on_a_full_disk_nothing_is_acknowledged_and_nothing_is_lost(small_disk, strict_run):
    with reading_room(small_disk / "room", strict_run) as room:
        study = room.study()
        assert room.post("rita", f"/studies/{study['id']}/boxes", json=BOX).status_code == 200
        kept = room.get("rita", f"/studies/{study['id']}").json()
        ballast = small_disk / "ballast"
        _fill(ballast)
        refused = [room.upload("rita", drawn(50, side=400))]
        for _ in range(30):
            refused.append(room.post("rita", f"/studies/{study['id']}/boxes", json=BOX))
        assert {answer.status_code for answer in refused} <= {200, 503}
        acknowledged = sum(answer.status_code == 200 for answer in refused)
        problems = [answer.json() for answer in refused if answer.status_code == 503]
        assert problems
        assert {problem["code"] for problem in problems} <= {"disk_full", "database_unavailable"}
        ballast.unlink()
        after = room.get("rita", f"/studies/{study['id']}").json()
        assert after["revision"] == kept["revision"] + acknowledged
        assert after["corrections"][: len(kept["corrections"])] == kept["corrections"]
        assert room.upload("rita", drawn(50, side=400)).status_code == 201
        assert room.get("alma", "/log/verification").json()["whole"]


def _fill(path):
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 4096)


def test_a_job_of_a_killed_server_is_marked_as_failed(shared_room):
    room = shared_room.room
    answer = shared_room.post(
        "cora", "/concepts", json={"name": "scar", "description": "A scar.", "examples": [{"film": shared_room.film()}]}
    )
    job = answer.json()["id"]
    while shared_room.get("cora", f"/jobs/{job}").json()["state"] in ("waiting", "running"):
        time.sleep(0.05)
    with room.database.writing() as session:
        row = session.get(JobRow, job)
        row.state, row.beat_at = "running", row.beat_at - 2 * SILENCE
    state = shared_room.get("cora", f"/jobs/{job}").json()
    assert state["state"] == "failed"
    assert "start it again" in state["news"]


def test_files_that_a_killed_server_left_are_deleted(tmp_path, strict_run):
    with reading_room(tmp_path / "room", strict_run) as room:
        film = room.film()
        folder, store = room.room.folder, room.room.store
    (folder.uploads / "upload").write_bytes(b"half a film")
    orphan = folder.film("ab" * 8, ".png")
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"a film that was never written down")
    (folder.models / "deadbeef").mkdir()
    store.delete_unknown_files()
    store.close()
    assert list(folder.uploads.iterdir()) == []
    assert not orphan.exists()
    assert list(folder.models.iterdir()) == []
    assert folder.film(film, ".png").exists()


def test_after_a_failed_commit_a_film_is_complete_or_absent(shared_room, monkeypatch):
    database = shared_room.room.database
    real = Session.commit

    def lost(self):
        real(self)
        monkeypatch.setattr(Session, "commit", real)
        raise OperationalError("COMMIT", {}, Exception("connection lost"))

    monkeypatch.setattr(Session, "commit", lost)
    answer = shared_room.upload("rita", drawn(60))
    assert answer.status_code == 201, answer.text
    assert shared_room.study("rita", answer.json()["film"]["id"])["revision"] == 0

    def refused(self):
        monkeypatch.setattr(Session, "commit", real)
        self.rollback()
        raise OperationalError("COMMIT", {}, Exception("disk full"))

    monkeypatch.setattr(Session, "commit", refused)
    before = sorted(shared_room.room.folder.films.rglob("*"))
    assert shared_room.upload("rita", drawn(61)).status_code == 503
    assert sorted(path for path in shared_room.room.folder.films.rglob("*") if path.is_file()) == [
        path for path in before if path.is_file()
    ]
    assert shared_room.upload("rita", drawn(61)).status_code == 201
    assert not database._turn.locked()


def test_a_model_removed_at_the_same_moment_is_neither_opened_nor_put_to_use(room):
    model = room.model_in_use()
    made = room.post("cora", f"/models/{model}/concepts/active_tb/discard", json={"prototypes": [0]}).json()["version"]
    desk, film = room.client.app.state.services.studies, room.film()
    uncorrected = desk.uncorrected

    def slow(*about):
        study = uncorrected(*about)
        assert room.ask("cora", "DELETE", f"/models/{made}").status_code == 204
        return study

    desk.uncorrected = slow
    assert room.post("rita", "/studies", json={"film": film, "model": made}).status_code == 404
    desk.uncorrected = uncorrected
    assert room.post("cora", f"/models/{made}/use").status_code == 404
    assert room.get(None, "/ready").status_code == 200


def test_a_job_cancelled_at_its_end_has_stored_its_model_or_not(shared_room, monkeypatch):
    real = JobRunner._report

    def cancelled_when_writing(self, job, progress, news):
        if news == "writing the model":
            with self._room.database.writing() as session:
                session.get_one(JobRow, job).cancelled = True
        return real(self, job, progress, news)

    monkeypatch.setattr(JobRunner, "_report", cancelled_when_writing)
    models = shared_room.get("rita", "/models").json()
    lesson = {"name": "late", "description": "A late one.", "examples": [{"film": shared_room.film()}]}
    job = shared_room.post("cora", "/concepts", json=lesson).json()["id"]
    while (state := shared_room.get("cora", f"/jobs/{job}").json())["state"] in ("waiting", "running"):
        time.sleep(0.05)
    assert state["state"] == "cancelled"
    assert shared_room.get("rita", "/models").json() == models
