import contextlib
from dataclasses import replace

import numpy as np
import pytest

from medgrape.concepts import ConceptSet
from medgrape.datasets.dataset import Dataset, DatasetError, DrawnBox, FilmRecord, Source, checksum
from medgrape.errors import UserError
from medgrape.files import whole_file, whole_folder
from medgrape.geometry import Box, FilmSize


@pytest.fixture
def dataset(tmp_path):
    concepts = ConceptSet.built_in("tbx11k")
    films = (
        FilmRecord("a", "a.png", "active_tb", "p1", FilmSize(512, 400), {"active_tb": True, "obsolete_tb": False,
                   "pulmonary_tb": None}, "train", "F", 71, "PA"),
        FilmRecord('b, "quoted"', "", "healthy", "p2", FilmSize(10, 20), dict.fromkeys(concepts.names, False), "test"),
    )  # fmt: skip
    boxes = (DrawnBox("a", "active_tb", Box(1.5, 2, 30.25, 40)), DrawnBox("a", "active_tb", Box(100, 2, 130, 40)))
    source = Source("table", "/somewhere", {"films.csv": "0" * 64}, ("a note",))
    return Dataset("two films", ("healthy", "active_tb"), concepts, tmp_path / "elsewhere", films, boxes, source)


def test_a_data_set_survives_being_written_and_read(dataset, tmp_path):
    dataset.save(tmp_path / "set")
    again = Dataset.load(tmp_path / "set")
    assert replace(again, root=dataset.root) == dataset
    assert again.root.resolve() == dataset.root.resolve()


def test_two_boxes_of_one_finding_on_one_film_both_survive(dataset, tmp_path):
    dataset.save(tmp_path / "set")
    assert len(Dataset.load(tmp_path / "set").boxes_by_film["a"]) == 2


def test_a_data_set_that_holds_its_films_can_be_moved(dataset, tmp_path):
    replace(dataset, root=tmp_path / "set" / "films").save(tmp_path / "set")
    (tmp_path / "set").rename(tmp_path / "moved")
    assert Dataset.load(tmp_path / "moved").root == tmp_path / "moved" / "films"


def test_unknown_labels_are_neither_present_nor_absent(dataset):
    assert np.array_equal(dataset.label_matrix(dataset.films), [[1, 0, np.nan], [0, 0, 0]], equal_nan=True)


def test_the_checksum_changes_with_a_single_label(dataset, tmp_path):
    dataset.save(tmp_path / "one")
    first, second = dataset.films
    replace(dataset, films=(replace(first, age=72), second)).save(tmp_path / "two")
    assert checksum(tmp_path / "one") != checksum(tmp_path / "two")


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("films.csv", ",train,", ",trian,", "line 2: split is one of train, val, test"),
        ("films.csv", "512,400", "512,none", "line 2: a value does not fit"),
        ("films.csv", "obsolete_tb", "obsolete", "no column 'obsolete_tb' .*did you mean 'obsolete'"),
        ("films.csv", ",1,0,\n", ",yes,0,\n", "line 2: a value does not fit"),
        ("films.csv", '"b, ""quoted"""', "a", "'a' is there twice"),
        ("boxes.csv", "1.5,2,30.25,40", "30.25,2,1.5,40", "line 2: A box needs x1 < x2"),
        ("boxes.csv", "1.5,", "one,", "line 2"),
        ("dataset.toml", "classes", "class", "lacks something.*classes"),
        ("dataset.toml", "name =", "name", "cannot be read"),
    ],
)
def test_a_spoilt_file_is_named_with_its_line(dataset, tmp_path, file, old, new, message):
    dataset.save(tmp_path)
    text = (tmp_path / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new, 1))
    with pytest.raises(UserError, match=message):
        Dataset.load(tmp_path)


def test_a_folder_without_a_data_set_says_how_to_make_one(tmp_path):
    with pytest.raises(DatasetError, match="medgrape data prepare"):
        Dataset.load(tmp_path)


def test_a_file_is_whole_or_not_there(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with contextlib.suppress(RuntimeError), whole_file(target) as draft:
        draft.write_text("half of the ne")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_is_whole_or_not_there_and_never_overwrites(tmp_path):
    target = tmp_path / "set"
    with contextlib.suppress(RuntimeError), whole_folder(target) as draft:
        (draft / "films.csv").write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    target.mkdir()
    (target / "precious").touch()
    with pytest.raises(UserError, match="not empty"), whole_folder(target):
        pass
    assert (target / "precious").exists()
