import csv

import numpy as np
import pytest

from medgrape.datasets.dataset import SplitRule
from medgrape.datasets.draft import IncompleteSourceError, SourceError, finish
from medgrape.datasets.sources.vindr import read_vindr
from medgrape.geometry import Box, FilmSize
from scenes import radiograph, save

FINDINGS = ["Aortic enlargement", "Nodule/Mass", "Pleural effusion", "Tuberculosis", "No finding"]


def write_csv(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def write_boxes(folder, split, rows):
    header = ["image_id", "rad_id", "class_name", "x_min", "y_min", "x_max", "y_max"]
    write_csv(folder / f"annotations/annotations_{split}.csv", header, rows)


@pytest.fixture
def vindr(tmp_path, chest):
    """Film a: two of three readers see a nodule, one an effusion; film b: nothing; film t, for testing: an aorta."""
    folder = tmp_path / "vindr"
    labels = ["image_id", "rad_id", *FINDINGS]
    write_csv(
        folder / "annotations/image_labels_train.csv",
        labels,
        [
            ["a", "R1", 0, 1, 0, 0],
            ["a", "R2", 0, 1, 1, 0],
            ["a", "R3", 0, 0, 0, 1],
            *[["b", f"R{n}", 0, 0, 0, 0, 1] for n in (1, 2, 3)],
        ],
    )
    write_csv(folder / "annotations/image_labels_test.csv", ["image_id", *FINDINGS], [["t", 1, 0, 0, 0, 0]])
    nodule = [["a", "R1", "Nodule/Mass", 10, 20, 30, 40], ["a", "R2", "Nodule/Mass", 12, 22, 32, 42]]
    outvoted = [["a", "R2", "Pleural effusion", 100, 100, 150, 150]]
    write_boxes(folder, "train", [*nodule, *outvoted, ["b", "R1", "No finding", "", "", "", ""]])
    write_boxes(folder, "test", [["t", "", "Aortic enlargement", 5, 5, 50, 60]])
    for split, name in (("train", "a"), ("train", "b"), ("test", "t")):
        (folder / split).mkdir(exist_ok=True)
        shifted = np.roll(chest, ord(name), axis=1)
        save(
            radiograph(shifted, PatientSex="F", PatientAge="061Y", ViewPosition="PA"), folder / split / f"{name}.dicom"
        )
    return folder


def test_readers_vote_and_every_box_of_an_agreed_finding_survives(vindr, tmp_path):
    dataset = finish(read_vindr(vindr), tmp_path / "out", SplitRule(), allow_missing=False)
    film = dataset.films[0]
    assert {name for name, present in film.labels.items() if present} == {"nodule_mass"}
    assert [drawn.box for drawn in dataset.boxes_by_film["a"]] == [Box(10, 20, 30, 40), Box(12, 22, 32, 42)]
    assert any("1 boxes of train films left out" in line for line in dataset.source.notes)
    assert {name for name, present in read_vindr(vindr, votes=1).films[0].labels.items() if present} == {
        "nodule_mass", "pleural_effusion"
    }  # fmt: skip


def test_size_sex_age_and_view_come_from_the_film_itself(vindr, tmp_path):
    film = finish(read_vindr(vindr), tmp_path / "out", SplitRule(), allow_missing=False).films[0]
    assert (film.size, film.sex, film.age, film.view) == (FilmSize(300, 200), "F", 61, "PA")


def test_the_published_test_films_stay_test_films(vindr, tmp_path):
    dataset = finish(read_vindr(vindr), tmp_path / "out", SplitRule(), allow_missing=False)
    assert {film.id for film in dataset.in_split("test")} == {"t"}
    assert dataset.boxes_by_film["t"][0].concept == "aortic_enlargement"


def test_what_is_missing_or_contradictory_is_reported(vindr, tmp_path):
    (vindr / "train/b.dicom").rename(vindr / "train/z.dicom")
    write_boxes(vindr, "test", [["t", "", "Aortic enlargement", 5, 5, 5000, 60]])
    with pytest.raises(IncompleteSourceError, match=r"missing: train/b;.*without a label: train/z.*beyond their film"):
        finish(read_vindr(vindr), tmp_path / "out", SplitRule(), allow_missing=False)


def test_a_missing_label_file_or_column_is_named(vindr):
    (vindr / "annotations/annotations_test.csv").write_text("image_id\n")
    with pytest.raises(SourceError, match="class_name"):
        read_vindr(vindr)
    (vindr / "annotations/annotations_test.csv").unlink()
    with pytest.raises(SourceError, match=r"annotations_test\.csv"):
        read_vindr(vindr)


def test_readers_who_disagree_leave_a_finding_unknown_and_the_film_is_not_called_healthy(vindr):
    readings = [["a", "R1", 1, 0, 0, 0, 0], ["a", "R2", 0, 1, 0, 0, 0], ["a", "R3", 0, 0, 1, 0, 0]]
    sick = [["b", f"R{n}", 0, 0, 0, 1, 0] for n in (1, 2, 3)]
    write_csv(vindr / "annotations/image_labels_train.csv", ["image_id", "rad_id", *FINDINGS], [*readings, *sick])
    draft = read_vindr(vindr)
    disputed, tuberculous = draft.films[:2]
    assert (disputed.class_name, tuberculous.class_name) == ("finding", "finding")
    assert disputed.labels["nodule_mass"] is None
    assert disputed.labels["edema"] is False
    assert any("Tuberculosis" in line for line in draft.notes)


def test_a_corner_that_is_no_number_and_a_short_row_are_reported(vindr, tmp_path):
    write_boxes(vindr, "test", [["t", "", "Aortic enlargement", "left", 5, 50, 60], ["t", "", "Aortic enlargement"]])
    with pytest.raises(IncompleteSourceError, match="2 boxes without area"):
        finish(read_vindr(vindr), tmp_path / "out", SplitRule(), allow_missing=False)
