"""Servers that break the rules of DICOMweb, and which of their responses are refused."""

import json
from dataclasses import replace

import pytest
from odd_pacs import BOUNDARY, odd_pacs
from ward_films import uid_of
from watch_scenes import readings, run_watch

from medgrape.films.film import FilmError
from medgrape.hospital.pacs.connection import Connection, ResponseError, UnreachableError
from medgrape.hospital.pacs.multipart import IncompleteResponseError, first_object
from medgrape.hospital.pacs.query import ListedFilm, SeriesFilter, list_studies
from medgrape.hospital.pacs.transfer import PullOptions, fetch, pull, store
from medgrape.hospital.pacs.watch import WatchOptions

HABITS = [
    (), ("ignores offset", "ignores limit"), ("ignores limit",), ("small pages",), ("ignores filters",),
    ("no relations",), ("bare films",), ("wraps offset",), ("no relations", "small pages", "ignores filters"),
]  # fmt: skip


@pytest.mark.parametrize("habits", HABITS, ids=" and ".join)
def test_all_films_are_found_and_fetched_however_a_server_handles_pages_and_filters(habits, cabinet, tmp_path):
    films = [cabinet.film(number) for number in range(5)]
    other = cabinet.film(5, Modality="CT")
    with odd_pacs(*films, other, habits=habits) as pacs, Connection(pacs.server) as connection:
        studies, more = list_studies(connection, SeriesFilter(), 100)
        pulled = pull(connection, PullOptions(tmp_path / "films"))
    assert (len(studies), more) == (5, False)
    assert (pulled.fetched, pulled.refused) == (5, [])
    assert {path.stem for path in (tmp_path / "films").rglob("*.dcm")} == {uid_of(film) for film in films}
    assert {path.read_bytes() for path in (tmp_path / "films").rglob("*.dcm")} == {film.read_bytes() for film in films}


def test_a_redirect_is_not_followed(cabinet):
    with odd_pacs(cabinet.film(0), habits=("redirects",)) as pacs, Connection(pacs.server) as connection:
        with pytest.raises(ResponseError, match="another address"):
            list_studies(connection, SeriesFilter(), 1)
        assert all(address.startswith("/web/") for address in pacs.requested)


def part(body):
    return b"--%s\r\nContent-Type: application/dicom\r\n\r\n%s" % (BOUNDARY.encode(), body)


MULTIPART = f'multipart/related; type="application/dicom"; boundary="{BOUNDARY}"'


@pytest.mark.parametrize(
    ("media_type", "body", "error", "words"),
    [
        (MULTIPART, part(b"half a film " * 9), UnreachableError, "in the middle of a film"),
        (MULTIPART, b"no part at all", ResponseError, "not a film"),
        ("text/html", b"<p>log in, please</p>", ResponseError, "not a film"),
        ("application/dicom", b"x" * 3000, FilmError, "more than 2,000 bytes"),
        ("application/dicom", b"x" * 100, ResponseError, "another object"),
    ],
    ids=["broken off", "no part", "a page", "too large", "no DICOM"],
)
def test_a_response_that_is_not_the_film_is_refused(media_type, body, error, words, tmp_path):
    with odd_pacs() as pacs:
        pacs.retrieve = 200, media_type, body
        server = replace(pacs.server, settings=pacs.server.settings.overridden(max_bytes=2000))
        with Connection(server) as connection, pytest.raises(error, match=words):
            fetch(connection, ListedFilm("1.2", "1.3", "1.4"), tmp_path / "film.dcm")


def test_another_film_than_the_requested_one_is_refused(cabinet, tmp_path):
    film = cabinet.film(0)
    with odd_pacs(film) as pacs, Connection(pacs.server) as connection:
        pacs.retrieve = 200, "application/dicom", film.read_bytes()
        fetch(connection, ListedFilm("1.2", "1.3", uid_of(film)), tmp_path / "film.dcm")
        with pytest.raises(ResponseError, match="another object"):
            fetch(connection, ListedFilm("1.2", "1.3", "1.4"), tmp_path / "film.dcm")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_an_object_is_complete_however_its_bytes_are_split(size):
    body = bytes(range(256)) * 3 + f"\r\n--{BOUNDARY[:-1]}".encode()
    framed = b"\r\n" + part(body) + b"\r\n--%s--\r\n" % BOUNDARY.encode()
    pieces = (framed[start : start + size] for start in range(0, len(framed), size))
    assert b"".join(first_object(MULTIPART, pieces)) == body
    with pytest.raises(IncompleteResponseError):
        b"".join(first_object(MULTIPART, iter([framed[:-20]])))


def failure_of(uid, code):
    item = {"00081155": {"Value": [uid]}, "00081197": {"Value": [code]}}
    return {"00081198": {"vr": "SQ", "Value": [item]}}


def test_a_duplicate_counts_as_accepted(cabinet):
    film = cabinet.film(0)
    with odd_pacs() as pacs, Connection(pacs.server) as connection:
        pacs.stow = 409, failure_of(uid_of(film), 0x0111)
        assert store(connection, film).accepted
        for code, words in {0xA700: "out of space", 0xA9AB: "SOP class", 0x1234: "of its own"}.items():
            pacs.stow = 409, failure_of(uid_of(film), code)
            result = store(connection, film)
            assert (result.accepted, words in result.reason, f"{code:04X}H" in result.reason) == (False, True, True)
        pacs.stow = 500, None
        with pytest.raises(UnreachableError, match="HTTP 500"):
            store(connection, film)


def test_a_film_that_the_server_never_sends_is_refused_in_the_end(cabinet, trained_run, tmp_path):
    film = cabinet.film(0)
    with odd_pacs(film) as pacs:
        options = WatchOptions(pacs.server, trained_run, tmp_path / "out", since="always", once=True)
        pacs.retrieve = 404, "text/plain", b"not here"
        assert run_watch(options) == ([("later", uid_of(film))], {"waiting": 1})
        pacs.retrieve = 200, "text/html", b"<p>log in, please</p>"
        for _ in range(4):
            result = run_watch(options)
        assert result == ([("refused", uid_of(film))], {"refused": 1})


@pytest.mark.parametrize(
    ("status", "response", "accepted"),
    [
        (200, None, True),
        (200, {"00081190": {"vr": "UR", "Value": ["http://x/studies/1.2"]}}, True),
        (200, [{"00081199": {"vr": "SQ", "Value": [{"00081155": {"Value": ["UID"]}}]}}], True),
        (202, {"00081199": {"vr": "SQ", "Value": [{"00081155": {"Value": ["UID"]}}]}}, True),
        (202, None, False),
        (202, [], False),
        (202, [{"00081198": {"vr": "SQ", "Value": [{"00081155": {"Value": ["UID"]}}]}}], False),
        (200, {"00081198": {"vr": "SQ", "Value": [{"00081155": {"Value": ["1.2"]}}]}}, False),
        (200, {"0008119A": {"vr": "SQ", "Value": [{"00081197": {"Value": [272]}}]}}, False),
    ],
)
def test_only_what_the_server_surely_has_counts_as_stored(status, response, accepted, cabinet):
    film = cabinet.film(0)
    with odd_pacs() as pacs, Connection(pacs.server) as connection:
        pacs.stow = status, json.loads(json.dumps(response).replace("UID", uid_of(film)))
        assert store(connection, film).accepted is accepted


def test_a_report_that_the_server_never_accepts_is_unsendable_and_its_reading_stays(cabinet, trained_run, tmp_path):
    film = cabinet.film(0)
    with odd_pacs(film) as pacs:
        options = WatchOptions(pacs.server, trained_run, tmp_path / "out", since="always", push=True, once=True)
        pacs.stow = 409, failure_of("1.2.3", 0x0122)
        events, counts = run_watch(options)
        assert (events, counts) == ([("read", uid_of(film)), ("later", uid_of(film))], {"unsent": 1})
        for _ in range(4):
            events, counts = run_watch(options)
        assert (events, counts) == ([("unsendable", uid_of(film))], {"unsendable": 1})
    assert set(readings(options.out)) == {uid_of(film)}
