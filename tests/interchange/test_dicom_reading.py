"""A study as DICOM files: valid to others, true to the study, and filed under the right patient."""

import logging
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from dicom_scenes import (
    EDGES,
    UPRIGHT,
    ask,
    colour_film,
    complaints,
    groups,
    inside,
    region,
    said,
    stored_film,
    upright_chest,
    value,
)
from highdicom.seg import segread
from highdicom.sr import srread
from PIL import Image
from pydicom import dcmread
from pydicom.sr.codedict import codes
from pydicom.uid import (
    DigitalXRayImageStorageForPresentation,
    JPEG2000Lossless,
    RLELossless,
    SecondaryCaptureImageStorage,
)

from medgrape.concepts import Concept, ConceptSet
from medgrape.config import FilmLimits
from medgrape.data.decoder import Decoder
from medgrape.errors import UserError
from medgrape.explain.listing import in_words, tells
from medgrape.feedback.reader import load
from medgrape.feedback.study import ConceptMismatchError
from medgrape.geometry import Box, FilmSize, PatchGrid, Turn
from medgrape.interchange.dicom_codes import OURS, STANDARD_FINDINGS, finding
from medgrape.interchange.dicom_equipment import Makers
from medgrape.interchange.dicom_maps import segmentation
from medgrape.interchange.dicom_reading import write_dicom_reading, write_objects
from medgrape.interchange.dicom_source import read_source

pytestmark = pytest.mark.xdist_group("dicom out")  # what they share is made once


@pytest.fixture(scope="module")
def reader(sceptic):
    return load(sceptic)


@pytest.fixture(scope="module")
def opened(reader):
    """Opens films one after the other."""
    with Decoder() as decoder:
        yield lambda film: reader.open(film, decoder)


@pytest.fixture(scope="module")
def corrected(opened, tmp_path_factory):
    """A study with a box the model doubts, one it does not check, one for anything, and a rejection; and its film."""
    film = stored_film(tmp_path_factory.mktemp("film") / "film.dcm", Turn(1), PatientName="Müller^Jörg")
    study, doubted = _doubted(opened(film))
    study = study.apply(UPRIGHT, doubted, confirmed=True)
    study = study.rule_out(Box(0, 0, 30, 30), "active_tb").apply(Box(100, 80, 180, 140), None)
    return study.reject("obsolete_tb"), film


def _doubted(study):
    """A finding that the model does not see inside the bright block."""
    for name in study.original.concepts.names:
        try:
            study.apply(UPRIGHT, name)
        except ConceptMismatchError:
            return study, name
    raise AssertionError("the model doubts nothing")


@pytest.fixture(scope="module")
def written(corrected, tmp_path_factory):
    """Its DICOM files, by name."""
    out = tmp_path_factory.mktemp("reading") / "out"
    paths = write_dicom_reading(*corrected, out, observer="Curie^Marie")
    return {path.name: path for path in paths}


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
def test_every_object_is_valid_whatever_the_film_was(opened, tmp_path, kind):
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
    paths = write_objects(study, film, tmp_path / "out", None)
    assert {path.name for path in paths} >= {"report.dcm", "maps.dcm", "boxes.dcm"}
    for path in paths:
        if path.name != "film.dcm":
            assert complaints(path) == [], path.name
    assert '="Research software, not a medical device."' in ask("dsrdump", "+Pl", paths[0])


def test_a_report_with_everything_in_it_is_valid_and_is_read_by_others(written, corrected):
    for path in written.values():
        assert complaints(path) == [], path.name
    shown = ask("dsrdump", "+Pl", written["report.dcm"])
    assert "Patient             : Müller^Jörg (F, #4711)" in shown
    assert '="Curie^Marie"' in shown
    assert corrected[0].corrections[0].check.reason in shown
    assert "UNVERIFIED" in shown
    assert len(srread(written["report.dcm"]).content.get_planar_roi_measurement_groups()) >= 3


def test_findings_and_classes_are_those_of_the_study(written, corrected):
    study, told = corrected[0], groups(dcmread(written["report.dcm"]))
    first = replace(study, corrections=(), before=None, change=None).prediction
    for place, (name, share) in enumerate(study.prediction.items(), start=1):
        assert value(told[f"class {place}"], "Finding") == f"c.{name}"
        assert value(told[f"class {place}"], "class_prob") == pytest.approx(share, abs=1e-6)
        assert value(told[f"class {place}"], "first_prob") == pytest.approx(first[name], abs=1e-6)
    for found in study.explain().concepts:
        group = told[f"finding {found.concept.name}"]
        assert value(group, "score") == pytest.approx(found.score, abs=1e-6)
        assert value(group, "score_without") == pytest.approx(found.absent_score, abs=1e-6)
        assert value(group, "seen") == in_words(found).replace(" ", "_")
        assert (value(group, "strength") is None) == (not tells(found))
        assert value(group, "Observer Type") == codes.DCM.Device.value


def test_each_correction_tells_what_was_claimed_seen_and_confirmed(written, corrected):
    drawn, told = corrected[0].corrections, groups(dcmread(written["report.dcm"]))
    box, check = told["correction 1"], drawn[0].check
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
    against = told["correction 2"]
    assert value(against, "reader_says") == codes.SCT.Absent.value
    assert (value(against, "safety_check"), value(against, "confirmation")) == ("not_checked", "not_asked")
    assert value(told["correction 3"], "Finding") == "any_finding"
    rejected = told["correction 4"]
    assert value(rejected, "Finding") == "f.obsolete_tb"
    assert value(rejected, "on_this_film") == codes.SCT.Absent.value


def test_a_box_over_the_edge_of_the_film_ends_there(written):
    outline = region(groups(dcmread(written["report.dcm"]))["correction 3"])
    stored = dcmread(written["maps.dcm"])
    assert outline.min() >= 0
    assert (outline.max(axis=0) <= (stored.Columns, stored.Rows)).all()


@pytest.mark.parametrize("turn", EDGES, ids=str)
@pytest.mark.parametrize("by", ["patient orientation", "rotation flags"])
def test_a_box_on_the_upright_film_lies_on_the_same_anatomy_in_stored_pixels(opened, tmp_path, turn, by):
    flags = {"ImageRotation": 90 * turn.quarters, "ImageHorizontalFlip": "Y" if turn.flipped else "N"}
    film = stored_film(tmp_path / "film.dcm", turn, **flags if by == "rotation flags" else {})
    study = opened(film).apply(UPRIGHT, None)
    report, maps, boxes = (dcmread(path) for path in write_objects(study, film, tmp_path / "out", None))
    stored = dcmread(film).pixel_array
    bright = stored == 4000

    outline = region(groups(report)["correction 1"])
    here = np.zeros_like(bright)
    here[inside(outline)] = True
    assert np.array_equal(here, bright)

    drawn = boxes.GraphicAnnotationSequence[0]
    assert np.array_equal(np.array(drawn.GraphicObjectSequence[0].GraphicData).reshape(-1, 2), outline)
    x, y = drawn.TextObjectSequence[0].AnchorPoint
    assert turn.point(x, y, FilmSize(maps.Columns, maps.Rows)) == (UPRIGHT.x1, UPRIGHT.y1), "upper left to a person"

    grid = PatchGrid(FilmSize(150, 110), *study.original.mean.shape[-2:])
    shown = [found for found in study.explain().concepts if tells(found)]
    for frame, found in zip(np.atleast_3d(maps.pixel_array).reshape(-1, *stored.shape), shown, strict=True):
        strength = np.clip((found.mean - found.absent_score) / (found.present_score - found.absent_score), 0, 1)
        assert np.array_equal(turn.pixels(frame), grid.spread(np.rint(255 * strength).astype(np.uint8)))


@pytest.mark.parametrize("turn", EDGES, ids=str)
@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
def test_another_viewer_shows_the_film_upright_and_in_its_greys(opened, tmp_path, turn, photometric):
    film = stored_film(tmp_path / "film.dcm", turn, PhotometricInterpretation=photometric)
    study = opened(film).apply(UPRIGHT, None)
    *_, boxes = write_objects(study, film, tmp_path / "out", None)
    ask("dcmp2pgm", "-p", boxes, film, tmp_path / "shown.pgm")
    shown = np.array(Image.open(tmp_path / "shown.pgm")).astype(float)
    assert shown.shape == (110, 150)
    assert np.abs(shown - upright_chest() * (255 / 4095)).max() <= 2


def test_the_maps_belong_to_the_report_and_say_what_they_are(written, corrected):
    maps, report = segread(written["maps.dcm"]), dcmread(written["report.dcm"])
    shown = [found for found in corrected[0].explain().concepts if tells(found)]
    assert [maps.get_segment_description(n).segment_label for n in maps.segment_numbers] == [
        f"{found.concept.title}{' (rejected)' if found.rejected else ''}" for found in shown
    ]
    assert maps.SegmentationFractionalType == "PROBABILITY"
    assert "not a calibrated probability" in maps.SegmentSequence[0].SegmentDescription
    for number, found in enumerate(shown, start=1):
        group = groups(report)[f"finding {found.concept.name}"]
        (to,) = [one for one in group.ContentSequence if said(one) == "Referenced Segmentation Frame"]
        assert to.ReferencedSOPSequence[0].ReferencedSOPInstanceUID == maps.SOPInstanceUID
        assert to.ReferencedSOPSequence[0].ReferencedSegmentNumber == number


def test_maps_of_a_large_film_stay_small(tmp_path):
    film = stored_film(tmp_path / "film.dcm", Rows=2500, Columns=2048)
    chance = np.random.default_rng(0)
    found = [
        SimpleNamespace(concept=one, mean=chance.random((7, 7)), absent_score=0.2, present_score=0.8, rejected=False)
        for one in ConceptSet.built_in("nih")
    ]
    maps = segmentation(
        found, PatchGrid(FilmSize(2048, 2500), 7, 7), read_source(film, FilmLimits()), Makers("a", None)
    )
    maps.save_as(tmp_path / "maps.dcm", enforce_file_format=True)
    assert (maps.NumberOfFrames, maps.Rows, maps.Columns) == (14, 2500, 2048)
    assert (tmp_path / "maps.dcm").stat().st_size < 2_500_000, "of 72 MB"
    assert complaints(tmp_path / "maps.dcm") == []


def test_objects_are_filed_under_the_films_patient_and_study(written, corrected):
    film = dcmread(corrected[1])
    for path in written.values():
        told = dcmread(path)
        for keyword in ("PatientName", "PatientID", "PatientSex", "StudyInstanceUID", "StudyDate", "AccessionNumber"):
            assert told[keyword].value == film[keyword].value, keyword
        assert told.SeriesInstanceUID != film.SeriesInstanceUID
        assert film.SOPInstanceUID in str(told)
        assert told.DeviceSerialNumber == corrected[0].model


def test_a_second_reading_of_a_film_is_another_one_of_the_same_study(written, corrected, tmp_path):
    again = write_dicom_reading(*corrected, tmp_path / "again")
    for path in again:
        one, other = dcmread(path), dcmread(written[path.name])
        assert one.StudyInstanceUID == other.StudyInstanceUID
        assert one.SOPInstanceUID != other.SOPInstanceUID
        assert one.SeriesInstanceUID != other.SeriesInstanceUID


def test_nobody_is_named_as_an_observer_who_was_not_given(corrected, written, tmp_path):
    alone = dcmread(write_dicom_reading(*corrected, tmp_path / "alone")[0])
    seen = [value(alone, "Device Observer Name"), value(alone, "Device Observer Serial Number")]
    assert seen == ["medgrape", corrected[0].model]
    assert "Person Observer Name" not in [said(item) for item in alone.ContentSequence]
    assert "Person Observer Name" in [said(item) for item in dcmread(written["report.dcm"]).ContentSequence]


def test_a_study_without_boxes_has_no_boxes_to_show(opened, tmp_path):
    film = stored_film(tmp_path / "film.dcm")
    paths = write_objects(opened(film).reject("active_tb"), film, tmp_path / "out", None)
    assert sorted(path.name for path in paths) == sorted(path.name for path in (tmp_path / "out").iterdir())
    assert "boxes.dcm" not in [path.name for path in paths]


def test_a_film_without_a_study_goes_along_with_the_one_made_up_for_it(opened, tmp_path):
    film = stored_film(tmp_path / "film.dcm", StudyInstanceUID=None, SeriesInstanceUID=None)
    study = opened(film).apply(UPRIGHT, None)
    told = {path.name: dcmread(path) for path in write_objects(study, film, tmp_path / "out", None)}
    assert {one.StudyInstanceUID for one in told.values()} == {told["film.dcm"].StudyInstanceUID}
    referred = told["boxes.dcm"].ReferencedSeriesSequence[0]
    assert referred.SeriesInstanceUID == told["film.dcm"].SeriesInstanceUID
    assert referred.ReferencedImageSequence[0].ReferencedSOPInstanceUID == told["film.dcm"].SOPInstanceUID
    assert np.array_equal(told["film.dcm"].pixel_array, dcmread(film).pixel_array)
    again = {path.name: dcmread(path) for path in write_objects(study, film, tmp_path / "again", None)}
    assert again["film.dcm"].StudyInstanceUID == told["film.dcm"].StudyInstanceUID


def test_a_reading_is_never_filed_under_another_film(corrected, tmp_path):
    other = stored_film(tmp_path / "other.dcm", Turn(1), WindowCenter=2000)
    with pytest.raises(UserError, match="is not the film that was read"):
        write_dicom_reading(corrected[0], other, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_picture_is_refused_for_it_is_nobodys(corrected, tmp_path):
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(tmp_path / "film.png")
    with pytest.raises(UserError, match="a picture without patient or study"):
        write_dicom_reading(corrected[0], tmp_path / "film.png", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_in_it_is_left_alone(corrected, tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(UserError, match="not empty"):
        write_dicom_reading(*corrected, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


@pytest.mark.parametrize("name", ["", "a\\b", "a=b", "x" * 64, "two\x07bells"])
def test_an_observer_whose_name_dicom_cannot_write_is_refused(corrected, tmp_path, name):
    with pytest.raises(UserError, match="An observer's name"):
        write_dicom_reading(*corrected, tmp_path / "out", observer=name)


def test_without_highdicom_it_says_what_to_install(corrected, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "highdicom", None)
    with pytest.raises(UserError, match=r"pip install 'medgrape\[dicom\]'"):
        write_dicom_reading(*corrected, tmp_path / "out")


def test_nothing_of_a_patient_is_logged(corrected, tmp_path, caplog):
    with caplog.at_level(logging.DEBUG):
        write_dicom_reading(*corrected, tmp_path / "out")
    assert "Müller" not in caplog.text
    assert "4711" not in caplog.text


def test_standard_codes_are_dicoms_own_and_everything_else_is_ours():
    for title, (scheme, keyword) in STANDARD_FINDINGS.items():
        code = finding(Concept("x", title.capitalize(), "A sentence."))
        assert code == getattr(getattr(codes, scheme), keyword)
    assert finding(Concept("cavity", "Cavity", "A sentence.")).scheme_designator == "99MEDGRAPE"
    long = finding(Concept("a" * 63, "b" * 80, "A sentence."))
    assert long.value == "f." + "a" * 63
    assert len(long.meaning) == 64
    assert all(len(code) <= 16 and len(words) <= 64 for code, words in OURS.items())
