from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medgrape.datasets.dataset import UNTESTED, FilmRecord, SplitRule, split_films
from medgrape.errors import UserError
from medgrape.geometry import FilmSize


def clinic(patients=200, test=()):
    """Patients with one to four films each; one in ten is sick."""
    films = []
    for patient in range(patients):
        sick = patient % 10 == 0
        for visit in range(1 + patient % 4):
            split = "test" if patient in test else "train"
            labels = {"cavity": sick}
            name = f"p{patient}"
            films.append(
                FilmRecord(f"{name}-{visit}", "", "sick" if sick else "healthy", name, FilmSize(9, 9), labels, split)
            )
    return films


def sides(films):
    return {film.patient: film.split for film in films}


@given(seed=st.integers(0, 2**32), test=st.sampled_from([0.0, 0.2, 0.4]))
def test_no_patient_is_on_two_sides(seed, test):
    split = split_films(clinic(60), SplitRule(0.2, test, seed))
    assert len({(film.patient, film.split) for film in split}) == 60


def test_every_side_gets_its_share_of_the_rare_class():
    split = split_films(clinic(), SplitRule(0.2, 0.2))
    sick = Counter(side for patient, side in sides(split).items() if int(patient[1:]) % 10 == 0)
    assert sick == {"train": 13, "val": 3, "test": 4}


def test_shares_hold_even_when_every_patient_is_a_class_of_their_own():
    films = [FilmRecord(f"f{n}", "", f"class{n}", f"p{n}", FilmSize(9, 9), {"cavity": False}) for n in range(100)]
    counted = Counter(film.split for film in split_films(films, SplitRule(0.25, 0.2)))
    assert counted == {"test": 20, "val": 20, "train": 60}


def test_the_order_of_the_films_changes_nothing():
    films = clinic()
    shuffled = [films[place] for place in np.random.default_rng(0).permutation(len(films))]
    assert sides(split_films(films, SplitRule())) == sides(split_films(shuffled, SplitRule()))


def test_another_seed_gives_another_split():
    films = clinic()
    assert sides(split_films(films, SplitRule(seed=0))) != sides(split_films(films, SplitRule(seed=1)))


def test_a_published_test_list_is_kept_and_validation_comes_out_of_training():
    published = {3, 10, 77}
    split = sides(split_films(clinic(test=published), SplitRule(0.2, 0.3)))
    assert {patient for patient, side in split.items() if side == "test"} == {"p3", "p10", "p77"}
    assert Counter(split.values())["val"] == pytest.approx(0.2 * 197, abs=1)


@pytest.mark.parametrize("shares", [(0.0, 0.2), (0.5, 1.0), (1.2, 0.0), (0.2, -0.1)])
def test_shares_that_leave_nothing_to_learn_from_are_refused(shares):
    with pytest.raises(UserError, match="leave some for training"):
        SplitRule(*shares)


def test_films_that_must_not_be_tested_on_teach_and_validate_only():
    spared = {f"p{patient}" for patient in range(0, 200, 3)}
    films = [replace(film, split=UNTESTED) if film.patient in spared else film for film in clinic()]
    split = sides(split_films(films, SplitRule(0.2, 0.3)))
    assert {side for patient, side in split.items() if patient in spared} == {"train", "val"}
    assert Counter(split.values())["test"] == pytest.approx(0.3 * (200 - len(spared)), abs=1)
