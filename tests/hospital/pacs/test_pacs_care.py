"""Care with what a header says, with what a server counts, and with what lies on our own disk."""

import json
import shutil
import stat
from dataclasses import replace

import pytest
from odd_pacs import odd_pacs
from ward_films import uid_of
from watch_scenes import heard, readings, states

from medgrape.errors import UserError
from medgrape.films.film import FilmError
from medgrape.hospital.pacs.chest_reader import refuse_others
from medgrape.hospital.pacs.connection import Connection, RefusalError
from medgrape.hospital.pacs.header import header_of
from medgrape.hospital.pacs.ledger import Ledger, opened
from medgrape.hospital.pacs.messages import IMAGES, number
from medgrape.hospital.pacs.query import Wanted, series
from medgrape.hospital.pacs.transfer import store
from medgrape.hospital.pacs.watch import WatchOrder


@pytest.mark.parametrize("edges", [["A", "F"], ["P", "F"], ["PL", "F"], ["H", "A"]], ids="".join)
def test_a_film_from_the_side_is_refused_although_no_view_is_told(edges, cabinet):
    refuse_others(header_of(cabinet.film(0, ViewPosition="")))
    refuse_others(header_of(cabinet.film(0, ViewPosition="", PatientOrientation=["L", "FP"])))
    refuse_others(header_of(cabinet.film(0, ViewPosition="", PatientOrientation="L")))
    with pytest.raises(FilmError, match="from the side"):
        refuse_others(header_of(cabinet.film(0, ViewPosition="", PatientOrientation=edges)))


def test_what_the_header_does_not_say_is_noted(cabinet, trained_run, tmp_path):
    silent = cabinet.film(0, ViewPosition=None, BodyPartExamined=None)
    with odd_pacs(silent, cabinet.film(1)) as pacs:
        heard(WatchOrder(pacs.server, trained_run, tmp_path / "out", since="always", once=True))
    found = {uid: len(one["notes"]) for uid, one in readings(tmp_path / "out").items()}
    assert found.pop(uid_of(silent)) == 2
    assert list(found.values()) == [0]


def test_a_ledger_that_is_none_or_another_versions_is_one_sentence(tmp_path):
    path = tmp_path / "ledger.db"
    path.write_bytes(b"this is no database, and never was one\n" * 100)
    with pytest.raises(UserError, match="is damaged; restore it"), opened(path):
        pass
    with pytest.raises(UserError, match="cannot be opened or written"), opened(tmp_path):
        pass
    path.unlink()
    Ledger(path).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(UserError, match="is damaged; restore it"), opened(path):
        pass
    path.write_bytes(whole[:60] + (1).to_bytes(4, "big") + whole[64:])
    with pytest.raises(UserError, match="another version"), opened(path):
        pass


@pytest.mark.parametrize("count", ["1e999", "-1e999", "NaN", str(10**30), '"1e3"', "[]", "null"])
def test_a_count_that_is_none_is_absent(count):
    item = json.loads(f'{{"{IMAGES}": {{"Value": [{count}]}}}}')
    assert number(item, IMAGES) is None


def test_an_answer_that_is_nested_without_end_is_refused(cabinet):
    film, deep = cabinet.film(0), (200, "application/dicom+json", b"[" * 200_000)
    with odd_pacs(film) as pacs, Connection(pacs.server) as connection:
        pacs.instead = {"/series?": deep}
        with pytest.raises(RefusalError, match="no DICOM JSON"):
            connection.search(["series"], [("limit", "1")])
        pacs.instead = {"/web/studies": (202, *deep[1:])}
        assert not store(connection, film).accepted


def test_a_series_is_listed_once_by_a_server_that_ignores_what_it_is_asked_for(cabinet):
    films = [cabinet.film(number) for number in range(3)]
    with odd_pacs(*films, habits=("ignores filters",)) as pacs, Connection(pacs.server) as connection:
        found = [one.uid for one in series(connection, Wanted())]
    assert len(found) == len(set(found)) == 3


def test_readings_are_for_their_owner_alone_also_in_a_folder_that_others_may_enter(cabinet, trained_run, tmp_path):
    out = tmp_path / "out"
    out.mkdir(mode=0o755)
    out.chmod(0o755)
    with odd_pacs(cabinet.film(0)) as pacs:
        heard(WatchOrder(pacs.server, trained_run, out, since="always", once=True))
    assert stat.S_IMODE((out / "readings").stat().st_mode) == 0o700


def test_copies_that_cannot_be_removed_are_told_until_they_are_gone(cabinet, trained_run, tmp_path, monkeypatch):
    film = cabinet.film(0)

    def locked(path, *_, **how):
        if path.name == "dicom" and not how.get("ignore_errors"):
            raise PermissionError(13, "Permission denied", str(path))
        if path.name != "dicom":
            remove(path, **how)

    remove = shutil.rmtree
    with odd_pacs(film) as pacs:
        order = WatchOrder(pacs.server, trained_run, tmp_path / "out", since="always", push=True, once=True)
        with monkeypatch.context() as trouble:
            trouble.setattr(shutil, "rmtree", locked)
            told, counts = heard(order)
        assert (told[-1], counts) == (("later", uid_of(film)), {"sent": 1})
        monkeypatch.setattr("medgrape.hospital.pacs.ledger._LONGEST_PAUSE", 0.0)
        assert heard(replace(order, push=False)) == ([], {"read": 1})
    assert list(order.out.rglob("*.dcm")) == []
    assert states(order.out) == [("read",)]
