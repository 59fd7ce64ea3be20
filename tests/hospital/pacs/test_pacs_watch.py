"""``medgrape pacs watch`` against a real Orthanc: every film once, also after errors."""

import sqlite3
from dataclasses import replace

import pytest
from ward_films import uid_of
from watch_scenes import readings, reports, run_watch

from medgrape.errors import UserError
from medgrape.hospital.pacs.watch import watch
from scenes import SECRET

LATERAL, HAND, RAW = {"ViewPosition": "LL"}, {"BodyPartExamined": "HAND"}, {
    "Modality": "DX", "SOPClassUID": "1.2.840.10008.5.1.4.1.1.1.1.1",
}  # fmt: skip


def test_each_film_is_read_once_and_a_new_one_when_it_arrives(orthanc, cabinet, options, trained_run):
    films = [cabinet.film(0), cabinet.film(1, Modality="DX", SOPClassUID="1.2.840.10008.5.1.4.1.1.1.1")]
    for film in films:
        orthanc.receive(film)
    events, counts = run_watch(options)
    assert sorted(events) == sorted(("read", uid_of(film)) for film in films)
    assert counts == {"read": 2}
    assert run_watch(options) == ([], {"read": 2})
    late = cabinet.film(2)
    orthanc.receive(late)
    assert run_watch(options) == ([("read", uid_of(late))], {"read": 3})
    found = readings(options.out)
    assert set(found) == {uid_of(film) for film in [*films, late]}
    from medgrape.reader import load

    study = load(trained_run).open(late)
    assert found[uid_of(late)]["probabilities"] == study.explain().to_json()["probabilities"]
    assert not (options.out / ".draft").exists()


def test_other_films_are_refused_with_a_reason_and_not_tried_again(orthanc, cabinet, options):
    scenes = {
        "frontal": LATERAL, "another part of the body": HAND, "raw": RAW, "truncated": {"Rows": 4000},
        "not a CR or DX film": {"SOPClassUID": "1.2.840.10008.5.1.4.1.1.7"},
    }  # fmt: skip
    films = {reason: cabinet.film(number, **changes) for number, (reason, changes) in enumerate(scenes.items())}
    for film in films.values():
        orthanc.receive(film)
    orthanc.receive(cabinet.film(6, Modality="CT", SOPClassUID="1.2.840.10008.5.1.4.1.1.2"))
    events, counts = run_watch(options)
    assert counts == {"refused": 5}
    assert {what for what, _ in events} == {"refused"}
    with sqlite3.connect(options.out / "ledger.db") as rows:
        reasons = dict(rows.execute("SELECT uid, reason FROM films"))
    rows.close()
    for reason, film in films.items():
        assert reason in reasons[uid_of(film)]
    assert run_watch(options) == ([], {"refused": 5})


def test_reports_go_back_once_and_are_never_read_themselves(orthanc, cabinet, options):
    films = [cabinet.film(0), cabinet.film(1)]
    for film in films:
        orthanc.receive(film)
    pushing = replace(options, push=True)
    events, counts = run_watch(pushing)
    assert sorted(events) == sorted((what, uid_of(film)) for film in films for what in ("read", "stored"))
    held = len(orthanc.holds())
    assert reports(orthanc) == sorted(uid_of(film) for film in films)
    assert counts == {"read": 2}
    assert run_watch(pushing) == ([], {"read": 2})
    assert len(orthanc.holds()) == held
    assert list(options.out.rglob("*.dcm")) == []  # they name the patient, and the PACS has them


def test_objects_are_kept_if_requested(orthanc, cabinet, options):
    orthanc.receive(cabinet.film(0))
    assert run_watch(replace(options, keep_dicom=True))[1] == {"read": 1}
    assert "report.dcm" in {path.name for path in options.out.rglob("*.dcm")}
    assert len(orthanc.holds()) == 1


def test_no_patient_name_is_in_output_logs_or_files(orthanc, cabinet, options, medgrape, trained_run, caplog):
    caplog.set_level("DEBUG")
    for changes in (
        {},
        LATERAL,
        {"Rows": 4000},
        {"ViewPosition": SECRET.upper()},
        {"BodyPartExamined": SECRET.upper()},
    ):
        orthanc.receive(cabinet.film(0, SOPInstanceUID=f"1.2.3.{len(list(cabinet.folder.glob('*')))}", **changes))
    words = ("--model", trained_run, "--out", options.out, "--since", "always", "--push", "--once")
    code, output, complaint = medgrape("pacs", "watch", "hospital", *words)
    assert code == 0
    kept = b"".join(path.read_bytes() for path in options.out.rglob("*") if path.is_file())
    assert b"refused" in kept
    assert SECRET.lower() not in (output + complaint + caplog.text).lower()
    assert SECRET.lower().encode() not in kept.lower()
    assert reports(orthanc) != []


def test_another_model_another_server_and_a_second_watcher_are_refused(orthanc, cabinet, options, strict_run, hospital):
    orthanc.receive(cabinet.film(0))
    run_watch(options)
    with pytest.raises(UserError, match="another model"):
        run_watch(replace(options, model=strict_run))
    with pytest.raises(UserError, match="server 'hospital'"):
        run_watch(replace(options, server=replace(hospital, name="clinic")))
    with pytest.raises(UserError, match="holds something else"):
        run_watch(replace(options, out=cabinet.folder))

    def second(_):
        with pytest.raises(UserError, match="Another watch uses"):
            run_watch(options)

    orthanc.receive(cabinet.film(1))
    assert watch(options, second) == {"read": 2}
