"""``medgrape pacs`` against a real Orthanc: list, pull and push."""

import json

import pytest
from dicomweb_client.api import DICOMwebClient
from orthanc import PASSWORD, USER
from pydicom import dcmread
from requests import Session
from ward_films import study_of, uid_of

from medgrape.films.reading import read_film
from scenes import SECRET


def other_client(orthanc):
    """Return a DICOMweb client that is not ours."""
    session = Session()
    session.auth = (USER, PASSWORD)
    return DICOMwebClient(orthanc.url, session=session)


def test_list_shows_studies_without_names_across_pages(orthanc, cabinet, medgrape):
    films = [cabinet.film(number) for number in range(5)]
    other = cabinet.film(5, Modality="CT", SOPClassUID="1.2.840.10008.5.1.4.1.1.2")
    for film in [*films, other]:
        assert orthanc.receive(film) == "Success"
    code, output, _ = medgrape("pacs", "list", "hospital", "--since", "always", "--json")
    assert code == 0
    studies = json.loads(output)["studies"]
    assert {one["uid"] for one in studies} == {study_of(film) for film in films}
    assert {one["accession"] for one in studies} == {f"A{number}" for number in range(5)}
    assert {(one["date"], one["images"], tuple(one["modalities"])) for one in studies} == {("2000-01-01", 1, ("CR",))}
    assert SECRET not in output
    assert len(other_client(orthanc).search_for_studies()) == 6
    code, output, _ = medgrape("pacs", "list", "hospital", "--since", "always", "--modality", "CT")
    assert study_of(other) in "".join(output.split())
    assert "1 studies" in output
    assert SECRET not in output


def test_list_begins_with_the_requested_day(orthanc, cabinet, medgrape):
    old, new = cabinet.film(0, StudyDate="20200101"), cabinet.film(1, StudyDate="20260301")
    orthanc.receive(old)
    orthanc.receive(new)
    _, output, _ = medgrape("pacs", "list", "hospital", "--since", "2026-03-01", "--json")
    assert [one["uid"] for one in json.loads(output)["studies"]] == [study_of(new)]
    _, output, _ = medgrape("pacs", "list", "hospital", "--since", "2026-03-02", "--json")
    assert json.loads(output)["studies"] == []


def test_pull_fetches_the_films_unchanged_and_none_twice(orthanc, cabinet, medgrape, tmp_path):
    films = [cabinet.film(number) for number in range(3)]
    for film in films:
        orthanc.receive(film)
    code, output, _ = medgrape("pacs", "pull", "hospital", "--since", "always", "--out", "films", "--json")
    assert code == 0
    assert json.loads(output) == {"out": "films", "fetched": 3, "there": 0, "refused": []}
    for film in films:
        arrived = tmp_path / "films" / study_of(film) / f"{uid_of(film)}.dcm"
        assert (read_film(arrived).pixels == read_film(film).pixels).all()
        assert dcmread(arrived).PatientName == dcmread(film).PatientName
        assert arrived.stat().st_mode & 0o077 == 0
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "films").rglob("*.dcm")}
    next(iter(times)).unlink()
    _, output, _ = medgrape(
        "pacs", "pull", "hospital", study_of(films[0]), study_of(films[1]), study_of(films[2]), "--json"
    )
    assert {key: json.loads(output)[key] for key in ("fetched", "there")} == {"fetched": 1, "there": 2}


def test_pull_can_remove_every_patient_name(orthanc, cabinet, medgrape, tmp_path):
    film, broken = cabinet.film(0), cabinet.film(1, Rows=4000)
    orthanc.receive(film)
    orthanc.receive(broken)
    code, output, _ = medgrape("pacs", "pull", "hospital", "--since", "always", "--clean", "--out", "films", "--json")
    assert code == 1
    (refused,) = json.loads(output)["refused"]
    assert refused["film"] == uid_of(broken)
    assert "truncated" in refused["reason"]
    assert str(tmp_path) not in output
    (arrived,) = (tmp_path / "films").iterdir()
    assert (read_film(arrived).pixels == read_film(film).pixels).all()
    assert SECRET.encode() not in arrived.read_bytes()
    assert uid_of(film).encode() not in arrived.read_bytes()
    assert uid_of(film) not in arrived.name


def test_push_stores_a_file_once_and_reports_refused_ones(orthanc, cabinet, medgrape, tmp_path):
    good, unwanted = cabinet.film(0), cabinet.film(1, StudyInstanceUID=None)
    text = tmp_path / "letter.dcm"
    text.write_text("no DICOM")
    code, output, _ = medgrape("pacs", "push", "hospital", good, unwanted, text, "--json")
    assert code == 1
    first, second, third = json.loads(output)["files"]
    assert (first["accepted"], first["reason"], first["uid"]) == (True, None, uid_of(good))
    assert (second["accepted"], second["reason"]) == (False, "the server cannot parse it (C000H)")
    assert "not a DICOM file" in third["reason"]
    assert medgrape("pacs", "push", "hospital", good)[0] == 0
    assert [one["SOPInstanceUID"] for one in orthanc.holds()] == [uid_of(good)]
    found = other_client(orthanc).search_for_instances()
    assert [one["00080018"]["Value"] for one in found] == [[uid_of(good)]]


def test_push_takes_folders_and_sends_nothing_when_a_file_is_missing(orthanc, cabinet, medgrape, tmp_path):
    cabinet.film(0), cabinet.film(1)
    code, _, complaint = medgrape("pacs", "push", "hospital", cabinet.folder, tmp_path / "none.dcm")
    assert code == 2
    assert "does not exist" in complaint
    assert orthanc.holds() == []
    assert medgrape("pacs", "push", "hospital", cabinet.folder)[0] == 0
    assert len(orthanc.holds()) == 2


def test_a_wrong_password_is_one_sentence_without_the_password(orthanc, medgrape, monkeypatch):
    monkeypatch.setenv("HOSPITAL_PASSWORD", "a wrong one")
    code, output, complaint = medgrape("pacs", "list", "hospital")
    assert (code, orthanc.holds()) == (2, [])
    assert "denied access (HTTP 401)" in complaint
    assert "a wrong one" not in output + complaint
    assert len(complaint.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("list", "hospital"),
        ("pull", "hospital", "--since", "always"),
        ("push", "hospital", "film.dcm"),
        ("watch", "hospital", "--out", "out", "--once", "--model"),
    ],
    ids=lambda words: words[0],
)
def test_a_server_that_is_not_there_is_one_sentence(words, cabinet, medgrape, trained_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pacs.toml").write_text('[servers.hospital]\nurl = "http://127.0.0.1:9/dicom-web"\n')
    cabinet.film(0).rename(tmp_path / "film.dcm")
    code, _, complaint = medgrape("pacs", *words, *([trained_run] if words[0] == "watch" else []))
    assert code == 2
    assert "hospital does not answer" in complaint
    assert len(complaint.strip().splitlines()) == 1
