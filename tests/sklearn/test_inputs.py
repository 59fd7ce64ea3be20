"""Films that somebody hands to fit, as one data set."""

import numpy as np
import pytest

import medgrape as mg
from medgrape.datasets.dataset import Dataset, SplitRule
from medgrape.errors import UserError
from medgrape.sklearn.inputs import FitInput, class_names, column, gather_dataset, label_column, normal_names

RULE = SplitRule(validation=0.3, seed=1)


@pytest.fixture
def films(drawn_dataset):
    return mg.labelled_films(drawn_dataset)


def test_no_patient_is_in_training_and_validation(films):
    dataset = gather_dataset(FitInput(films.films, films.classes, None), tuple(sorted(set(films.classes))), (), RULE)
    learnt, chosen = ({film.patient for film in dataset.in_split(split)} for split in ("train", "val"))

    assert learnt
    assert chosen
    assert not learnt & chosen
    assert not dataset.in_split("test")


def test_a_film_that_occurs_twice_keeps_its_boxes_and_its_patient(films, drawn_dataset):
    boxed = [film for film in films.films if film.boxes][:1] * 2
    dataset = gather_dataset(FitInput(boxed, ["ill", "ill"], None), ("ill",), (), RULE)
    one, other = dataset.films

    assert one.id != other.id
    assert one.patient == other.patient
    assert one.split == other.split
    assert [box.box for box in dataset.boxes_by_film[one.id]] == [box.box for box in dataset.boxes_by_film[other.id]]
    assert dataset.concepts == Dataset.load(drawn_dataset).concepts


def test_for_paths_the_classes_are_the_findings_except_normal_ones(films):
    paths = [film.path for film in films.films[:4]]
    dataset = gather_dataset(FitInput(paths, ["well", "ill", "ill", "3"], None), ("3", "ill", "well"), ["well"], RULE)

    assert dataset.concepts.names == ("finding_3", "ill")
    assert [film.labels["ill"] for film in dataset.films] == [False, True, True, False]
    assert len({film.patient for film in dataset.films}) == 4


def test_a_path_that_occurs_twice_is_one_patient_in_one_split(films):
    paths = [film.path for film in films.films[:12]] * 3
    dataset = gather_dataset(FitInput(paths, ["ill"] * 36, None), ("ill",), (), RULE)
    learnt, chosen = ({film.path for film in dataset.in_split(split)} for split in ("train", "val"))

    assert learnt
    assert chosen
    assert not learnt & chosen
    assert len({film.id for film in dataset.films}) == 36


def test_an_unknown_split_is_refused(drawn_dataset, films):
    tested = mg.labelled_films(Dataset.load(drawn_dataset), "test")
    assert 0 < len(tested.films) < len(films.films)
    with pytest.raises(UserError, match="not 'tets'"):
        mg.labelled_films(drawn_dataset, "tets")


@pytest.mark.parametrize("labels", [[-1, 1], ["TB+", "TB-"], ["结核", "正常"], [True, False]])
def test_labels_that_are_spelled_alike_are_findings_of_their_own(films, labels):
    paths = [film.path for film in films.films[:2]]
    names = class_names(paths, label_column(labels, 2))
    dataset = gather_dataset(FitInput(paths, [names[label] for label in labels], None), tuple(names.values()), (), RULE)

    assert len(set(dataset.concepts.names)) == 2
    assert [sum(film.labels.values()) for film in dataset.films] == [1, 1]


def test_labels_have_the_class_names_of_their_films_if_each_is_one_class(films):
    number = np.unique(films.classes, return_inverse=True)[1]
    merged = np.where(films.classes == "healthy", "well", "ill")

    assert class_names(films.films, number) == dict(enumerate(np.unique(films.classes)))
    assert class_names(films.films, merged) == {"well": "well", "ill": "ill"}
    assert class_names([film.path for film in films.films], number) == {0: "0", 1: "1", 2: "2"}


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["ill", None], "Some labels are missing"),
        ([0.0, float("nan")], "Some labels are missing"),
        (["ill", float("nan")], "Some labels are missing"),
        (["ill", "ill"], "the same label"),
        ([1, ("a",)], "Give y as one list"),
        ([["a", "b"], ["c", "d"]], "Give y as one list"),
        (np.array(["a", 1], dtype=object), "cannot be sorted"),
    ],
)
def test_invalid_labels_give_an_error(labels, sentence):
    with pytest.raises(UserError, match=sentence):
        label_column(labels, 2)


def test_a_table_of_one_column_is_that_column():
    assert label_column(np.array([["a"], ["b"]]), 2).tolist() == ["a", "b"]
    assert column([["film.png"], ["other.png"]], "films").tolist() == ["film.png", "other.png"]


@pytest.mark.parametrize(
    ("normal", "sentence"),
    [("healthy", r"write normal=\['healthy'\]"), (["helthy"], "did you mean 'healthy'"), ([0], "'0', which is none")],
)
def test_an_unknown_normal_class_is_refused(normal, sentence):
    with pytest.raises(UserError, match=sentence):
        normal_names(normal, ["healthy", "ill"])


def test_normal_classes_may_be_given_as_labels():
    assert normal_names([0, False], ["0", "1", "False"]) == {"0", "False"}
