"""Boxes and maps of a DICOM reading lie on the same anatomy as on the film that people saw."""

from types import SimpleNamespace

import numpy as np
import pytest
from highdicom.seg import segread
from PIL import Image
from pydicom import dcmread

from dicom_scenes import (
    EDGES,
    UPRIGHT,
    ask,
    complaints,
    groups,
    inside,
    region,
    said,
    stored_film,
    upright_chest,
)
from medgrape.concepts import ConceptSet
from medgrape.config import FilmLimits
from medgrape.geometry import FilmSize, PatchGrid
from medgrape.hospital.codes import Makers
from medgrape.hospital.objects import write_objects
from medgrape.hospital.segmentation import segmentation
from medgrape.hospital.source import read_source

pytestmark = pytest.mark.xdist_group("dicom out")  # what they share is made once


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
    report, maps, boxes = (dcmread(path) for path in write_objects(study, film, tmp_path / "out", None, FilmLimits()))
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
    shown = [found for found in study.explain().concepts if found.is_informative]
    for frame, found in zip(np.atleast_3d(maps.pixel_array).reshape(-1, *stored.shape), shown, strict=True):
        strength = np.clip((found.mean - found.absent_score) / (found.present_score - found.absent_score), 0, 1)
        assert np.array_equal(turn.pixels(frame), grid.spread(np.rint(255 * strength).astype(np.uint8)))


@pytest.mark.parametrize("turn", EDGES, ids=str)
@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
def test_another_viewer_shows_the_film_upright_and_in_its_greys(opened, tmp_path, turn, photometric):
    film = stored_film(tmp_path / "film.dcm", turn, PhotometricInterpretation=photometric)
    study = opened(film).apply(UPRIGHT, None)
    *_, boxes = write_objects(study, film, tmp_path / "out", None, FilmLimits())
    ask("dcmp2pgm", "-p", boxes, film, tmp_path / "shown.pgm")
    shown = np.array(Image.open(tmp_path / "shown.pgm")).astype(float)
    assert shown.shape == (110, 150)
    assert np.abs(shown - upright_chest() * (255 / 4095)).max() <= 2


def test_the_maps_belong_to_the_report_and_say_what_they_are(written, corrected):
    maps, report = segread(written["maps.dcm"]), dcmread(written["report.dcm"])
    shown = [found for found in corrected[0].explain().concepts if found.is_informative]
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


def test_maps_that_people_reshaped_are_not_called_automatic(written, opened, tmp_path):
    film = stored_film(tmp_path / "film.dcm")
    write_objects(opened(film), film, tmp_path / "out", None, FilmLimits())
    untouched, reshaped = dcmread(tmp_path / "out" / "maps.dcm"), dcmread(written["maps.dcm"])
    assert {one.SegmentAlgorithmType for one in untouched.SegmentSequence} == {"AUTOMATIC"}
    assert {one.SegmentAlgorithmType for one in reshaped.SegmentSequence} == {"SEMIAUTOMATIC"}
    assert complaints(tmp_path / "out" / "maps.dcm") == complaints(written["maps.dcm"]) == []


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
