"""A small TBX11K in the official layout, and the real one where it is at hand."""

import json

import cv2
import numpy as np
import pytest

from medgrape.datasets.dataset import SplitRule
from medgrape.datasets.draft import IncompleteSourceError, SourceError, finish
from medgrape.datasets.sources.tbx11k import is_borrowed, read_tbx11k
from medgrape.datasets.statistics import co_occurrence
from medgrape.geometry import Box, FilmSize
from scenes import REAL

CATEGORIES = ["ActiveTuberculosis", "ObsoletePulmonaryTuberculosis", "PulmonaryTuberculosis"]


def write_film(path, shape=(64, 64)):
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(len(str(path))).integers(0, 255, shape).astype(np.uint8)
    cv2.imwrite(str(path), noise)


def write_split(folder, name, films, boxes):
    """``films`` by file name; ``boxes`` as (file name, category, x, y, width, height) in a frame of 512 x 512."""
    numbers = {film: number for number, film in enumerate(films, 1)}
    content = {
        "categories": [{"id": number, "name": category} for number, category in enumerate(CATEGORIES, 1)],
        "images": [{"id": numbers[film], "file_name": film, "width": 512, "height": 512} for film in films],
        "annotations": [
            {"id": number, "image_id": numbers[film], "category_id": CATEGORIES.index(category) + 1, "bbox": list(bbox)}
            for number, (film, category, *bbox) in enumerate(boxes, 1)
        ],
    }
    for target in ("annotations/json", "lists"):
        (folder / target).mkdir(parents=True, exist_ok=True)
    (folder / "annotations/json" / f"{name}.json").write_text(json.dumps(content))
    (folder / "lists" / f"{name}.txt").write_text("\n".join(films) + "\n")


@pytest.fixture
def tbx11k(tmp_path):
    """Training: two healthy, two sick, three TB films; test: one of each."""
    folder = tmp_path / "TBX11K"
    train = ["health/h1.png", "health/h2.png", "sick/s1.png", "sick/s2.png", "tb/t1.png", "tb/t2.png", "tb/t3.png"]
    boxes = [
        ("tb/t1.png", "ActiveTuberculosis", 256, 128, 64, 32),
        ("tb/t1.png", "ActiveTuberculosis", 0, 0, 16, 16),
        ("tb/t2.png", "ObsoletePulmonaryTuberculosis", 10, 10, 50, 50),
        ("tb/t3.png", "ActiveTuberculosis", 1, 2, 30, 40),
        ("tb/t3.png", "ObsoletePulmonaryTuberculosis", 100, 2, 30, 40),
    ]
    test = ["health/h9.png", "sick/s9.png", "tb/t9.png"]
    write_split(folder, "TBX11K_train", train, boxes)
    write_split(folder, "TBX11K_val", test, [("tb/t9.png", "ActiveTuberculosis", 1, 1, 9, 9)])
    for film in train + test:
        write_film(folder / "imgs" / film)
    return folder


def test_classes_come_from_folders_and_concepts_from_boxes(tbx11k, tmp_path):
    dataset = finish(read_tbx11k(tbx11k), tmp_path / "out", SplitRule(), allow_missing=False)
    films = {film.id: film for film in dataset.films}
    assert films["h1"].class_name == "healthy"
    assert films["s1"].class_name == "sick_non_tb"
    assert films["t2"].class_name == "active_tb"
    assert films["t3"].labels == {"active_tb": True, "obsolete_tb": True, "pulmonary_tb": False}
    assert not any(films["s1"].labels.values())


def test_a_tb_film_without_a_box_is_not_taken_for_free_of_findings(tbx11k):
    write_split(tbx11k, "TBX11K_val", ["tb/t9.png"], [])
    draft = read_tbx11k(tbx11k)
    assert set(draft.films[-1].labels.values()) == {None}
    assert any("1 TB films have no box" in line for line in draft.notes)


def test_the_official_validation_films_are_the_test_films(tbx11k, tmp_path):
    dataset = finish(read_tbx11k(tbx11k), tmp_path / "out", SplitRule(), allow_missing=False)
    assert {film.id for film in dataset.in_split("test")} == {"h9", "s9", "t9"}


def test_boxes_move_with_films_that_were_resized_and_all_of_them_survive(tbx11k):
    draft = read_tbx11k(tbx11k)
    boxes = [drawn.box for drawn in draft.boxes if drawn.film == "t1"]
    assert draft.films[4].size == FilmSize(64, 64)
    assert boxes == [Box(32, 16, 40, 20), Box(0, 0, 2, 2)]


def test_missing_films_are_counted_and_refused_until_allowed(tbx11k, tmp_path):
    (tbx11k / "imgs/health/h1.png").unlink()
    (tbx11k / "imgs/tb/t1.png").unlink()
    with pytest.raises(
        IncompleteSourceError, match=r"2 listed films missing: health/h1.png, tb/t1.png.*--allow-missing"
    ):
        finish(read_tbx11k(tbx11k), tmp_path / "out", SplitRule(), allow_missing=False)
    assert not (tmp_path / "out").exists()
    dataset = finish(read_tbx11k(tbx11k), tmp_path / "out", SplitRule(), allow_missing=True)
    assert len(dataset.films) == 8
    assert "2 listed films missing" in dataset.source.notes[0]
    assert {drawn.film for drawn in dataset.boxes} == {"t2", "t3", "t9"}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "lists/TBX11K_train.txt").write_text("tb/t1.png\nhealth/h7.png\n"), "only one of"),
        (lambda folder: (folder / "imgs/tb/t2.png").write_bytes(b"junk"), "films unreadable"),
        (lambda folder: (folder / "annotations/json/TBX11K_val.json").unlink(), "label file missing"),
        (
            lambda folder: write_split(
                folder, "TBX11K_val", ["tb/t9.png"], [("tb/t9.png", "ActiveTuberculosis", 500, 500, 90, 90)]
            ),
            "beyond their film",
        ),
    ],
)
def test_contradictions_are_reported(tbx11k, tmp_path, spoil, message):
    spoil(tbx11k)
    with pytest.raises(IncompleteSourceError, match=message):
        finish(read_tbx11k(tbx11k), tmp_path / "out", SplitRule(), allow_missing=False)


def test_extra_films_are_normal_or_of_unknown_activity_and_marked_as_borrowed(tbx11k):
    for name in ("CHNCXR_0001_0", "CHNCXR_0330_1", "MCUCXR_0001_0"):
        write_film(tbx11k / f"imgs/extra/mc+shenzhen/train/{name}.jpg")
    write_film(tbx11k / "imgs/extra/da+db/train/p12.png")
    films = {film.id: film for film in read_tbx11k(tbx11k, extra=True).films if is_borrowed(film.path)}
    assert {name: film.class_name for name, film in films.items()} == {
        "CHNCXR_0001_0": "healthy", "CHNCXR_0330_1": "active_tb", "MCUCXR_0001_0": "healthy", "p12": "active_tb"
    }  # fmt: skip
    assert set(films["CHNCXR_0001_0"].labels.values()) == {False}
    assert set(films["p12"].labels.values()) == {None}


def test_another_folder_is_refused_by_the_file_it_lacks(tmp_path):
    with pytest.raises(SourceError, match=r"TBX11K_train\.json"):
        read_tbx11k(tmp_path)


def test_a_label_file_that_is_no_coco_is_named(tbx11k):
    (tbx11k / "annotations/json/TBX11K_train.json").write_text('{"images": [{"id": 1}]}')
    with pytest.raises(SourceError, match="no COCO file"):
        read_tbx11k(tbx11k)


@pytest.mark.real
@pytest.mark.skipif(not REAL.is_dir(), reason="the real films are not beside the project")
def test_the_official_training_labels_give_three_nodes_and_four_edges(tmp_path):
    dataset = finish(read_tbx11k(REAL / "TBX11K"), tmp_path / "out", SplitRule(), allow_missing=True)
    assert (len(dataset.films), len(dataset.boxes)) == (600, 902)
    assert "6,000 listed films missing" in dataset.source.notes[0]
    edges = co_occurrence(dataset).edges(0.10)
    assert edges.shape == (3, 3)
    assert edges.sum() == 4
    assert edges[0, 1], "active listens to obsolete"


def test_borrowed_films_are_never_cut_into_the_test_split(tbx11k, tmp_path):
    (tbx11k / "annotations/json/TBX11K_val.json").unlink()
    for number in range(20):
        write_film(tbx11k / f"imgs/extra/mc+shenzhen/train/CHNCXR_{number:04}_{number % 2}.jpg")
    draft = read_tbx11k(tbx11k, extra=True)
    dataset = finish(draft, tmp_path / "out", SplitRule(0.2, 0.4), allow_missing=True)
    assert len(dataset.in_split("test")) == 3, "0.4 of the seven official films"
    assert not any(is_borrowed(film.path) for film in dataset.in_split("test"))
    assert any(is_borrowed(film.path) for film in dataset.in_split("val"))
