"""What fails for a while, or for one film, must neither stop a watch nor count as an answer for good."""

import errno
from dataclasses import replace

import pytest
from odd_pacs import odd_pacs
from pydicom import dcmread
from ward_films import uid_of
from watch_scenes import heard, states

from medgrape.interchange.pacs.chest_reader import ChestReader
from medgrape.interchange.pacs.failures import AwayError
from medgrape.interchange.pacs.watch import WatchOrder, watch


@pytest.fixture
def films(cabinet):
    return [cabinet.film(number) for number in range(2)]


@pytest.fixture
def pacs(films):
    with odd_pacs(*films) as server:
        yield server


@pytest.fixture
def order(pacs, graduate, tmp_path):
    return WatchOrder(pacs.server, graduate, tmp_path / "out", since="always", once=True)


class EnoughError(Exception):
    """A test has seen what it wanted."""


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
