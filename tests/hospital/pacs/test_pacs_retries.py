"""Temporary errors and errors of one film neither stop a watch nor are final."""

import errno
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import pairwise

import pytest
from odd_pacs import odd_pacs
from pydicom import dcmread
from ward_films import study_of, uid_of
from watch_scenes import run_watch, states

from medgrape.films.decoder import DecoderLostError
from medgrape.hospital.pacs.chest_reader import ChestReader
from medgrape.hospital.pacs.connection import UnreachableError
from medgrape.hospital.pacs.watch import WatchOptions, watch


@pytest.fixture
def films(cabinet):
    return [cabinet.film(number) for number in range(2)]


@pytest.fixture
def pacs(films):
    with odd_pacs(*films) as server:
        yield server


@pytest.fixture
def options(pacs, trained_run, tmp_path):
    return WatchOptions(pacs.server, trained_run, tmp_path / "out", since="always", once=True)


class StopWatchError(Exception):
    """Ends an endless watch."""


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 1.8e9

    def time(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr("medgrape.hospital.pacs.watch.time", found)
    monkeypatch.setattr("medgrape.hospital.pacs.ledger.time", found)
    return found


def events_of(hours, clock, options):
    """Return the kind and the minute of each event of a watch that runs for some hours."""
    events, began = [], clock.now

    def wait(seconds):
        clock.now += seconds
        if clock.now - began > 3600 * hours:
            raise StopWatchError

    with pytest.raises(StopWatchError):
        watch(replace(options, once=False), lambda event: events.append((event.kind, (clock.now - began) / 60)), wait)
    return events


@pytest.mark.parametrize(
    "response", [(500, "text/plain", b"disk"), (400, "text/plain", b"no"), (403, "", b""), (200, "text/html", b"<p>")],
    ids=["failed", "refuses", "denies access", "no JSON"],
)  # fmt: skip
def test_a_series_that_the_server_cannot_show_does_not_stop_the_others_and_is_reported_once(
    response, pacs, films, options
):
    series = dcmread(films[0], stop_before_pixels=True).SeriesInstanceUID
    pacs.instead[f"{series}/instances?"] = response
    events, waits = [], []

    def wait(_):
        waits.append(len(events))
        if len(waits) == 2:
            pacs.instead.clear()
        if len(waits) == 3:
            raise StopWatchError

    with pytest.raises(StopWatchError):
        watch(replace(options, once=False), events.append, wait)
    assert [(one.kind, one.film) for one in events] == [
        ("later", ""),
        ("read", uid_of(films[1])),
        ("read", uid_of(films[0])),
    ]
    assert series in events[0].message
    assert waits == [2, 2, 3]


@pytest.mark.parametrize(("status", "news"), [(500, ["later", "read"]), (404, ["read"])])
def test_a_study_that_the_server_cannot_show_does_not_stop_the_others(status, news, pacs, films, options):
    pacs.habits = {"no relations"}
    pacs.instead[f"{study_of(films[0])}/series?"] = status, "text/plain", b""
    events, counts = run_watch(options)
    assert ([what for what, _ in events], counts) == (news, {"read": 1})


def test_a_server_that_goes_away_while_series_are_searched_is_unreachable(pacs, options):
    pacs.instead = {"/instances?": (503, "text/plain", b""), "/studies?": (503, "text/plain", b"")}
    with pytest.raises(UnreachableError):
        run_watch(options)


@pytest.mark.parametrize(
    "end", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=["full disk", "Ctrl-C"]
)
def test_an_error_that_ends_the_watch_counts_against_no_film(end, options, monkeypatch):
    def ending(*_):
        raise end

    with monkeypatch.context() as trouble:
        trouble.setattr(ChestReader, "read", ending)
        for _ in range(25):
            with pytest.raises(type(end)):
                run_watch(options)
    assert states(options.out, "attempts") == [("waiting", 0), ("waiting", 0)]
    assert run_watch(options)[1] == {"read": 2}


OUT_OF_ORDER = {
    "500": (500, None), "507": (507, None), "403": (403, None),
    "no room": (409, {"0008119A": {"vr": "SQ", "Value": [{"00081197": {"Value": [0xA701]}}]}}),
    "failure": (202, {"0008119A": {"vr": "SQ", "Value": [{"00081197": {"Value": [0x0110]}}]}}),
}  # fmt: skip


@pytest.mark.parametrize("response", OUT_OF_ORDER.values(), ids=OUT_OF_ORDER)
def test_reports_wait_for_a_store_that_is_out_of_order_for_hours(response, pacs, films, options, clock):
    pacs.films, pacs.stow = films[:1], response
    pushing = replace(options, push=True, every=3600.0)
    events = events_of(20, clock, pushing)
    assert {what for what, _ in events} == {"read", "later"}
    assert len(events) < 30
    pacs.stow = 200, None
    clock.now += 3600
    assert run_watch(replace(pushing, once=True))[0] == [("stored", uid_of(films[0]))]
    assert states(options.out) == [("read",)]


def test_films_that_the_server_lists_but_does_not_send_are_retried_after_growing_pauses(pacs, films, options, clock):
    pacs.films, pacs.retrieve = films[:1], (503, "text/plain", b"maintenance")
    events = events_of(0.2, clock, options)
    assert [what for what, _ in events] == ["later"] * len(events)
    pauses = [later - before for (_, before), (_, later) in pairwise(events)]
    assert pauses == sorted(pauses)
    assert pauses == [0.5, 0.5, 1, 2, 4]
    clock.now += 3 * 3600
    run_watch(options)
    assert states(options.out, "paused - troubled") == [("waiting", pytest.approx(4 * 3600, abs=800))]
    clock.now += 3600
    pacs.retrieve = None
    assert run_watch(options)[1] == {"read": 1}


def test_a_film_that_the_server_cannot_send_for_a_day_is_refused(pacs, films, options, clock):
    pacs.films, pacs.retrieve = films[:1], (500, "text/plain", b"disk error")
    events = events_of(26, clock, replace(options, every=3600.0))
    assert events[-1][0] == "refused"
    assert 24 * 60 <= events[-1][1] <= 25 * 60
    assert states(options.out) == [("refused",)]


def test_what_was_given_up_can_be_tried_again(pacs, films, options):
    pacs.films, pacs.stow = films[:1], (409, None)
    pushing = replace(options, push=True)
    for _ in range(5):
        counts = run_watch(pushing)[1]
    assert counts == {"unsendable": 1}
    with closing(sqlite3.connect(options.out / "ledger.db")) as rows, rows:
        rows.execute("UPDATE films SET state = 'unsent' WHERE state = 'unsendable'")
    pacs.stow = 200, None
    assert run_watch(pushing) == ([("stored", uid_of(films[0]))], {"read": 1})


def test_a_watch_that_was_off_for_days_gives_nothing_up(pacs, films, options, clock):
    pacs.films, pacs.retrieve = films[:1], (500, "text/plain", b"disk error")
    run_watch(options)
    clock.now += 3 * 86400
    assert run_watch(options)[0] == [("later", uid_of(films[0]))]
    clock.now -= 86400  # set back: nothing waits for the clock to come round again
    assert run_watch(options)[0] == [("later", uid_of(films[0]))]


@pytest.mark.parametrize(
    "fault",
    [RuntimeError("DefaultCPUAllocator: can't allocate memory"), MemoryError(), DecoderLostError("it is damaged.")],
    ids=["torch", "python", "decoder"],
)
def test_a_machine_without_free_memory_refuses_no_film(fault, pacs, films, options, clock, monkeypatch):
    pacs.films = films[:1]

    def failing(*_):
        raise fault

    with monkeypatch.context() as trouble:
        trouble.setattr(ChestReader, "read", failing)
        events = events_of(20, clock, replace(options, every=3600.0))
    assert {what for what, _ in events} == {"later"}
    clock.now += 3600
    assert run_watch(options)[1] == {"read": 1}


def test_a_film_that_kills_its_decoder_each_time_is_refused_after_a_day(pacs, films, options, clock, monkeypatch):
    pacs.films = films[:1]
    monkeypatch.setattr("medgrape.films.decoder._film_from", lambda _: json.loads(""))
    events = []
    for hour in (0, 1, 2, 3, 25):
        clock.now = 1.8e9 + 3600 * hour
        watch(options, events.append)
    assert [one.kind for one in events] == ["later"] * 4 + ["refused"]
    assert "broke the decoder" in events[0].message
    assert str(options.out) not in "".join(one.message for one in events)
