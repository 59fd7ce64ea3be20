"""What fails for a while, or for one film, must neither stop a watch nor count as an answer for good."""

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
from watch_scenes import heard, states

from medgrape.films.decoder import DecoderLostError
from medgrape.hospital.pacs.chest_reader import ChestReader
from medgrape.hospital.pacs.connection import AwayError
from medgrape.hospital.pacs.watch import WatchOrder, watch


@pytest.fixture
def films(cabinet):
    return [cabinet.film(number) for number in range(2)]


@pytest.fixture
def pacs(films):
    with odd_pacs(*films) as server:
        yield server


@pytest.fixture
def order(pacs, trained_run, tmp_path):
    return WatchOrder(pacs.server, trained_run, tmp_path / "out", since="always", once=True)


class EnoughError(Exception):
    """A test has seen what it wanted."""


class Clock:
    """Stands still until somebody sets it."""

    def __init__(self):
        self.now = 1.8e9

    def time(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr("medgrape.hospital.pacs.watch.time", found)
    monkeypatch.setattr("medgrape.hospital.pacs.ledger.time", found)
    monkeypatch.setattr("medgrape.hospital.pacs.watch.time", found)
    return found


def tried_through(hours, clock, order):
    """What is told, and when in minutes, where somebody looks every half a minute for some hours."""
    heard_at, began = [], clock.now

    def wait(seconds):
        clock.now += seconds
        if clock.now - began > 3600 * hours:
            raise EnoughError

    with pytest.raises(EnoughError):
        watch(replace(order, once=False), lambda one: heard_at.append((one.what, (clock.now - began) / 60)), wait)
    return heard_at


@pytest.mark.parametrize(
    "said", [(500, "text/plain", b"disk"), (400, "text/plain", b"no"), (403, "", b""), (200, "text/html", b"<p>")],
    ids=["in trouble", "refuses", "bars", "babbles"],
)  # fmt: skip
def test_a_series_that_the_server_cannot_show_holds_up_no_other_and_is_told_once(said, pacs, films, order):
    series = dcmread(films[0], stop_before_pixels=True).SeriesInstanceUID
    pacs.instead[f"{series}/instances?"] = said
    told, waits = [], []

    def wait(_):
        waits.append(len(told))
        if len(waits) == 2:
            pacs.instead.clear()
        if len(waits) == 3:
            raise EnoughError

    with pytest.raises(EnoughError):
        watch(replace(order, once=False), told.append, wait)
    assert [(one.what, one.film) for one in told] == [
        ("later", ""),
        ("read", uid_of(films[1])),
        ("read", uid_of(films[0])),
    ]
    assert series in told[0].words
    assert waits == [2, 2, 3]


@pytest.mark.parametrize(("status", "news"), [(500, ["later", "read"]), (404, ["read"])])
def test_so_does_a_study_of_a_server_that_is_asked_study_by_study(status, news, pacs, films, order):
    pacs.habits = {"no relations"}
    pacs.instead[f"{study_of(films[0])}/series?"] = status, "text/plain", b""
    told, counts = heard(order)
    assert ([what for what, _ in told], counts) == (news, {"read": 1})


def test_a_server_that_goes_away_while_series_are_looked_into_is_away(pacs, order):
    pacs.instead = {"/instances?": (503, "text/plain", b""), "/studies?": (503, "text/plain", b"")}
    with pytest.raises(AwayError):
        heard(order)


@pytest.mark.parametrize(
    "end", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=["full disk", "Ctrl-C"]
)
def test_a_watch_that_says_why_it_ends_holds_that_against_no_film(end, order, monkeypatch):
    def ending(*_):
        raise end

    with monkeypatch.context() as trouble:
        trouble.setattr(ChestReader, "read", ending)
        for _ in range(25):
            with pytest.raises(type(end)):
                heard(order)
    assert states(order.out, "attempts") == [("waiting", 0), ("waiting", 0)]
    assert heard(order)[1] == {"read": 2}


OUT_OF_ORDER = {
    "500": (500, None), "507": (507, None), "403": (403, None),
    "no room": (409, {"0008119A": {"vr": "SQ", "Value": [{"00081197": {"Value": [0xA701]}}]}}),
    "failure": (202, {"0008119A": {"vr": "SQ", "Value": [{"00081197": {"Value": [0x0110]}}]}}),
}  # fmt: skip


@pytest.mark.parametrize("said", OUT_OF_ORDER.values(), ids=OUT_OF_ORDER)
def test_reports_wait_for_a_store_that_is_out_of_order_for_hours(said, pacs, films, order, clock):
    pacs.films, pacs.stow = films[:1], said
    pushing = replace(order, push=True, every=3600.0)
    told = tried_through(20, clock, pushing)
    assert {what for what, _ in told} == {"read", "later"}
    assert len(told) < 30
    pacs.stow = 200, None
    clock.now += 3600
    assert heard(replace(pushing, once=True))[0] == [("stored", uid_of(films[0]))]
    assert states(order.out) == [("read",)]


def test_films_wait_for_a_server_that_lists_but_does_not_give_them_and_ever_longer(pacs, films, order, clock):
    pacs.films, pacs.retrieve = films[:1], (503, "text/plain", b"maintenance")
    told = tried_through(0.2, clock, order)
    assert [what for what, _ in told] == ["later"] * len(told)
    pauses = [later - before for (_, before), (_, later) in pairwise(told)]
    assert pauses == sorted(pauses)
    assert pauses == [0.5, 0.5, 1, 2, 4]
    clock.now += 3 * 3600
    heard(order)
    assert states(order.out, "paused - troubled") == [("waiting", pytest.approx(4 * 3600, abs=800))]
    clock.now += 3600
    pacs.retrieve = None
    assert heard(order)[1] == {"read": 1}


def test_a_film_that_the_server_cannot_give_for_a_day_is_given_up(pacs, films, order, clock):
    pacs.films, pacs.retrieve = films[:1], (500, "text/plain", b"disk error")
    told = tried_through(26, clock, replace(order, every=3600.0))
    assert told[-1][0] == "refused"
    assert 24 * 60 <= told[-1][1] <= 25 * 60
    assert states(order.out) == [("refused",)]


def test_what_was_given_up_can_be_tried_again(pacs, films, order):
    pacs.films, pacs.stow = films[:1], (409, None)
    pushing = replace(order, push=True)
    for _ in range(5):
        counts = heard(pushing)[1]
    assert counts == {"unsendable": 1}
    with closing(sqlite3.connect(order.out / "ledger.db")) as rows, rows:
        rows.execute("UPDATE films SET state = 'unsent' WHERE state = 'unsendable'")
    pacs.stow = 200, None
    assert heard(pushing) == ([("stored", uid_of(films[0]))], {"read": 1})


def test_one_bad_day_of_a_watch_that_was_off_gives_nothing_up(pacs, films, order, clock):
    pacs.films, pacs.retrieve = films[:1], (500, "text/plain", b"disk error")
    heard(order)
    clock.now += 3 * 86400
    assert heard(order)[0] == [("later", uid_of(films[0]))]
    clock.now -= 86400  # set back: nothing waits for the clock to come round again
    assert heard(order)[0] == [("later", uid_of(films[0]))]


@pytest.mark.parametrize(
    "fault",
    [RuntimeError("DefaultCPUAllocator: can't allocate memory"), MemoryError(), DecoderLostError("it is damaged.")],
    ids=["torch", "python", "decoder"],
)
def test_a_machine_in_distress_refuses_no_film(fault, pacs, films, order, clock, monkeypatch):
    pacs.films = films[:1]

    def failing(*_):
        raise fault

    with monkeypatch.context() as trouble:
        trouble.setattr(ChestReader, "read", failing)
        told = tried_through(20, clock, replace(order, every=3600.0))
    assert {what for what, _ in told} == {"later"}
    clock.now += 3600
    assert heard(order)[1] == {"read": 1}


def test_a_film_that_kills_its_decoder_each_time_is_refused_after_a_day(pacs, films, order, clock, monkeypatch):
    pacs.films = films[:1]
    monkeypatch.setattr("medgrape.films.decoder._film_from", lambda _: json.loads(""))
    told = []
    for hour in (0, 1, 2, 3, 25):
        clock.now = 1.8e9 + 3600 * hour
        watch(order, told.append)
    assert [one.what for one in told] == ["later"] * 4 + ["refused"]
    assert "broke the decoder" in told[0].words
    assert str(order.out) not in "".join(one.words for one in told)
