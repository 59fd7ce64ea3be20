"""``medgrape pacs watch`` against a real Orthanc: every film once, whatever happens."""

import sqlite3
from dataclasses import replace

import pytest
from ward_films import uid_of
from watch_scenes import heard, readings, reports

from medgrape.errors import UserError
from medgrape.hospital.pacs.watch import watch
from scenes import SECRET

LATERAL, HAND, RAW = {"ViewPosition": "LL"}, {"BodyPartExamined": "HAND"}, {
    "Modality": "DX", "SOPClassUID": "1.2.840.10008.5.1.4.1.1.1.1.1",
}  # fmt: skip


def test_each_film_is_read_once_and_a_new_one_when_it_arrives(orthanc, cabinet, order, trained_run):
    films = [cabinet.film(0), cabinet.film(1, Modality="DX", SOPClassUID="1.2.840.10008.5.1.4.1.1.1.1")]
    for film in films:
        orthanc.receive(film)
    told, counts = heard(order)
    assert sorted(told) == sorted(("read", uid_of(film)) for film in films)
    assert counts == {"read": 2}
    assert heard(order) == ([], {"read": 2})
    late = cabinet.film(2)
    orthanc.receive(late)
    assert heard(order) == ([("read", uid_of(late))], {"read": 3})
    found = readings(order.out)
    assert set(found) == {uid_of(film) for film in [*films, late]}
    from medgrape.reader import load

    study = load(trained_run).open(late)
    assert found[uid_of(late)]["probabilities"] == study.explain().to_json()["probabilities"]
    assert not (order.out / ".draft").exists()


def test_what_is_no_frontal_chest_film_is_noted_with_its_reason_and_left_alone(orthanc, cabinet, order):
    scenes = {
        "frontal": LATERAL, "another part of the body": HAND, "raw": RAW, "truncated": {"Rows": 4000},
        "no CR or DX film": {"SOPClassUID": "1.2.840.10008.5.1.4.1.1.7"},
    }  # fmt: skip
    films = {reason: cabinet.film(number, **changes) for number, (reason, changes) in enumerate(scenes.items())}
    for film in films.values():
        orthanc.receive(film)
    orthanc.receive(cabinet.film(6, Modality="CT", SOPClassUID="1.2.840.10008.5.1.4.1.1.2"))
    told, counts = heard(order)
    assert counts == {"refused": 5}
    assert {what for what, _ in told} == {"refused"}
    with sqlite3.connect(order.out / "ledger.db") as rows:
        reasons = dict(rows.execute("SELECT uid, reason FROM films"))
    rows.close()
    for reason, film in films.items():
        assert reason in reasons[uid_of(film)]
    assert heard(order) == ([], {"refused": 5})


def test_reports_go_back_once_and_are_never_read_themselves(orthanc, cabinet, order):
    films = [cabinet.film(0), cabinet.film(1)]
    for film in films:
        orthanc.receive(film)
    pushing = replace(order, push=True)
    told, counts = heard(pushing)
    assert sorted(told) == sorted((what, uid_of(film)) for film in films for what in ("read", "stored"))
    held = len(orthanc.holds())
    assert reports(orthanc) == sorted(uid_of(film) for film in films)
    assert counts == {"read": 2}
    assert heard(pushing) == ([], {"read": 2})
    assert len(orthanc.holds()) == held
    assert list(order.out.rglob("*.dcm")) == []  # they name the patient, and the PACS has them


def test_objects_stay_where_somebody_wants_to_keep_them(orthanc, cabinet, order):
    orthanc.receive(cabinet.film(0))
    assert heard(replace(order, keep_dicom=True))[1] == {"read": 1}
    assert "report.dcm" in {path.name for path in order.out.rglob("*.dcm")}
    assert len(orthanc.holds()) == 1


def test_no_name_stands_in_what_is_told_or_kept(orthanc, cabinet, order, medgrape, trained_run, caplog):
    caplog.set_level("DEBUG")
    for changes in (
        {},
        LATERAL,
        {"Rows": 4000},
        {"ViewPosition": SECRET.upper()},
        {"BodyPartExamined": SECRET.upper()},
    ):
        orthanc.receive(cabinet.film(0, SOPInstanceUID=f"1.2.3.{len(list(cabinet.folder.glob('*')))}", **changes))
    words = ("--model", trained_run, "--out", order.out, "--since", "always", "--push", "--once")
    code, told, complaint = medgrape("pacs", "watch", "hospital", *words)
    assert code == 0
    kept = b"".join(path.read_bytes() for path in order.out.rglob("*") if path.is_file())
    assert b"refused" in kept
    assert SECRET.lower() not in (told + complaint + caplog.text).lower()
    assert SECRET.lower().encode() not in kept.lower()
    assert reports(orthanc) != []


def test_another_model_another_server_and_a_second_watcher_are_refused(orthanc, cabinet, order, strict_run, hospital):
    orthanc.receive(cabinet.film(0))
    heard(order)
    with pytest.raises(UserError, match="another model"):
        heard(replace(order, model=strict_run))
    with pytest.raises(UserError, match="server 'hospital'"):
        heard(replace(order, server=replace(hospital, name="clinic")))
    with pytest.raises(UserError, match="holds something else"):
        heard(replace(order, out=cabinet.folder))

    def second(_):
        with pytest.raises(UserError, match="Another watcher"):
            heard(order)

    orthanc.receive(cabinet.film(1))
    assert watch(order, second) == {"read": 2}
