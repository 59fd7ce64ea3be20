"""DICOM readings are valid, contain what the study contains, and belong to the right patient."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from highdicom.sr import srread
from pydicom import dcmread
from pydicom.sr.codedict import codes
from pydicom.uid import (
    DigitalXRayImageStorageForPresentation,
    JPEG2000Lossless,
    RLELossless,
    SecondaryCaptureImageStorage,
)

from dicom_scenes import (
    UPRIGHT,
    colour_film,
    complaints,
    concept_name,
    groups,
    run_program,
    stored_film,
    value,
)
from medgrape.concepts import Concept
from medgrape.config import FilmLimits
from medgrape.geometry import Turn
from medgrape.hospital.codes import PRIVATE_CODES, STANDARD_FINDINGS, finding_code
from medgrape.hospital.objects import write_dicom_reading, write_objects

pytestmark = pytest.mark.xdist_group("dicom out")  # what they share is made once


SOURCES = {
    "computed radiograph": {},
    "inverted": {"PhotometricInterpretation": "MONOCHROME1"},
    "digital radiograph": {"SOPClassUID": DigitalXRayImageStorageForPresentation, "Modality": "DX"},
    "secondary capture": {"SOPClassUID": SecondaryCaptureImageStorage, "Modality": "OT", "WindowCenter": None,
                          "WindowWidth": None},
    "rescaled": {"RescaleSlope": 0.333333333333333, "RescaleIntercept": -100.123456789012},
    "without study, date, sex": {"StudyInstanceUID": None, "SeriesInstanceUID": None, "StudyDate": None,
                                 "StudyTime": None, "PatientSex": None, "PatientName": None, "PatientID": None,
                                 "AccessionNumber": None, "PatientOrientation": None},
    "with nonsense in its header": {"PatientSex": "X", "PatientName": "猫^太郎", "SpecificCharacterSet": "ISO_IR 192",
                                    "StudyDescription": "Thorax à deux plans"},
}  # fmt: skip


@pytest.mark.parametrize("kind", [*SOURCES, "colour", "JPEG 2000", "RLE"])
def test_every_object_is_valid_for_every_kind_of_film(opened, tmp_path, kind):
    film = tmp_path / "film.dcm"
    if kind == "colour":
        colour_film(film)
    else:
        stored_film(
            film, Turn(3, True) if kind in ("computed radiograph", "inverted") else Turn(), **SOURCES.get(kind, {})
        )
    if kind in ("JPEG 2000", "RLE"):
        packed = dcmread(film)
        packed.compress(JPEG2000Lossless if kind == "JPEG 2000" else RLELossless)
        packed.save_as(film)
    study = opened(film).apply(UPRIGHT, "active_tb", confirmed=True).reject("active_tb")
    paths = write_objects(study, film, tmp_path / "out", None, FilmLimits())
    assert {path.name for path in paths} >= {"report.dcm", "maps.dcm", "boxes.dcm"}
    for path in paths:
        if path.name != "film.dcm":
            assert complaints(path) == [], path.name
    assert '="Research software, not a medical device."' in run_program("dsrdump", "+Pl", paths[0])


def test_a_report_with_everything_in_it_is_valid_and_is_read_by_others(written, corrected):
    for path in written.values():
        assert complaints(path) == [], path.name
    shown = run_program("dsrdump", "+Pl", written["report.dcm"])
    assert "Patient             : Müller^Jörg (F, #4711)" in shown
    assert '="Curie^Marie"' in shown
    assert corrected[0].corrections[0].check.reason in shown
    assert "UNVERIFIED" in shown
    assert len(srread(written["report.dcm"]).content.get_planar_roi_measurement_groups()) >= 3


def test_findings_and_classes_are_those_of_the_study(written, corrected):
    study, by_identifier = corrected[0], groups(dcmread(written["report.dcm"]))
    first = replace(study, corrections=(), before=None, change=None).prediction
    for place, (name, share) in enumerate(study.prediction.items(), start=1):
        assert value(by_identifier[f"class {place}"], "Finding") == f"c.{name}"
        assert value(by_identifier[f"class {place}"], "class_prob") == pytest.approx(share, abs=1e-6)
        assert value(by_identifier[f"class {place}"], "first_prob") == pytest.approx(first[name], abs=1e-6)
    for evidence in study.explain().concepts:
        group = by_identifier[f"finding {evidence.concept.name}"]
        assert value(group, "score") == pytest.approx(evidence.score, abs=1e-6)
        assert value(group, "score_without") == pytest.approx(evidence.absent_score, abs=1e-6)
        assert value(group, "seen") == evidence.words.replace(" ", "_")
        assert (value(group, "strength") is None) == (not evidence.is_informative)
        assert value(group, "Observer Type") == codes.DCM.Device.value


def test_each_correction_has_what_was_claimed_seen_and_confirmed(written, corrected):
    corrections, by_identifier = corrected[0].corrections, groups(dcmread(written["report.dcm"]))
    box, check = by_identifier["correction 1"], corrections[0].check
    assert value(box, "safety_check") == "mismatch"
    assert value(box, "claimed") == f"f.{check.claimed}"
    assert value(box, "dominant") == f"f.{check.dominant}"
    assert value(box, "gap") == pytest.approx(check.gap, abs=1e-6)
    assert value(box, "allowed_gap") == pytest.approx(check.allowed, abs=1e-6)
    assert value(box, "reason") == check.reason
    assert value(box, "thresholds") == check.origin
    assert value(box, "confirmation") == "confirmed"
    assert value(box, "reader_says") == codes.SCT.Present.value
    assert value(box, "Observer Type") == codes.DCM.Person.value
    against = by_identifier["correction 2"]
    assert value(against, "reader_says") == codes.SCT.Absent.value
    assert (value(against, "safety_check"), value(against, "confirmation")) == ("not_checked", "not_asked")
    assert value(by_identifier["correction 3"], "Finding") == "any_finding"
    rejected = by_identifier["correction 4"]
    assert value(rejected, "Finding") == "f.obsolete_tb"
    assert value(rejected, "on_this_film") == codes.SCT.Absent.value


def test_objects_are_filed_under_the_films_patient_and_study(written, corrected):
    film = dcmread(corrected[1])
    for path in written.values():
        written_object = dcmread(path)
        for keyword in ("PatientName", "PatientID", "PatientSex", "StudyInstanceUID", "StudyDate", "AccessionNumber"):
            assert written_object[keyword].value == film[keyword].value, keyword
        assert written_object.SeriesInstanceUID != film.SeriesInstanceUID
        assert film.SOPInstanceUID in str(written_object)
        assert written_object.DeviceSerialNumber == corrected[0].model


def test_a_second_reading_has_new_uids_in_the_same_study(written, corrected, tmp_path):
    again = write_dicom_reading(*corrected, tmp_path / "again")
    for path in again:
        first, second = dcmread(path), dcmread(written[path.name])
        assert first.StudyInstanceUID == second.StudyInstanceUID
        assert first.SOPInstanceUID != second.SOPInstanceUID
        assert first.SeriesInstanceUID != second.SeriesInstanceUID


def test_a_person_is_an_observer_only_if_named(corrected, written, tmp_path):
    alone = dcmread(write_dicom_reading(*corrected, tmp_path / "alone")[0])
    seen = [value(alone, "Device Observer Name"), value(alone, "Device Observer Serial Number")]
    assert seen == ["medgrape", corrected[0].model]
    assert "Person Observer Name" not in [concept_name(item) for item in alone.ContentSequence]
    assert "Person Observer Name" in [concept_name(item) for item in dcmread(written["report.dcm"]).ContentSequence]


def test_a_study_without_boxes_has_no_presentation_state(opened, tmp_path):
    film = stored_film(tmp_path / "film.dcm")
    paths = write_objects(opened(film).reject("active_tb"), film, tmp_path / "out", None, FilmLimits())
    assert sorted(path.name for path in paths) == sorted(path.name for path in (tmp_path / "out").iterdir())
    assert "boxes.dcm" not in [path.name for path in paths]


def test_a_film_without_uids_is_written_too_with_generated_ones(opened, tmp_path):
    film = stored_film(tmp_path / "film.dcm", StudyInstanceUID=None, SeriesInstanceUID=None)
    study = opened(film).apply(UPRIGHT, None)
    objects = {path.name: dcmread(path) for path in write_objects(study, film, tmp_path / "out", None, FilmLimits())}
    assert {item.StudyInstanceUID for item in objects.values()} == {objects["film.dcm"].StudyInstanceUID}
    referred = objects["boxes.dcm"].ReferencedSeriesSequence[0]
    assert referred.SeriesInstanceUID == objects["film.dcm"].SeriesInstanceUID
    assert referred.ReferencedImageSequence[0].ReferencedSOPInstanceUID == objects["film.dcm"].SOPInstanceUID
    assert np.array_equal(objects["film.dcm"].pixel_array, dcmread(film).pixel_array)
    again = {path.name: dcmread(path) for path in write_objects(study, film, tmp_path / "again", None, FilmLimits())}
    assert again["film.dcm"].StudyInstanceUID == objects["film.dcm"].StudyInstanceUID


def test_nothing_of_a_patient_is_logged(corrected, tmp_path, caplog):
    with caplog.at_level(logging.DEBUG):
        write_dicom_reading(*corrected, tmp_path / "out")
    assert "Müller" not in caplog.text
    assert "4711" not in caplog.text


def test_standard_codes_are_dicoms_own_and_everything_else_is_ours():
    for title, (scheme, keyword) in STANDARD_FINDINGS.items():
        code = finding_code(Concept("x", title.capitalize(), "A sentence."))
        assert code == getattr(getattr(codes, scheme), keyword)
    assert finding_code(Concept("cavity", "Cavity", "A sentence.")).scheme_designator == "99MEDGRAPE"
    long = finding_code(Concept("a" * 63, "b" * 80, "A sentence."))
    assert long.value == "f." + "a" * 63
    assert len(long.meaning) == 64
    assert all(len(code) <= 16 and len(words) <= 64 for code, words in PRIVATE_CODES.items())


def test_every_code_is_documented_with_its_meaning():
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "dicom-out.md").read_text("utf-8")
    for code, words in PRIVATE_CODES.items():
        assert f"| `{code}` | {words} |" in page
    for title, (scheme, keyword) in STANDARD_FINDINGS.items():
        code = getattr(getattr(codes, scheme), keyword)
        assert f"| {title.capitalize()} | {scheme} {code.value}" in page
