"""Mishaps of an ordinary week: tokens that run out, ledgers in use, full disks, large files, objects tidied away."""

import json
import shutil
import sqlite3
import warnings
from contextlib import closing
from dataclasses import replace

import pytest
from odd_pacs import odd_pacs
from pydicom import config
from ward_films import uid_of
from watch_scenes import heard, states

from medgrape.errors import UserError
from medgrape.hospital.pacs import ledger
from medgrape.hospital.pacs.connection import BarredError, RefusalError, SecretError
from medgrape.hospital.pacs.header import header_of
from medgrape.hospital.pacs.ledger import opened
from medgrape.hospital.pacs.query import ListedFilm, ListedSeries
from medgrape.hospital.pacs.watch import WatchOrder, watch
from scenes import SECRET


class EnoughError(Exception):
    """A test has seen what it wanted."""


@pytest.fixture
def films(cabinet):
    return [cabinet.film(number) for number in range(3)]


@pytest.fixture
def pacs(films, tmp_path, monkeypatch):
    """A PACS called clinic, for whoever stands in this test's folder; a token is wanted there."""
    monkeypatch.chdir(tmp_path)
    with odd_pacs(*films) as server:
        (tmp_path / "pacs.toml").write_text(f'[servers.clinic]\nurl = "{server.server.settings.url}"\n')
        (tmp_path / "token").write_text("a token")
        yield server


@pytest.fixture
def order(pacs, trained_run, tmp_path):
    settings = pacs.server.settings.overridden(token_file=str(tmp_path / "token"))
    return WatchOrder(replace(pacs.server, settings=settings), trained_run, tmp_path / "out", since="always", once=True)


def answers(status, kind="text/html", body=b"<p>"):
    return lambda pacs, _: pacs.instead.update({"?": (status, kind, body)})


def clear(pacs, token):
    pacs.instead.clear()
    token.write_text("the next one")


TROUBLES = {
    "its token ran out": answers(401),
    "it shows a page for maintenance": answers(200),
    "it sends us to a page to log in": answers(302),
    "it forgot its address": answers(404),
    "the token is just being renewed": lambda _, token: token.write_text(""),
}


@pytest.mark.parametrize("begins", TROUBLES.values(), ids=TROUBLES)
def test_a_watch_that_went_well_once_waits_out_whatever_its_server_says_and_tells_it_once(
    begins, pacs, films, order, tmp_path
):
    pacs.films, told, waits = films[:1], [], []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 1:
            begins(pacs, tmp_path / "token")
        if len(waits) == 4:
            clear(pacs, tmp_path / "token")
            pacs.films = films[:2]
        if len(waits) == 5:
            raise EnoughError

    with pytest.raises(EnoughError):
        watch(replace(order, once=False, every=7.0), lambda news: told.append(news.what), wait)
    assert told == ["read", "away", "read", "back"]
    assert waits == [7.0, 1.0, 2.0, 4.0, 7.0]
    assert states(order.out, "attempts") == [("read", 0), ("read", 0)]


@pytest.mark.parametrize(
    ("begins", "error"),
    [(answers(401), BarredError), (answers(200), RefusalError), (lambda _, token: token.write_text(""), SecretError)],
    ids=["barred", "no DICOMweb", "no token"],
)  # fmt: skip
def test_a_watch_that_never_went_well_is_set_up_wrongly_and_says_so_at_once(begins, error, pacs, order, tmp_path):
    begins(pacs, tmp_path / "token")
    with pytest.raises(error):
        watch(replace(order, once=False), lambda _: None, lambda _: pytest.fail("it waits"))


def test_a_second_trouble_is_told_beside_the_first(pacs, films, order):
    pacs.films, told, waits = films[:1], [], []

    def wait(_):
        waits.append(len(told))
        pacs.instead["?"] = (503 if len(waits) < 3 else 401), "text/plain", b""
        if len(waits) == 5:
            raise EnoughError

    with pytest.raises(EnoughError):
        watch(replace(order, once=False), lambda news: told.append(news.words), wait)
    assert ["HTTP 503" in told[1], "HTTP 401" in told[2], len(told)] == [True, True, 3]


@pytest.fixture
def used(pacs, films, order):  # noqa: ARG001 (the films lie there)
    """A ledger that somebody else is about to write into."""
    heard(order)
    with closing(sqlite3.connect(order.out / "ledger.db", isolation_level=None)) as rows:
        yield rows


def test_a_ledger_in_use_is_told_as_that_when_a_watch_begins_and_while_it_goes_on(
    used, order, cabinet, pacs, monkeypatch
):
    monkeypatch.setattr(ledger, "_BUSY", 0.05)
    used.execute("BEGIN IMMEDIATE")
    with pytest.raises(UserError, match=r"ledger\.db is in use by another program; close that and start again\."):
        heard(order)
    used.execute("ROLLBACK")
    pacs.films.append(cabinet.film(3))
    with pytest.raises(UserError, match="is in use by another program"):
        watch(order, lambda _: used.execute("BEGIN IMMEDIATE"))
    used.execute("ROLLBACK")
    assert heard(order)[1] == {"read": 4}


def test_a_ledger_on_a_full_disk_is_told_as_that_and_what_it_held_stays(pacs, films, order):
    assert len(pacs.films) == len(films) == heard(order)[1]["read"]
    listed = ListedSeries("1.2", "1.3", "CR", "", "", 1)
    many = [ListedFilm("1.2", "1.3", f"1.4.{number}") for number in range(9999)]

    def fill():
        with opened(order.out / "ledger.db") as rows:
            rows._rows.execute("PRAGMA max_page_count = 1")  # that is: as many as there are
            rows.note(listed, many)

    with pytest.raises(UserError, match="cannot be opened or written"):
        fill()
    assert states(order.out) == [("read",)] * 3


def test_what_ends_a_watch_is_told_even_where_the_ledger_cannot_be_written_either(
    used, order, cabinet, pacs, monkeypatch
):
    def full(*_):
        used.execute("BEGIN IMMEDIATE")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger, "_BUSY", 0.05)
    monkeypatch.setattr("medgrape.hospital.pacs.watch.fetch", full)
    pacs.films.append(cabinet.film(3))
    with pytest.raises(OSError, match="No space left"):
        heard(order)


def refusing(pacs, number, status):
    """The PACS says so to the file of this number, and takes the others."""
    usual, sent = pacs.usual_answer, []

    def answer(method, address):
        sent.append(address)
        return (status, "text/plain", b"") if len(sent) == number else usual(method, address)

    pacs.usual_answer = answer


@pytest.mark.parametrize("status", [413, 404, 302])
def test_a_file_that_the_server_will_not_have_holds_up_no_other(status, pacs, films, medgrape):
    refusing(pacs, 2, status)
    code, told, _ = medgrape("pacs", "push", "clinic", *films, "--json")
    files = json.loads(told)["files"]
    assert (code, [one["accepted"] for one in files]) == (1, [True, False, True])
    assert f"HTTP {status}" in files[1]["reason"]


@pytest.mark.parametrize("status", [503, 401])
def test_what_was_stored_before_the_server_went_away_is_told(status, pacs, films, medgrape):
    refusing(pacs, 2, status)
    code, told, complaint = medgrape("pacs", "push", "clinic", *films)
    assert (code, told.strip()) == (2, f"accepted: {films[0]}")
    assert f"HTTP {status}" in complaint
    refusing(pacs, 2, status)
    code, told, _ = medgrape("pacs", "push", "clinic", *films, "--json")
    assert (code, [one["file"] for one in json.loads(told)["files"]]) == (2, [str(films[0])])


def test_a_study_without_films_is_refused_with_what_to_do(pacs, films, medgrape):
    pacs.films = films[:1]
    study = header_of(films[0]).study
    code, told, _ = medgrape("pacs", "pull", "clinic", "1.2.3.4.5", study, "--json")
    assert (code, json.loads(told)["fetched"]) == (1, 1)
    reason = "clinic has no CR or DX film of it; see --modality."
    assert json.loads(told)["refused"] == [{"film": "study 1.2.3.4.5", "reason": reason}]
    code, told, _ = medgrape("pacs", "pull", "clinic", study, "--modality", "CT")
    assert (code, "has no CT film of it" in told) == (1, True)


def test_objects_that_somebody_removed_are_not_told_as_stored(pacs, films, order):
    pacs.films, pacs.stow = films[:1], (409, None)
    pushing = replace(order, push=True)
    assert heard(pushing)[1] == {"unsent": 1}
    (report,) = order.out.rglob("report.dcm")
    shutil.rmtree(report.parent)
    pacs.stow = 200, None
    assert heard(pushing) == ([("unsendable", uid_of(films[0]))], {"unsendable": 1})
    ((_, reason),) = states(order.out, "reason")
    assert "no longer here" in reason


def test_a_header_that_breaks_rules_is_not_repeated(cabinet):
    with config.disable_value_validation():
        film = cabinet.film(0, StudyInstanceUID=f"1.2.{SECRET}")
    with warnings.catch_warnings(record=True) as heard_of:
        warnings.simplefilter("always")
        assert header_of(film).study == f"1.2.{SECRET}"
    assert [str(one.message) for one in heard_of] == []
