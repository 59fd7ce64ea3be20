"""Server processes: start, kill, restart."""

import io
import signal
import socket
import subprocess
import sys
import time

import pytest
from PIL import Image
from reading_room import reading_room

from benchmarks.server import Order, bench_server
from benchmarks.server_kills import kill_again_and_again
from benchmarks.server_load import crowd
from benchmarks.server_under_test import ServerUnderTest, server
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.film import draw
from medgrape.server.process import ServeError, prepare
from medgrape.server.room import MismatchedRoomError, RoomFolder, RoomStore
from medgrape.server.settings import ServerSettings


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def films(count=4):
    found = []
    for drawing in plan("tb", count, seed=1):
        out = io.BytesIO()
        Image.fromarray(draw(drawing, 200).pixels).save(out, "PNG")
        found.append(out.getvalue())
    return found


def ended(ready):
    ready.listening.close()
    ready.lock.release()


@pytest.mark.slow  # tests/page kills a server, too
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_no_acknowledged_step_is_missing_after_kills_and_every_study_is_as_it_was(
    tmp_path, strict_run, database, request
):
    url, workers = "", 1
    if database == "postgresql":
        url, workers = request.getfixturevalue("postgres").new_database(), 2
    with server(strict_run, tmp_path, url, port=free_port(), workers=workers) as (tested, admin):
        found = kill_again_and_again(tested, admin, films(), kills=2, seed=3)
    assert found.acknowledged > 4
    assert (found.missing, found.refused, found.whole) == (0, 0, True)
    assert found.worker_replaced is not None


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_no_acknowledged_step_is_lost_in_twenty_kills_and_ten_thousand_requests(strict_run, database):
    broken = [one for one in bench_server(Order(strict_run, database)) if not one.kept]
    assert broken == []


@pytest.mark.slow
def test_many_readers_at_once_meet_no_error(tmp_path, strict_run):
    with server(strict_run, tmp_path, "", port=free_port()) as (_, admin):
        assert crowd(admin, films(), readers=12, boxes=3, pause=0.05, name="reader").errors == 0


def test_a_room_with_the_wrong_database_does_not_start_and_loses_nothing(tmp_path, strict_run):
    room = tmp_path / "room"
    with reading_room(room, strict_run) as opened:
        film = opened.film()
        kept = opened.room.folder.film(film, ".png")
    elsewhere = ServerSettings(database=f"sqlite:///{tmp_path / 'other.db'}", port=0)
    with pytest.raises(MismatchedRoomError, match="do not belong together"):
        prepare([strict_run], RoomFolder(room), elsewhere)
    assert kept.exists()
    ended(prepare([strict_run], RoomFolder(room), ServerSettings(port=0)))
    assert kept.exists()


def test_only_one_server_can_use_a_room(tmp_path, strict_run):
    first = prepare([strict_run], RoomFolder(tmp_path / "room"), ServerSettings(port=0))
    with pytest.raises(ServeError, match="Another server"):
        prepare([strict_run], RoomFolder(tmp_path / "room"), ServerSettings(port=0))
    ended(first)
    ended(prepare([strict_run], RoomFolder(tmp_path / "room"), ServerSettings(port=0)))


def test_a_taken_port_is_reported_before_anything_changes(tmp_path, strict_run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = ServerSettings(port=taken.getsockname()[1])
        with pytest.raises(ServeError, match="choose another"):
            prepare([strict_run], RoomFolder(tmp_path / "room"), settings)


def test_a_room_can_be_moved_with_its_models(tmp_path, strict_run):
    with reading_room(tmp_path / "room", strict_run) as before:
        address = f"/models/{before.model_in_use()}/concepts/active_tb/discard"
        made = before.post("cora", address, json={"prototypes": [1]}).json()["version"]
        before.post("cora", f"/models/{made}/use")
        study = before.study()
    (tmp_path / "room").rename(tmp_path / "elsewhere")
    with reading_room(tmp_path / "elsewhere", strict_run) as after:
        assert after.model_in_use() == made
        assert after.study(film=study["film"]) == study


def test_the_response_to_a_correction_equals_the_study_read_afterwards(tmp_path, strict_run):
    with reading_room(tmp_path / "room", strict_run) as room:
        study = room.study()
        response = room.post("rita", f"/studies/{study['id']}/rejections", json={"concept": None}).json()["study"]
        assert room.get("rita", f"/studies/{study['id']}").json() == response
        assert response["changed_at"] > study["changed_at"]


@pytest.mark.parametrize("content", [b"this is no database", None])
def test_an_invalid_database_file_is_reported_in_one_sentence(tmp_path, content):
    path = tmp_path / "room.db"
    path.mkdir() if content is None else path.write_bytes(content * 100)
    with pytest.raises(ValueError, match="cannot be used"):
        RoomStore.ready(RoomFolder(tmp_path / "room"), ServerSettings(database=f"sqlite:///{path}"))


def test_a_server_prints_its_address_and_stops_on_a_signal(tmp_path, strict_run):
    command = [
        sys.executable,
        "-m",
        "medgrape",
        "serve",
        str(strict_run),
        "--room",
        str(tmp_path / "room"),
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        first = process.stdout.readline()
        said = [process.stdout.readline() for _ in range(3)]
        port = int(first.split()[2].rpartition(":")[2])
        tested = ServerUnderTest(strict_run, tmp_path / "room", "", port)
        while not tested.is_ready():
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert "http://127.0.0.1:" in first
    assert "medgrape.db" in said[0]
    assert "No login" in said[1]
    assert "not a medical device" in said[2]
