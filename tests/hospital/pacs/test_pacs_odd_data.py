"""Odd headers, odd responses, and the files of a watch on disk."""

import json
import shutil
import stat
from dataclasses import replace

import pytest
from odd_pacs import odd_pacs
from ward_films import uid_of
from watch_scenes import readings, run_watch, states

from medgrape.errors import UserError
from medgrape.films.film import FilmError
from medgrape.hospital.pacs.chest_reader import check_is_frontal_chest
from medgrape.hospital.pacs.connection import Connection, ResponseError
from medgrape.hospital.pacs.dicom_json import Tag, integer
from medgrape.hospital.pacs.header import read_header
from medgrape.hospital.pacs.ledger import Ledger, open_ledger
from medgrape.hospital.pacs.query import SeriesFilter, find_series
from medgrape.hospital.pacs.transfer import store
from medgrape.hospital.pacs.watch import WatchOptions


@pytest.mark.parametrize("edges", [["A", "F"], ["P", "F"], ["PL", "F"], ["H", "A"]], ids="".join)
def test_a_lateral_film_is_refused_although_its_header_names_no_view(edges, cabinet):
    check_is_frontal_chest(read_header(cabinet.film(0, ViewPosition="")))
    check_is_frontal_chest(read_header(cabinet.film(0, ViewPosition="", PatientOrientation=["L", "FP"])))
    check_is_frontal_chest(read_header(cabinet.film(0, ViewPosition="", PatientOrientation="L")))
    with pytest.raises(FilmError, match="lateral film"):
        check_is_frontal_chest(read_header(cabinet.film(0, ViewPosition="", PatientOrientation=edges)))


def test_what_the_header_does_not_say_is_noted(cabinet, trained_run, tmp_path):
    silent = cabinet.film(0, ViewPosition=None, BodyPartExamined=None)
    with odd_pacs(silent, cabinet.film(1)) as pacs:
        run_watch(WatchOptions(pacs.server, trained_run, tmp_path / "out", since="always", once=True))
    found = {uid: len(one["notes"]) for uid, one in readings(tmp_path / "out").items()}
    assert found.pop(uid_of(silent)) == 2
    assert list(found.values()) == [0]


def test_a_damaged_ledger_or_one_of_another_version_is_one_sentence(tmp_path):
    path = tmp_path / "ledger.db"
    path.write_bytes(b"this is no database, and never was one\n" * 100)
    with pytest.raises(UserError, match="is damaged; restore it"), open_ledger(path):
        pass
    with pytest.raises(UserError, match="cannot be opened or written"), open_ledger(tmp_path):
        pass
    path.unlink()
    Ledger(path).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(UserError, match="is damaged; restore it"), open_ledger(path):
        pass
    path.write_bytes(whole[:60] + (1).to_bytes(4, "big") + whole[64:])
    with pytest.raises(UserError, match="another version"), open_ledger(path):
        pass


@pytest.mark.parametrize("count", ["1e999", "-1e999", "NaN", str(10**30), '"1e3"', "[]", "null"])
def test_an_invalid_image_count_is_ignored(count):
    item = json.loads(f'{{"{Tag.IMAGES}": {{"Value": [{count}]}}}}')
    assert integer(item, Tag.IMAGES) is None


def test_an_endlessly_nested_response_is_refused(cabinet):
    film, deep = cabinet.film(0), (200, "application/dicom+json", b"[" * 200_000)
    with odd_pacs(film) as pacs, Connection(pacs.server) as connection:
        pacs.instead = {"/series?": deep}
        with pytest.raises(ResponseError, match="not DICOM JSON"):
            connection.search(["series"], [("limit", "1")])
        pacs.instead = {"/web/studies": (202, *deep[1:])}
        assert not store(connection, film).accepted


def test_a_series_is_listed_once_by_a_server_that_ignores_filters(cabinet):
    films = [cabinet.film(number) for number in range(3)]
    with odd_pacs(*films, habits=("ignores filters",)) as pacs, Connection(pacs.server) as connection:
        found = [one.uid for one in find_series(connection, SeriesFilter())]
    assert len(found) == len(set(found)) == 3


def test_readings_are_private_even_in_a_folder_that_others_may_enter(cabinet, trained_run, tmp_path):
    out = tmp_path / "out"
    out.mkdir(mode=0o755)
    out.chmod(0o755)
    with odd_pacs(cabinet.film(0)) as pacs:
        run_watch(WatchOptions(pacs.server, trained_run, out, since="always", once=True))
    assert stat.S_IMODE((out / "readings").stat().st_mode) == 0o700


def test_copies_that_cannot_be_removed_are_reported_until_they_are_gone(cabinet, trained_run, tmp_path, monkeypatch):
    film = cabinet.film(0)

    def locked(path, *_, **how):
        if path.name == "dicom" and not how.get("ignore_errors"):
            raise PermissionError(13, "Permission denied", str(path))
        if path.name != "dicom":
            remove(path, **how)

    remove = shutil.rmtree
    with odd_pacs(film) as pacs:
        options = WatchOptions(pacs.server, trained_run, tmp_path / "out", since="always", push=True, once=True)
        with monkeypatch.context() as trouble:
            trouble.setattr(shutil, "rmtree", locked)
            events, counts = run_watch(options)
        assert (events[-1], counts) == (("later", uid_of(film)), {"sent": 1})
        monkeypatch.setattr("medgrape.hospital.pacs.ledger._MAX_PAUSE", 0.0)
        assert run_watch(replace(options, push=False)) == ([], {"read": 1})
    assert list(options.out.rglob("*.dcm")) == []
    assert states(options.out) == [("read",)]
