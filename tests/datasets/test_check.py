import shutil
from dataclasses import replace

import cv2
import numpy as np
import pytest
from PIL import Image

from medgrape.concepts import Concept, ConceptSet
from medgrape.config import Config
from medgrape.datasets.cache import cached_films
from medgrape.datasets.check import check
from medgrape.datasets.dataset import Dataset, DrawnBox, FilmRecord, Source
from medgrape.datasets.figures import contact_sheet, draw_figures
from medgrape.datasets.statistics import blind_pointing
from medgrape.geometry import Box, FilmSize

CONCEPTS = ConceptSet((Concept.named("cavity"), Concept.named("fluid")))
SIZE = FilmSize(96, 80)


@pytest.fixture
def sound(films_folder):
    """Eight films of eight patients, two classes on every side, a box on every film with a finding."""
    splits = ("train", "train", "train", "train", "val", "val", "test", "test")
    films = tuple(
        FilmRecord(f"f{n}", f"film{n}.png", ("well", "ill")[n % 2], f"p{n}", SIZE,
                   {"cavity": n % 2 == 1, "fluid": n == 1}, splits[n], "F", 50, "PA")
        for n in range(8)
    )  # fmt: skip
    boxes = tuple(DrawnBox(film.id, "cavity", Box(10, 10, 34, 30)) for film in films if film.labels["cavity"])
    return Dataset("sound", ("well", "ill"), CONCEPTS, films_folder, films, boxes, Source("table", ""))


def checked(dataset, tmp_path, **options):
    films = cached_films(Config(), dataset, tmp_path / "set")
    return check(dataset, films, **options)


def with_film(dataset, position, **changes):
    films = list(dataset.films)
    films[position] = replace(films[position], **changes)
    return replace(dataset, films=tuple(films))


def test_a_sound_data_set_has_no_errors(sound, tmp_path):
    report = checked(sound, tmp_path)
    assert not report.errors
    assert report.class_counts()["train"] == {"well": 2, "ill": 2}
    assert report.concept_counts()["cavity"] == {"films": 4, "unknown": 0, "boxes": 4}


def test_the_graph_is_counted_with_its_self_loops(sound, tmp_path):
    graph = checked(sound, tmp_path, tau=0.1).to_json()["graph"]
    assert (graph["nodes"], graph["edges"]) == (2, 4)  # one film has both, of three cavities and one fluid
    assert checked(sound, tmp_path, tau=0.5).to_json()["graph"]["edges"] == 3


def test_a_patient_on_two_sides_is_an_error(sound, tmp_path):
    report = checked(with_film(sound, 7, patient="p0"), tmp_path)
    assert report.errors.lines() == ("1 patients in more than one split: p0 in test and train",)


def test_a_film_on_two_sides_is_found_by_its_content(sound, tmp_path):
    shutil.copy(sound.root / "film0.png", sound.root / "film6.png")
    report = checked(sound, tmp_path)
    assert report.errors.lines() == ("1 films that are in two splits: f0 = f6 (the same file)",)


def test_a_film_saved_again_as_a_small_jpeg_is_still_the_same_film(sound, tmp_path):
    picture = cv2.imread(str(sound.root / "film1.png"), cv2.IMREAD_GRAYSCALE)
    Image.fromarray((cv2.resize(picture, (72, 60)) * 0.8 + 20).astype(np.uint8)).save(
        sound.root / "again.jpg", quality=60
    )
    report = checked(with_film(sound, 3, path="again.jpg"), tmp_path)
    assert "1 films that are there twice: f1 = f3 (the same look)" in report.warnings.lines()


def test_the_same_film_with_other_labels_is_reported(sound, tmp_path):
    shutil.copy(sound.root / "film0.png", sound.root / "film1.png")
    assert any("with other labels" in line for line in checked(sound, tmp_path).warnings.lines())


@pytest.mark.parametrize(
    ("box", "message"),
    [
        (DrawnBox("f1", "cavity", Box(80, 10, 97, 30)), "outside their film"),
        (DrawnBox("f1", "cavitty", Box(1, 1, 9, 9)), "did you mean 'cavity'"),
        (DrawnBox("f99", "cavity", Box(1, 1, 9, 9)), "not listed: f99"),
        (DrawnBox("f0", "cavity", Box(1, 1, 9, 9)), "labels deny"),
    ],
)
def test_boxes_that_cannot_be_right_are_errors(sound, tmp_path, box, message):
    report = checked(replace(sound, boxes=(*sound.boxes, box)), tmp_path)
    assert any(message in line for line in report.errors.lines())


def test_empty_classes_and_unreadable_films_are_reported(sound, tmp_path):
    (sound.root / "film2.png").write_bytes(b"junk")
    report = checked(replace(sound, classes=("well", "ill", "rare")), tmp_path)
    assert any("3 classes without a film: rare in train" in line for line in report.warnings.lines())
    assert any("cannot be read" in line for line in report.errors.lines())
    assert any(
        "unknown class" in line for line in checked(with_film(sound, 0, class_name="wel"), tmp_path).errors.lines()
    )


def test_rows_with_labels_alone_are_no_error(sound, tmp_path):
    report = checked(with_film(sound, 0, path=""), tmp_path)
    assert not report.errors
    assert "1 films with labels alone: f0" in report.warnings.lines()


def test_films_shared_with_another_set_are_found(sound, tmp_path):
    other = replace(sound, name="other", films=(replace(sound.films[5], id="x"),), boxes=())
    films = cached_films(Config(), other, tmp_path / "other")
    report = checked(sound, tmp_path, against=(other, films))
    assert "1 films that are also in other: f5 (val) = x (val)" in report.warnings.lines()


def test_borrowed_tbx11k_films_are_reported(sound, tmp_path):
    (sound.root / "imgs/extra").mkdir(parents=True)
    shutil.copy(sound.root / "film4.png", sound.root / "imgs/extra/film4.png")
    borrowed = with_film(replace(sound, source=Source("tbx11k", "")), 4, path="imgs/extra/film4.png")
    assert any("borrowed" in line for line in checked(borrowed, tmp_path).warnings.lines())


def test_blind_pointing_is_reported_beside_every_concept(sound):
    blind = blind_pointing(sound, "cavity")
    assert blind.pairs == 1
    assert blind.fixed == 1.0, "all boxes of this set are in one place"
    assert blind.random == pytest.approx(24 * 20 / (96 * 80), abs=0.01)
    assert blind_pointing(sound, "fluid") is None, "there is no box of it"
    tested_only = replace(sound, boxes=tuple(drawn for drawn in sound.boxes if drawn.film == "f7"))
    assert blind_pointing(tested_only, "cavity").fixed is None, "no training box to learn the point from"


def test_the_pictures_are_drawn_whole(sound, tmp_path):
    films = cached_films(Config(), sound, tmp_path / "set")
    figures = draw_figures(check(sound, films), films, tmp_path / "pictures")
    for path in (figures.contact_sheet, figures.label_counts, figures.co_occurrence):
        with Image.open(path) as picture:
            picture.load()
            assert min(picture.size) > 200
    sheet = np.asarray(contact_sheet(sound, films))
    assert (sheet == (0xE6, 0x9F, 0x00)).all(axis=-1).sum() > 100, "boxes of the first concept are drawn in its colour"
