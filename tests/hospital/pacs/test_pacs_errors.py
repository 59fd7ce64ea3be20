"""Everyday errors: expired tokens, a locked ledger, full disks, refused files, removed objects."""

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
from watch_scenes import run_watch, states

from medgrape.errors import UserError
from medgrape.hospital.pacs import ledger
from medgrape.hospital.pacs.connection import AuthenticationError, CredentialsError, ResponseError
from medgrape.hospital.pacs.header import read_header
from medgrape.hospital.pacs.ledger import open_ledger
from medgrape.hospital.pacs.query import ListedFilm, ListedSeries
from medgrape.hospital.pacs.watch import WatchOptions, watch
from scenes import SECRET


class StopWatchError(Exception):
    """Ends an endless watch."""


@pytest.fixture
def films(cabinet):
    return [cabinet.film(number) for number in range(3)]


@pytest.fixture
def pacs(films, tmp_path, monkeypatch):
    """A PACS called clinic in the pacs.toml of the current folder, and a token."""
    monkeypatch.chdir(tmp_path)
    with odd_pacs(*films) as server:
        (tmp_path / "pacs.toml").write_text(f'[servers.clinic]\nurl = "{server.server.settings.url}"\n')
        (tmp_path / "token").write_text("a token")
        yield server


@pytest.fixture
def options(pacs, trained_run, tmp_path):
    settings = pacs.server.settings.overridden(token_file=str(tmp_path / "token"))
    return WatchOptions(
        replace(pacs.server, settings=settings), trained_run, tmp_path / "out", since="always", once=True
    )


def answers(status, kind="text/html", body=b"<p>"):
    return lambda pacs, _: pacs.instead.update({"?": (status, kind, body)})


def repair(pacs, token):
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
def test_after_a_successful_round_a_watch_waits_for_any_server_error_to_end_and_reports_it_once(
    begins, pacs, films, options, tmp_path
):
    pacs.films, events, waits = films[:1], [], []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 1:
            begins(pacs, tmp_path / "token")
        if len(waits) == 4:
            repair(pacs, tmp_path / "token")
            pacs.films = films[:2]
        if len(waits) == 5:
            raise StopWatchError

    with pytest.raises(StopWatchError):
        watch(replace(options, once=False, every=7.0), lambda event: events.append(event.kind), wait)
    assert events == ["read", "away", "read", "back"]
    assert waits == [7.0, 1.0, 2.0, 4.0, 7.0]
    assert states(options.out, "attempts") == [("read", 0), ("read", 0)]


@pytest.mark.parametrize(
    ("begins", "error"),
    [
        (answers(401), AuthenticationError),
        (answers(200), ResponseError),
        (lambda _, token: token.write_text(""), CredentialsError),
    ],
    ids=["access denied", "no DICOMweb", "no token"],
)
def test_before_a_successful_round_an_error_means_wrong_settings_and_ends_the_watch(
    begins, error, pacs, options, tmp_path
):
    begins(pacs, tmp_path / "token")
    with pytest.raises(error):
        watch(replace(options, once=False), lambda _: None, lambda _: pytest.fail("it waits"))


def test_a_second_kind_of_error_is_reported_too(pacs, films, options):
    pacs.films, events, waits = films[:1], [], []

    def wait(_):
        waits.append(len(events))
        pacs.instead["?"] = (503 if len(waits) < 3 else 401), "text/plain", b""
        if len(waits) == 5:
            raise StopWatchError

    with pytest.raises(StopWatchError):
        watch(replace(options, once=False), lambda event: events.append(event.message), wait)
    assert ["HTTP 503" in events[1], "HTTP 401" in events[2], len(events)] == [True, True, 3]


@pytest.fixture
def used(pacs, films, options):  # noqa: ARG001 (the films lie there)
    """A second connection to the ledger of a watch."""
    run_watch(options)
    with closing(sqlite3.connect(options.out / "ledger.db", isolation_level=None)) as rows:
        yield rows


def test_a_ledger_in_use_is_reported_at_the_start_and_during_a_watch(used, options, cabinet, pacs, monkeypatch):
    monkeypatch.setattr(ledger, "_BUSY_TIMEOUT", 0.05)
    used.execute("BEGIN IMMEDIATE")
    with pytest.raises(UserError, match=r"ledger\.db is in use by another program; close that and start again\."):
        run_watch(options)
    used.execute("ROLLBACK")
    pacs.films.append(cabinet.film(3))
    with pytest.raises(UserError, match="is in use by another program"):
        watch(options, lambda _: used.execute("BEGIN IMMEDIATE"))
    used.execute("ROLLBACK")
    assert run_watch(options)[1] == {"read": 4}


def test_a_full_disk_is_reported_and_the_ledger_keeps_its_content(pacs, films, options):
    assert len(pacs.films) == len(films) == run_watch(options)[1]["read"]
    listed = ListedSeries("1.2", "1.3", "CR", "", "", 1)
    many = [ListedFilm("1.2", "1.3", f"1.4.{number}") for number in range(9999)]

    def fill():
        with open_ledger(options.out / "ledger.db") as rows:
            rows._database.execute("PRAGMA max_page_count = 1")  # that is: as many as there are
            rows.add_films(listed, many)

    with pytest.raises(UserError, match="cannot be opened or written"):
        fill()
    assert states(options.out) == [("read",)] * 3


def test_the_error_that_ends_a_watch_is_reported_even_if_the_ledger_cannot_be_written(
    used, options, cabinet, pacs, monkeypatch
):
    def raise_full(*_):
        used.execute("BEGIN IMMEDIATE")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger, "_BUSY_TIMEOUT", 0.05)
    monkeypatch.setattr("medgrape.hospital.pacs.watch.fetch", raise_full)
    pacs.films.append(cabinet.film(3))
    with pytest.raises(OSError, match="No space left"):
        run_watch(options)


def refusing(pacs, number, status):
    """Let the PACS answer the file of this number with a status, and accept the others."""
    usual, sent = pacs.usual_answer, []

    def answer(method, address):
        sent.append(address)
        return (status, "text/plain", b"") if len(sent) == number else usual(method, address)

    pacs.usual_answer = answer


@pytest.mark.parametrize("status", [413, 404, 302])
def test_a_file_that_the_server_refuses_does_not_stop_the_others(status, pacs, films, medgrape):
    refusing(pacs, 2, status)
    code, output, _ = medgrape("pacs", "push", "clinic", *films, "--json")
    files = json.loads(output)["files"]
    assert (code, [one["accepted"] for one in files]) == (1, [True, False, True])
    assert f"HTTP {status}" in files[1]["reason"]


@pytest.mark.parametrize("status", [503, 401])
def test_files_stored_before_the_server_went_away_are_reported(status, pacs, films, medgrape):
    refusing(pacs, 2, status)
    code, output, complaint = medgrape("pacs", "push", "clinic", *films)
    assert (code, output.strip()) == (2, f"accepted: {films[0]}")
    assert f"HTTP {status}" in complaint
    refusing(pacs, 2, status)
    code, output, _ = medgrape("pacs", "push", "clinic", *films, "--json")
    assert (code, [one["file"] for one in json.loads(output)["files"]]) == (2, [str(films[0])])


def test_a_study_without_films_is_refused_with_what_to_do(pacs, films, medgrape):
    pacs.films = films[:1]
    study = read_header(films[0]).study
    code, output, _ = medgrape("pacs", "pull", "clinic", "1.2.3.4.5", study, "--json")
    assert (code, json.loads(output)["fetched"]) == (1, 1)
    reason = "clinic has no CR or DX film of it; see --modality."
    assert json.loads(output)["refused"] == [{"film": "study 1.2.3.4.5", "reason": reason}]
    code, output, _ = medgrape("pacs", "pull", "clinic", study, "--modality", "CT")
    assert (code, "has no CT film of it" in output) == (1, True)


def test_objects_that_somebody_removed_are_not_reported_as_stored(pacs, films, options):
    pacs.films, pacs.stow = films[:1], (409, None)
    pushing = replace(options, push=True)
    assert run_watch(pushing)[1] == {"unsent": 1}
    (report,) = options.out.rglob("report.dcm")
    shutil.rmtree(report.parent)
    pacs.stow = 200, None
    assert run_watch(pushing) == ([("unsendable", uid_of(films[0]))], {"unsendable": 1})
    ((_, reason),) = states(options.out, "reason")
    assert "no longer exist" in reason


def test_a_header_that_breaks_rules_is_not_repeated(cabinet):
    with config.disable_value_validation():
        film = cabinet.film(0, StudyInstanceUID=f"1.2.{SECRET}")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert read_header(film).study == f"1.2.{SECRET}"
    assert [str(one.message) for one in warned] == []
