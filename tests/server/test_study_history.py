"""Corrections can be withdrawn and redrawn, and undo and redo work for every kind of step."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading_room import corners, doubted, reading_room

from medgrape.corrections.statements import Rejection, correction_from_json
from medgrape.server.storage.events import Event
from medgrape.server.study_history import CORRECTED, REDONE, REDRAWN, UNDONE, WITHDRAWN, StudyState, state_after

LEFT, RIGHT, TOP = corners((5, 5, 40, 80)), corners((50, 5, 90, 80)), corners((5, 5, 90, 30))


class Reading:
    """Rita's study, step by step."""

    def __init__(self, room, study=None):
        self._room = room
        self.opened = room.study() if study is None else study
        self.address = f"/studies/{self.opened['id']}"

    def ask(self, path, **body):
        return self._room.post("rita", f"{self.address}/{path}", json=body)

    def step(self, path, **body):
        """The study after it."""
        answer = self.ask(path, **body)
        assert answer.status_code == 200, answer.text
        moved = answer.json()
        assert moved["after"] == moved["study"]["prediction"]
        return moved["study"]

    def now(self, at=None):
        return self._room.get("rita", self.address + ("" if at is None else f"?at={at}")).json()

    def history(self):
        return self._room.get("rita", f"{self.address}/history").json()


def result_of(study):
    """The part of a study that must be the same again."""
    return study["prediction"], study["corrections"]


def drawn_boxes(study):
    return [one["box"] for one in study["corrections"]]


@pytest.fixture
def reading(room):
    return Reading(room)


def test_the_first_of_two_boxes_is_withdrawn_as_if_it_had_never_been_drawn(reading, room):
    reading.step("boxes", box=LEFT, concept=None)
    both = reading.step("boxes", box=RIGHT, concept=None, positive=False)
    without = reading.step("corrections/0/withdraw", reason="the other lung was meant", revision=2)
    assert (without["revision"], without["can_undo"], without["can_redo"]) == (3, True, False)
    assert without["corrections"] == both["corrections"][1:]

    never = room.study("rolf", reading.opened["film"])["id"]
    alone = room.post("rolf", f"/studies/{never}/boxes", json={"box": RIGHT, "concept": None, "positive": False})
    assert without["prediction"] == alone.json()["after"]

    *_, step = reading.history()
    assert (step["kind"], step["about"], step["reason"]) == ("withdrawn", "withdrawn", "the other lung was meant")
    assert (step["correction"]["box"], step["replaced"]) == (LEFT, None)
    assert (step["before"], step["after"]) == (both["prediction"], without["prediction"])


def test_a_box_is_redrawn_in_its_place(reading):
    reading.step("boxes", box=LEFT, concept=None)
    before = reading.step("rejections", concept="active_tb")
    after = reading.step("corrections/0/redraw", box=TOP, concept=None, positive=False, reason="too wide")
    assert [one["kind"] for one in after["corrections"]] == ["not_box", "reject"]
    assert drawn_boxes(after) == [TOP, None]
    assert after["prediction"] != before["prediction"]
    *_, step = reading.history()
    assert (step["kind"], step["reason"]) == ("redrawn", "too wide")
    assert (step["correction"]["box"], step["replaced"]["box"]) == (TOP, LEFT)


WALK = [
    ("boxes", {"box": LEFT, "concept": None}),
    ("boxes", {"box": RIGHT, "concept": None}),
    ("corrections/0/redraw", {"box": TOP, "concept": None, "positive": False}),
    ("rejections", {"concept": "active_tb"}),
    ("corrections/1/withdraw", {}),
    ("corrections/1/withdraw", {}),
    ("corrections/0/withdraw", {}),
]


def test_undo_and_redo_walk_over_every_kind_of_step(reading):
    stood = [reading.opened, *(reading.step(path, **body) for path, body in WALK)]
    assert stood[-1]["corrections"] == []
    assert stood[-1]["can_undo"]
    assert stood[-1]["prediction"] == reading.opened["prediction"]
    for then in stood[-2::-1]:
        assert result_of(reading.step("undo")) == result_of(then)
    assert not reading.now()["can_undo"]
    assert reading.ask("undo").json()["code"] == "nothing_to_undo"
    for then in stood[1:]:
        assert result_of(reading.step("redo")) == result_of(then)
    assert reading.ask("redo").json()["code"] == "nothing_to_redo"
    for at, then in enumerate([*stood, *stood[-2::-1], *stood[1:]]):
        assert result_of(reading.now(at)) == result_of(then)


def test_the_history_shows_what_was_undone_and_redone(reading):
    for path, body in [*WALK, *[("undo", {})] * len(WALK), *[("redo", {})] * len(WALK)]:
        reading.step(path, **body)
    history = reading.history()
    done, undone, redone = (history[first : first + len(WALK)] for first in (0, 7, 14))
    kinds = ["corrected", "corrected", "redrawn", "corrected", "withdrawn", "withdrawn", "withdrawn"]
    assert [step["kind"] for step in done] == kinds
    assert {step["kind"] for step in undone} == {"undone"}
    assert {step["kind"] for step in redone} == {"redone"}
    for again in (undone[::-1], redone):
        for key in ("about", "correction", "replaced"):
            assert [step[key] for step in again] == [step[key] for step in done]


@pytest.mark.parametrize(
    ("path", "body"), [("corrections/0/withdraw", {}), ("corrections/0/redraw", {"box": TOP, "concept": None})]
)
def test_after_a_new_step_nothing_can_be_redone(reading, path, body):
    reading.step("boxes", box=LEFT, concept=None)
    reading.step("boxes", box=RIGHT, concept=None)
    assert reading.step("undo")["can_redo"]
    assert not reading.step(path, **body)["can_redo"]
    assert reading.ask("redo").json()["code"] == "nothing_to_redo"


def test_a_redrawn_box_with_a_mismatch_changes_nothing_until_it_is_confirmed(reading, room):
    box, claimed, check = doubted(room, reading.opened["id"])
    before = reading.step("boxes", box=LEFT, concept=None)
    asked = {"box": box, "concept": claimed}

    refused = reading.ask("corrections/0/redraw", **asked)
    assert (refused.status_code, refused.json()["code"]) == (409, "concept_mismatch")
    assert refused.json()["check"] == check
    assert reading.now() == before

    after = reading.step("corrections/0/redraw", **asked, confirmed=True)
    (correction,) = after["corrections"]
    assert (correction["confirmed"], correction["check"]) == (True, check)
    events = room.get("alma", f"/log?study={reading.opened['id']}").json()["events"]
    assert [event["kind"] for event in events] == [REDRAWN, "study.warned", CORRECTED, "study.opened"]
    assert {"number", "correction", "replaced", "reason", "revision"} < set(events[0]["body"])


def test_an_unknown_correction_number_answers_404(reading):
    empty = reading.ask("corrections/0/withdraw")
    assert (empty.status_code, empty.json()["code"]) == (404, "not_found")
    before = reading.step("rejections", concept="active_tb")
    for path, body in (("withdraw", {}), ("redraw", {"box": LEFT, "concept": None})):
        answer = reading.ask(f"corrections/1/{path}", **body)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert answer.json()["detail"].startswith("There is no correction 1")
        for number in ("-1", "first", "1e9"):
            assert reading.ask(f"corrections/{number}/{path}", **body).status_code == 422
    rejection = reading.ask("corrections/0/redraw", box=LEFT, concept=None)
    assert (rejection.status_code, rejection.json()["code"]) == (422, "bad_input")
    assert reading.now() == before


def test_an_outdated_window_cannot_withdraw_another_correction(reading):
    for box in (LEFT, RIGHT):
        reading.step("boxes", box=box, concept=None)
    after = reading.step("corrections/0/withdraw", revision=2)
    for path, body in (("withdraw", {}), ("redraw", {"box": TOP, "concept": None})):
        stale = reading.ask(f"corrections/0/{path}", revision=2, **body)
        assert (stale.status_code, stale.json()["code"], stale.json()["revision"]) == (409, "stale_study", 3)
    assert reading.now() == after


def test_nobody_withdraws_or_redraws_a_correction_of_another_user(reading, room):
    before = reading.step("boxes", box=LEFT, concept=None)
    for who, status in (("rolf", 404), ("cora", 403), ("alma", 403)):
        for path, body in (("withdraw", {}), ("redraw", {"box": TOP, "concept": None})):
            answer = room.post(who, f"{reading.address}/corrections/0/{path}", json=body)
            assert answer.status_code == status
    assert reading.now() == before


def test_after_a_restart_every_kind_of_step_is_as_it_was_and_can_still_be_undone(tmp_path, strict_run, database):
    folder = tmp_path / "room"
    with reading_room(folder, strict_run, database) as room:
        before = Reading(room)
        before.step("boxes", box=LEFT, concept=None)
        both = before.step("boxes", box=RIGHT, concept=None)
        redrawn = before.step("corrections/0/redraw", box=TOP, concept=None)
        withdrawn = before.step("corrections/1/withdraw")
        before.step("undo")
        kept, history = before.now(), before.history()
    with reading_room(folder, strict_run, database) as room:
        after = Reading(room, before.opened)
        assert (after.now(), after.history()) == (kept, history)
        assert result_of(after.step("redo")) == result_of(withdrawn)
        assert result_of(after.step("undo")) == result_of(redrawn)
        assert result_of(after.step("undo")) == result_of(both)
        assert room.get("alma", "/log/verification").json()["whole"]


walks = st.lists(st.tuples(st.sampled_from([CORRECTED, WITHDRAWN, REDRAWN, UNDONE, REDONE]), st.integers(0, 9)))


@given(walks)
def test_the_state_equals_a_stack_of_complete_lists(walk):
    stack, undone, events, now = [()], [], [], ()
    for kind, number in walk:
        if (kind in (WITHDRAWN, REDRAWN) and not now) or (kind == UNDONE and stack == [()]):
            continue
        if kind == REDONE and not undone:
            continue
        place = number % len(now) if now else 0
        said = Rejection(f"finding_{len(events)}")
        events.append(_event(kind, said, place))
        if kind == UNDONE:
            undone.append(stack.pop())
        elif kind == REDONE:
            stack.append(undone.pop())
        else:
            new = {CORRECTED: (*now, said), WITHDRAWN: now[:place] + now[place + 1 :]}
            stack.append(new.get(kind, (*now[:place], said, *now[place + 1 :])))
            undone = []
        now = stack[-1]
        state = state_after(events)
        assert (state.revision, state.corrections) == (len(events), now)
        assert (len(state.done), len(state.undone)) == (len(stack) - 1, len(undone))


@given(st.lists(st.sampled_from([CORRECTED, UNDONE, REDONE])))
def test_a_log_without_withdrawals_is_read_as_before(walk):
    events, now, undone = [], (), ()
    for kind in walk:
        if (kind == UNDONE and not now) or (kind == REDONE and not undone):
            continue
        event = _event(kind, Rejection(f"finding_{len(events)}"), None)
        events.append(event)
        if kind == UNDONE:
            now, undone = now[:-1], (*undone, now[-1])
        elif kind == REDONE:
            now, undone = (*now, undone[-1]), undone[:-1]
        else:
            now, undone = (*now, correction_from_json(event.payload["correction"])), ()
    state = state_after(events)
    assert state.corrections == now
    assert tuple(change.correction for change in state.undone) == undone
    assert bool(state.done) == bool(now)
    assert state_after([]) == StudyState()


def _event(kind, said, number):
    body = {} if kind in (UNDONE, REDONE) else {"correction": said.to_json(), "reason": None}
    body |= {} if number is None else {"number": number}
    return Event(1, "", "rita", kind, None, None, None, json.dumps(body), "", "", "")
