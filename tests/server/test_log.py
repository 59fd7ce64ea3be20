"""The event log records who did what, and verification finds changes."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from reading_room import corners, reading_room
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from medgrape.server.storage.events import Anchor, Event, verify_export

BOX = {"box": corners((5, 5, 40, 80)), "concept": None}


@pytest.fixture
def busy(room):
    """A room in which something was done."""
    study = room.study()
    for _ in range(3):
        room.post("rita", f"/studies/{study['id']}/boxes", json=BOX)
    return room


def meddle(room, *statements):
    """As somebody who owns the database could: the triggers are lifted first."""
    with room.room.database.engine.execution_options(writes=True).begin() as connection:
        if room.room.database.is_sqlite:
            connection.execute(text("DROP TRIGGER events_no_update"))
            connection.execute(text("DROP TRIGGER events_no_delete"))
        else:
            connection.execute(text("ALTER TABLE events DISABLE TRIGGER ALL"))
        for statement in statements:
            connection.execute(text(statement))


def faults(room):
    verdict = room.get("alma", "/log/verification").json()
    assert verdict["whole"] == (verdict["faults"] == [])
    return verdict["faults"]


def test_the_log_has_every_correction_with_its_model_and_check(busy):
    study = busy.study("rita", busy.film(seed=3))
    busy.post("rita", f"/studies/{study['id']}/boxes", json=BOX | {"concept": "active_tb", "confirmed": True})
    event = busy.get("alma", "/log?kind=study.corrected&size=1").json()["events"][0]
    assert (event["actor"], event["model"], event["study"]) == ("rita", busy.model_in_use(), study["id"])
    assert event["body"]["correction"]["check"]["claimed"] == "active_tb"
    assert event["body"]["prediction_before"] != event["body"]["prediction_after"]
    assert faults(busy) == []


def test_the_log_is_filtered_by_user_kind_time_and_page(busy):
    everything = busy.get("alma", "/log?size=500").json()["events"]
    numbers = [event["seq"] for event in everything]
    assert numbers == list(range(len(numbers), 0, -1))
    page = busy.get("alma", "/log?size=2").json()
    older = busy.get("alma", f"/log?size=2&before={page['older']}").json()
    assert [one["seq"] for one in (*page["events"], *older["events"])] == numbers[:4]
    assert {one["actor"] for one in busy.get("alma", "/log?actor=rita").json()["events"]} == {"rita"}
    middle = everything[2]["at"]
    assert len(busy.get("alma", f"/log?since={middle}").json()["events"]) == 3
    assert busy.get("alma", f"/log?until={everything[-1]['at']}").json()["events"] == []


@pytest.mark.parametrize(
    ("deed", "fault"),
    [
        ("UPDATE events SET actor = 'rolf' WHERE seq = 4", "event 4 was altered"),
        ("UPDATE events SET body = '{}' WHERE seq = 4", "event 4 was altered"),
        ("UPDATE events SET at = '2001-01-01T00:00:00.000000Z' WHERE seq = 4", "event 4 was altered"),
        ("UPDATE events SET seal = hash WHERE seq = 4", "event 4 was written by somebody without the key"),
        ("DELETE FROM events WHERE seq = 4", "event 4 is missing"),
        ("DELETE FROM events WHERE seq = 1", "event 1 is missing"),
        ("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)", "was written last"),
        ("DELETE FROM events", "was written last"),
        ("UPDATE chain SET seq = 2", "was written last"),
    ],
)
def test_altered_and_missing_events_are_found(busy, deed, fault):
    meddle(busy, deed)
    assert any(fault in message for message in faults(busy)), faults(busy)


def test_events_removed_from_the_end_with_the_chains_end_are_found(busy):
    meddle(
        busy,
        "DELETE FROM events WHERE seq > 4",
        "UPDATE chain SET seq = 4, hash = (SELECT hash FROM events WHERE seq = 4)",
    )
    assert any("the last one in log-end" in message for message in faults(busy))


def test_a_chain_rewritten_without_the_key_is_found(busy):
    """All hashes are right again, but nobody without the key can seal them."""
    with busy.room.database.reading() as session:
        lines = [dict(row) for row in session.execute(text("SELECT * FROM events ORDER BY seq")).mappings()]
    previous, rewritten = "", []
    for line in lines:
        line["actor"] = "rolf" if line["actor"] == "rita" else line["actor"]
        bare = Event(**line | {"previous": previous, "hash": "", "seal": line["seal"]})
        previous = bare.expected_hash()
        rewritten.append(f"UPDATE events SET actor = '{line['actor']}', previous = '{bare.previous}', "
                         f"hash = '{previous}' WHERE seq = {bare.seq}")  # fmt: skip
    meddle(busy, *rewritten, f"UPDATE chain SET hash = '{previous}'")
    assert any("without the key" in message for message in faults(busy))


@pytest.mark.parametrize("deed", ["UPDATE events SET actor = 'rolf'", "DELETE FROM events WHERE seq = 2"])
def test_the_database_itself_refuses_to_change_an_event(busy, deed):
    with pytest.raises(DBAPIError, match="only ever added"), busy.room.database.writing() as session:
        session.execute(text(deed))
    assert faults(busy) == []


def test_an_exported_log_can_be_checked_anywhere(busy):
    lines = busy.post("alma", "/log/export").text.splitlines()
    verdict = verify_export(iter(lines))
    assert verdict.whole
    assert json.loads(lines[-1])["kind"] == "log.exported"
    assert verdict.head == busy.get("alma", "/log/verification").json()["head"]
    assert not verify_export(iter([*lines[:2], *lines[3:]])).whole
    assert not verify_export(iter([*lines[:2], lines[2].replace("rita", "rolf"), *lines[3:]])).whole
    assert verify_export(iter(["nonsense"])).faults == ("line 1 is no event", "there is no event in it")
    assert not verify_export(iter([lines[0].replace('"seq": 1', '"seq": null'), *lines[1:]])).whole


def test_after_a_restart_the_log_continues(tmp_path, strict_run, database):
    for opened in (1, 2):
        with reading_room(tmp_path / "room", strict_run, database) as room:
            room.film(seed=opened)
            assert faults(room) == []
    with reading_room(tmp_path / "room", strict_run, database) as room:
        arrived = room.get("alma", "/log?kind=film.arrived").json()["events"]
        assert len(arrived) == 2


def test_a_shortened_log_is_still_found_after_new_events(busy):
    meddle(
        busy,
        "DELETE FROM events WHERE seq > 4",
        "UPDATE chain SET seq = 4, hash = (SELECT hash FROM events WHERE seq = 4)",
        "UPDATE studies SET revision = 0",
    )
    for number in range(12):
        busy.film(seed=40 + number)
    assert any("the last one in log-end" in message for message in faults(busy))


def test_a_removed_anchor_is_reported_until_an_admin_accepts(busy):
    busy.room.folder.anchor.unlink()
    busy.film(seed=41)
    assert any("missing or damaged" in message for message in faults(busy))
    with busy.room.database.reading() as session:
        busy.room.store.log.accept(session)
    busy.film(seed=42)
    assert faults(busy) == []


def test_verification_succeeds_while_events_are_written(busy):
    study = busy.study("rolf", busy.film(seed=43))["id"]
    stop = threading.Event()

    def draw():
        while not stop.is_set():
            busy.post("rolf", f"/studies/{study}/boxes", json=BOX)
            busy.post("rolf", f"/studies/{study}/undo", json={})

    with ThreadPoolExecutor(2) as readers:
        working = [readers.submit(draw) for _ in range(2)]
        found = [faults(busy) for _ in range(25)]
        stop.set()
    assert [job.result() for job in working] == [None, None]
    assert found == [[]] * 25


@pytest.mark.parametrize("spoilt", [0, 1, None])
def test_the_anchor_is_read_although_one_line_is_damaged(tmp_path, spoilt):
    anchor = Anchor(tmp_path / "log-end")
    assert anchor.read() is None
    anchor.make()
    for seq in range(1, 8):
        anchor.write(seq, f"hash {seq}")
    if spoilt is not None:
        lines = anchor.path.read_bytes().splitlines(keepends=True)
        lines[spoilt] = b"\0" * 128
        anchor.path.write_bytes(b"".join(lines))
    assert anchor.read() in ((7, "hash 7"), (6, "hash 6"))
