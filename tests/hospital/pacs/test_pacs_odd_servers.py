"""Servers that do not do as one expects, and what they must not get away with."""

import json
from dataclasses import replace

import pytest
from odd_pacs import BOUNDARY, odd_pacs
from ward_films import uid_of
from watch_scenes import heard, readings

from medgrape.films.film import FilmError
from medgrape.hospital.pacs.connection import AwayError, Connection, RefusalError
from medgrape.hospital.pacs.messages import BrokenAnswerError, content
from medgrape.hospital.pacs.query import ListedFilm, Wanted, list_studies
from medgrape.hospital.pacs.transfer import PullOrder, fetch, pull, store
from medgrape.hospital.pacs.watch import WatchOrder

HABITS = [
    (), ("ignores offset", "ignores limit"), ("ignores limit",), ("small pages",), ("ignores filters",),
    ("no relations",), ("bare films",), ("wraps offset",), ("no relations", "small pages", "ignores filters"),
]  # fmt: skip


@pytest.mark.parametrize("habits", HABITS, ids=" and ".join)
def test_all_films_are_found_and_fetched_whatever_a_server_makes_of_pages_and_filters(habits, cabinet, tmp_path):
    films = [cabinet.film(number) for number in range(5)]
    other = cabinet.film(5, Modality="CT")
    with odd_pacs(*films, other, habits=habits) as pacs, Connection(pacs.server) as connection:
        studies, more = list_studies(connection, Wanted(), 100)
        pulled = pull(connection, PullOrder(tmp_path / "films"))
    assert (len(studies), more) == (5, False)
    assert (pulled.fetched, pulled.refused) == (5, [])
    assert {path.stem for path in (tmp_path / "films").rglob("*.dcm")} == {uid_of(film) for film in films}
    assert {path.read_bytes() for path in (tmp_path / "films").rglob("*.dcm")} == {film.read_bytes() for film in films}


def test_a_server_that_sends_us_elsewhere_is_not_followed(cabinet):
    with odd_pacs(cabinet.film(0), habits=("redirects",)) as pacs, Connection(pacs.server) as connection:
        with pytest.raises(RefusalError, match="another address"):
            list_studies(connection, Wanted(), 1)
        assert all(address.startswith("/web/") for address in pacs.asked)


def part(body):
    return b"--%s\r\nContent-Type: application/dicom\r\n\r\n%s" % (BOUNDARY.encode(), body)


MULTIPART = f'multipart/related; type="application/dicom"; boundary="{BOUNDARY}"'


@pytest.mark.parametrize(
    ("media_type", "body", "error", "words"),
    [
        (MULTIPART, part(b"half a film " * 9), AwayError, "in the middle of a film"),
        (MULTIPART, b"no part at all", RefusalError, "something else"),
        ("text/html", b"<p>log in, please</p>", RefusalError, "something else"),
        ("application/dicom", b"x" * 3000, FilmError, "more than 2,000 bytes"),
        ("application/dicom", b"x" * 100, RefusalError, "another object"),
    ],
    ids=["broken off", "no part", "a page", "too large", "no DICOM"],
)
def test_what_is_not_the_film_is_refused(media_type, body, error, words, tmp_path):
    with odd_pacs() as pacs:
        pacs.retrieve = 200, media_type, body
        server = replace(pacs.server, settings=pacs.server.settings.overridden(max_bytes=2000))
        with Connection(server) as connection, pytest.raises(error, match=words):
            fetch(connection, ListedFilm("1.2", "1.3", "1.4"), tmp_path / "film.dcm")


def test_another_film_than_the_one_that_was_asked_for_is_refused(cabinet, tmp_path):
    film = cabinet.film(0)
    with odd_pacs(film) as pacs, Connection(pacs.server) as connection:
        pacs.retrieve = 200, "application/dicom", film.read_bytes()
        fetch(connection, ListedFilm("1.2", "1.3", uid_of(film)), tmp_path / "film.dcm")
        with pytest.raises(RefusalError, match="another object"):
            fetch(connection, ListedFilm("1.2", "1.3", "1.4"), tmp_path / "film.dcm")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_an_object_comes_out_whole_however_its_bytes_are_cut(size):
    body = bytes(range(256)) * 3 + f"\r\n--{BOUNDARY[:-1]}".encode()
    framed = b"\r\n" + part(body) + b"\r\n--%s--\r\n" % BOUNDARY.encode()
    pieces = (framed[start : start + size] for start in range(0, len(framed), size))
    assert b"".join(content(MULTIPART, pieces)) == body
    with pytest.raises(BrokenAnswerError):
        b"".join(content(MULTIPART, iter([framed[:-20]])))


def said_of(uid, code):
    item = {"00081155": {"Value": [uid]}, "00081197": {"Value": [code]}}
    return {"00081198": {"vr": "SQ", "Value": [item]}}


def test_a_server_that_has_an_object_already_and_says_so_counts_as_having_taken_it(cabinet):
    film = cabinet.film(0)
    with odd_pacs() as pacs, Connection(pacs.server) as connection:
        pacs.stow = 409, said_of(uid_of(film), 0x0111)
        assert store(connection, film).accepted
        for code, words in {0xA700: "no room", 0xA9AB: "SOP class", 0x1234: "of its own"}.items():
            pacs.stow = 409, said_of(uid_of(film), code)
            told = store(connection, film)
            assert (told.accepted, words in told.reason, f"{code:04X}H" in told.reason) == (False, True, True)
        pacs.stow = 500, None
        with pytest.raises(AwayError, match="HTTP 500"):
            store(connection, film)


def test_a_film_that_the_server_does_not_give_holds_up_no_other_and_is_given_up_in_the_end(
    cabinet, trained_run, tmp_path
):
    film = cabinet.film(0)
    with odd_pacs(film) as pacs:
        order = WatchOrder(pacs.server, trained_run, tmp_path / "out", since="always", once=True)
        pacs.retrieve = 404, "text/plain", b"not here"
        assert heard(order) == ([("later", uid_of(film))], {"waiting": 1})
        pacs.retrieve = 200, "text/html", b"<p>log in, please</p>"
        for _ in range(4):
            told = heard(order)
        assert told == ([("refused", uid_of(film))], {"refused": 1})


@pytest.mark.parametrize(
    ("status", "said", "accepted"),
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
def test_only_what_the_server_surely_has_counts_as_stored(status, said, accepted, cabinet):
    film = cabinet.film(0)
    with odd_pacs() as pacs, Connection(pacs.server) as connection:
        pacs.stow = status, json.loads(json.dumps(said).replace("UID", uid_of(film)))
        assert store(connection, film).accepted is accepted


def test_a_report_that_the_server_never_takes_is_told_and_its_reading_stays(cabinet, trained_run, tmp_path):
    film = cabinet.film(0)
    with odd_pacs(film) as pacs:
        order = WatchOrder(pacs.server, trained_run, tmp_path / "out", since="always", push=True, once=True)
        pacs.stow = 409, said_of("1.2.3", 0x0122)
        told, counts = heard(order)
        assert (told, counts) == ([("read", uid_of(film)), ("later", uid_of(film))], {"unsent": 1})
        for _ in range(4):
            told, counts = heard(order)
        assert (told, counts) == ([("unsendable", uid_of(film))], {"unsendable": 1})
    assert set(readings(order.out)) == {uid_of(film)}
