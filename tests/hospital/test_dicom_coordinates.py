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
    complaints,
    concept_name,
    groups,
    inside,
    region,
    run_program,
    stored_film,
    upright_chest,
)
from medgrape.concepts import ConceptSet
from medgrape.config import FilmLimits
from medgrape.explain.film_evidence import ConceptEvidence
from medgrape.geometry import FilmSize, PatchGrid
from medgrape.hospital.codes import Provenance
from medgrape.hospital.objects import write_objects
from medgrape.hospital.segmentation import build_segmentation
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
    shown = [evidence for evidence in study.explain().concepts if evidence.is_informative]
    for frame, evidence in zip(np.atleast_3d(maps.pixel_array).reshape(-1, *stored.shape), shown, strict=True):
        strength = np.clip(
            (evidence.mean - evidence.absent_score) / (evidence.present_score - evidence.absent_score), 0, 1
        )
        assert np.array_equal(turn.pixels(frame), grid.spread(np.rint(255 * strength).astype(np.uint8)))


@pytest.mark.parametrize("turn", EDGES, ids=str)
@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
def test_another_viewer_shows_the_film_upright_and_in_its_greys(opened, tmp_path, turn, photometric):
    film = stored_film(tmp_path / "film.dcm", turn, PhotometricInterpretation=photometric)
    study = opened(film).apply(UPRIGHT, None)
    *_, boxes = write_objects(study, film, tmp_path / "out", None, FilmLimits())
    run_program("dcmp2pgm", "-p", boxes, film, tmp_path / "shown.pgm")
    shown = np.array(Image.open(tmp_path / "shown.pgm")).astype(float)
    assert shown.shape == (110, 150)
    assert np.abs(shown - upright_chest() * (255 / 4095)).max() <= 2


def test_the_report_refers_to_the_maps_and_they_are_described(written, corrected):
    maps, report = segread(written["maps.dcm"]), dcmread(written["report.dcm"])
    shown = [evidence for evidence in corrected[0].explain().concepts if evidence.is_informative]
    assert [maps.get_segment_description(n).segment_label for n in maps.segment_numbers] == [
        f"{evidence.concept.title}{' (rejected)' if evidence.rejected else ''}" for evidence in shown
    ]
    assert maps.SegmentationFractionalType == "PROBABILITY"
    assert "not a calibrated probability" in maps.SegmentSequence[0].SegmentDescription
    for number, evidence in enumerate(shown, start=1):
        group = groups(report)[f"finding {evidence.concept.name}"]
        (to,) = [item for item in group.ContentSequence if concept_name(item) == "Referenced Segmentation Frame"]
        assert to.ReferencedSOPSequence[0].ReferencedSOPInstanceUID == maps.SOPInstanceUID
        assert to.ReferencedSOPSequence[0].ReferencedSegmentNumber == number


def test_maps_after_corrections_are_not_called_automatic(written, opened, tmp_path):
    film = stored_film(tmp_path / "film.dcm")
    write_objects(opened(film), film, tmp_path / "out", None, FilmLimits())
    untouched, reshaped = dcmread(tmp_path / "out" / "maps.dcm"), dcmread(written["maps.dcm"])
    assert {item.SegmentAlgorithmType for item in untouched.SegmentSequence} == {"AUTOMATIC"}
    assert {item.SegmentAlgorithmType for item in reshaped.SegmentSequence} == {"SEMIAUTOMATIC"}
    assert complaints(tmp_path / "out" / "maps.dcm") == complaints(written["maps.dcm"]) == []


def test_maps_of_a_large_film_stay_small(tmp_path):
    film = stored_film(tmp_path / "film.dcm", Rows=2500, Columns=2048)
    chance = np.random.default_rng(0)
    concepts = [
        ConceptEvidence(concept, 0.5, 0.2, 0.8, chance.random((7, 7)), np.zeros((7, 7)), ())
        for concept in ConceptSet.built_in("nih")
    ]
    explanation = SimpleNamespace(concepts=concepts, grid=PatchGrid(FilmSize(2048, 2500), 7, 7))
    maps = build_segmentation(explanation, read_source(film, FilmLimits()), Provenance("a", None))
    maps.save_as(tmp_path / "maps.dcm", enforce_file_format=True)
    assert (maps.NumberOfFrames, maps.Rows, maps.Columns) == (14, 2500, 2048)
    assert (tmp_path / "maps.dcm").stat().st_size < 2_500_000, "of 72 MB"
    assert complaints(tmp_path / "maps.dcm") == []
