"""Films that somebody hands to fit, as one data set."""

import pytest

import medgrape as mg
from medgrape.data.dataset import Dataset
from medgrape.data.splits import SplitRule
from medgrape.errors import UserError
from medgrape.estimator.gathering import Given, gathered

RULE = SplitRule(validation=0.3, seed=1)


@pytest.fixture
def films(ward):
    return mg.labelled_films(ward)


def test_no_patient_both_teaches_and_chooses(films):
    dataset = gathered(Given(films.films, films.classes, None), tuple(sorted(set(films.classes))), (), RULE)
    learnt, chosen = ({film.patient for film in dataset.in_split(split)} for split in ("train", "val"))

    assert learnt
    assert chosen
    assert not learnt & chosen
    assert not dataset.in_split("test")


def test_a_film_that_is_drawn_twice_keeps_its_boxes_and_its_patient(films, ward):
    boxed = [film for film in films.films if film.boxes][:1] * 2
    dataset = gathered(Given(boxed, ["ill", "ill"], None), ("ill",), (), RULE)
    one, other = dataset.films

    assert one.id != other.id
    assert one.patient == other.patient
    assert one.split == other.split
    assert [box.box for box in dataset.boxes_by_film[one.id]] == [box.box for box in dataset.boxes_by_film[other.id]]
    assert dataset.concepts == Dataset.load(ward).concepts


def test_of_mere_paths_the_classes_are_the_findings_but_for_the_normal_one(films):
    paths = [film.path for film in films.films[:4]]
    dataset = gathered(Given(paths, ["well", "ill", "ill", "3"], None), ("3", "ill", "well"), ["well"], RULE)

    assert dataset.concepts.names == ("finding_3", "ill")
    assert [film.labels["ill"] for film in dataset.films] == [False, True, True, False]
    assert len({film.patient for film in dataset.films}) == 4


def test_a_path_that_is_drawn_twice_is_one_patient_who_never_both_teaches_and_chooses(films):
    paths = [film.path for film in films.films[:12]] * 3
    dataset = gathered(Given(paths, ["ill"] * 36, None), ("ill",), (), RULE)
    learnt, chosen = ({film.path for film in dataset.in_split(split)} for split in ("train", "val"))

    assert learnt
    assert chosen
    assert not learnt & chosen
    assert len({film.id for film in dataset.films}) == 36


def test_only_films_of_a_split_that_exists_are_handed_out(ward, films):
    tested = mg.labelled_films(Dataset.load(ward), "test")
    assert 0 < len(tested.films) < len(films.films)
    with pytest.raises(UserError, match="not 'tets'"):
        mg.labelled_films(ward, "tets")
