import gzip

import cv2
import numpy as np
import pytest

from medgrape.datasets.dataset import SplitRule
from medgrape.datasets.draft import IncompleteSourceError, SourceError, finish
from medgrape.datasets.sources.nih import read_nih
from medgrape.geometry import Box, FilmSize
from scenes import REAL

HEADER = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]\n"
)
ROWS = [
    "00000001_000.png,Cardiomegaly|Effusion,0,1,58,M,PA,2682,2749,0.143,0.143",
    "00000001_001.png,No Finding,1,1,059Y,M,AP,2682,2749,0.143,0.143",
    "00000002_000.png,Infiltration,0,2,411,F,PA,2682,2749,0.143,0.143",
    "00000003_000.png,Hernia,0,3,81,F,PA,2682,2749,0.143,0.143",
]
BOXES = "Image Index,Finding Label,Bbox [x,y,w,h],,,\n00000002_000.png,Infiltrate,512.0,256.0,256.0,128.0,,,\n"


@pytest.fixture
def nih(tmp_path):
    """Four rows; the last film is not there, the first two are of one patient, the third is an official test film."""
    folder = tmp_path / "ChestX-ray14"
    films = folder / "images_001" / "images"
    films.mkdir(parents=True)
    (folder / "Data_Entry_2017_v2020.csv").write_text(HEADER + "\n".join(ROWS) + "\n")
    (folder / "BBox_List_2017.csv.gz").write_bytes(gzip.compress(BOXES.encode()))
    (folder / "train_val_list.txt").write_text("00000001_000.png\n00000001_001.png\n00000003_000.png\n")
    (folder / "test_list.txt").write_text("00000002_000.png\n")
    for stem in ("00000001_000", "00000001_001", "00000002_000"):
        noise = np.random.default_rng(int(stem[:8])).integers(0, 255, (256, 256)).astype(np.uint8)
        cv2.imwrite(str(films / f"{stem}.jpg"), noise)
    return folder


def test_films_are_found_by_stem_and_rows_without_a_film_are_left_out_and_told(nih, tmp_path):
    dataset = finish(read_nih(nih), tmp_path / "out", SplitRule(), allow_missing=False)
    assert [film.id for film in dataset.films] == ["00000001_000", "00000001_001", "00000002_000"]
    assert any("1 of 4 labelled films are not in the folder" in line for line in dataset.source.notes)


def test_all_rows_keeps_labels_without_a_film(nih, tmp_path):
    dataset = finish(read_nih(nih, all_rows=True), tmp_path / "out", SplitRule(), allow_missing=False)
    assert len(dataset.films) == 4
    assert (dataset.films[3].path, dataset.films[3].size) == ("", FilmSize(1024, 1024))
    assert dataset.films[3].labels["hernia"]


def test_boxes_of_the_published_square_move_to_the_film_that_is_there(nih):
    (drawn,) = read_nih(nih).boxes
    assert (drawn.concept, drawn.box) == ("infiltration", Box(128, 64, 192, 96))


def test_labels_people_and_the_official_test_list_are_kept(nih, tmp_path):
    dataset = finish(read_nih(nih), tmp_path / "out", SplitRule(), allow_missing=False)
    first, second, third = dataset.films
    assert {name for name, present in first.labels.items() if present} == {"cardiomegaly", "effusion"}
    assert (first.class_name, second.class_name) == ("finding", "no_finding")
    assert (first.patient, second.age, second.view, third.sex) == (second.patient, 59, "AP", "F")
    assert third.split == "test"
    assert third.age is None, "nobody is 411 years old"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Hernia", "Hernya", "unknown labels"),
        ("Hernia", "No Finding|Hernia", "contradictory"),
        ("00000003_000.png,Hernia", "00000004_000.png,Hernia", "neither official list"),
        ("00000001_001.png,No", "00000009_001.png,No", "films without a label"),
    ],
)
def test_contradictions_are_reported(nih, tmp_path, old, new, message):
    file = nih / "Data_Entry_2017_v2020.csv"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(IncompleteSourceError, match=message):
        finish(read_nih(nih, all_rows=True), tmp_path / "out", SplitRule(), allow_missing=False)


def test_a_box_that_the_labels_deny_is_reported(nih, tmp_path):
    (nih / "BBox_List_2017.csv.gz").write_bytes(gzip.compress(BOXES.replace("Infiltrate", "Mass").encode()))
    with pytest.raises(IncompleteSourceError, match="labels deny"):
        finish(read_nih(nih), tmp_path / "out", SplitRule(), allow_missing=False)


@pytest.mark.parametrize("name", ["Data_Entry_2017_v2020.csv", "BBox_List_2017.csv.gz", "test_list.txt"])
def test_a_missing_label_file_is_named(nih, name):
    (nih / name).unlink()
    with pytest.raises(SourceError, match=name.split(".")[0]):
        read_nih(nih)


def test_another_table_is_refused_by_the_column_it_lacks(nih):
    (nih / "Data_Entry_2017_v2020.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SourceError, match="Image Index"):
        read_nih(nih)


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.skipif(not REAL.is_dir(), reason="the real films are not beside the project")
def test_the_real_folder_is_read_whole(tmp_path):
    dataset = finish(read_nih(REAL / "ChestX-ray14"), tmp_path / "out", SplitRule(), allow_missing=False)
    assert len(dataset.films) == 5664
    assert not dataset.in_split("test")
    rows = read_nih(REAL / "ChestX-ray14", all_rows=True)
    assert (len(rows.films), len(rows.boxes)) == (112_120, 984)
    assert not rows.complaints


@pytest.mark.parametrize(
    "row", ["00000002_000.png", "00000002_000.png,Infiltrate,a,b,c,d", "00000002_000.png,Infiltrate,1"]
)
def test_a_box_row_that_makes_no_sense_is_reported(nih, row):
    (nih / "BBox_List_2017.csv.gz").write_bytes(gzip.compress(f"header\n\n{row}\n".encode()))
    assert len(read_nih(nih).complaints.lines()) == 1


def test_a_label_row_cut_short_and_empty_lines_in_a_list(nih):
    with (nih / "Data_Entry_2017_v2020.csv").open("a") as file:
        file.write("00000004_000.png,Mass\n")
    with (nih / "test_list.txt").open("a") as file:
        file.write("\n\n")
    assert read_nih(nih).complaints.lines() == ("1 label rows cut short: 00000004_000.png,Mass",)


def test_two_files_of_one_film_stand_for_neither(nih):
    (nih / "images").mkdir()
    first = nih / "images_001/images/00000001_000.jpg"
    (nih / "images/00000001_000.png").write_bytes(first.read_bytes())
    draft = read_nih(nih)
    assert "film files of one name" in draft.complaints.lines()[0]
    assert "00000001_000" not in {film.id for film in draft.films}


def test_a_share_is_tested_on_only_where_no_official_test_film_is_there(nih, tmp_path):
    rule = SplitRule(0.15, 0.5)
    official = finish(read_nih(nih), tmp_path / "official", rule, allow_missing=False)
    assert [film.id for film in official.in_split("test")] == ["00000002_000"]
    (nih / "images_001/images/00000002_000.jpg").unlink()
    noise = np.random.default_rng(3).integers(0, 255, (256, 256)).astype(np.uint8)
    cv2.imwrite(str(nih / "images_001/images/00000003_000.jpg"), noise)
    cut = finish(read_nih(nih), tmp_path / "cut", rule, allow_missing=False)
    assert len({film.patient for film in cut.in_split("test")}) == 1, "half of the two patients"
