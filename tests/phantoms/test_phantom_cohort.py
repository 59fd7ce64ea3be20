from collections import Counter, defaultdict

import numpy as np
import pytest

from medgrape.errors import UserError
from medgrape.phantoms.cohort import PROFILES, Shortcut, nih_statistics, plan


@pytest.mark.parametrize("profile", ["tb", "nih"])
def test_asking_for_more_films_does_not_change_the_first_ones(profile):
    assert plan(profile, 200, seed=7)[:50] == plan(profile, 50, seed=7)


def test_an_unknown_profile_is_refused_with_the_known_ones():
    with pytest.raises(UserError, match="known: nih, tb"):
        plan("mri", 1, seed=0)


@pytest.mark.parametrize("profile", ["tb", "nih"])
def test_film_ids_are_unique_and_name_patient_and_visit(profile):
    exams = plan(profile, 500, seed=3)

    assert len({exam.film_id for exam in exams}) == 500
    assert all(exam.film_id == f"{exam.patient_id}-{exam.visit:02d}" for exam in exams)


@pytest.mark.parametrize("profile", ["tb", "nih"])
def test_a_patient_keeps_sex_and_grows_no_younger(profile):
    by_patient = defaultdict(list)
    for exam in plan(profile, 800, seed=3):
        by_patient[exam.patient].append(exam)

    assert max(map(len, by_patient.values())) > 1
    for visits in by_patient.values():
        assert len({exam.sex for exam in visits}) == 1
        assert [exam.age for exam in visits] == sorted(exam.age for exam in visits)


def test_a_tb_film_has_one_or_more_concepts_and_no_other_film_has_any():
    exams = plan("tb", 1500, seed=1)
    classes = Counter(exam.class_name for exam in exams)

    assert set(classes) == set(PROFILES["tb"].classes)
    assert min(classes.values()) > 350
    for exam in exams:
        assert bool(exam.concepts) == (exam.class_name == "active_tb")
        assert bool(exam.findings) == (exam.class_name != "healthy")


def test_tb_films_often_have_more_than_one_lesion_and_show_every_concept():
    sick = [exam for exam in plan("tb", 2000, seed=1) if exam.concepts]

    assert np.mean([len(exam.findings) > 1 for exam in sick]) > 0.5
    for concept in PROFILES["tb"].concepts:
        assert np.mean([concept in exam.concepts for exam in sick]) > 0.2


def test_neither_view_nor_sex_nor_device_gives_away_the_tb_class():
    exams = plan("tb", 3000, seed=1)
    signs = {
        "AP": lambda exam: exam.view == "AP",
        "female": lambda exam: exam.sex == "F",
        "pacemaker": lambda exam: "pacemaker" in exam.devices,
        "marker": lambda exam: "marker" in exam.devices,
    }
    for sign in signs.values():
        shares = [np.mean([sign(exam) for exam in exams if exam.class_name == name]) for name in PROFILES["tb"].classes]
        assert max(shares) - min(shares) < 0.05


def test_an_nih_film_is_of_class_finding_exactly_when_it_has_one():
    for exam in plan("nih", 1000, seed=1):
        assert exam.concepts == exam.findings
        assert exam.class_name == ("finding" if exam.findings else "no_finding")


def test_nih_findings_are_as_common_and_as_often_together_as_in_the_real_table():
    counted = nih_statistics()
    bits = counted.label_sets[:, None] >> np.arange(14) & 1
    real = np.einsum("s,si,sj->ij", counted.label_set_shares, bits, bits)

    exams = plan("nih", 4000, seed=1)
    shown = np.array([[finding in exam.findings for finding in counted.findings] for exam in exams])
    drawn = shown.T.astype(float) @ shown / len(exams)

    assert np.abs(drawn - real).max() < 0.015
    assert np.mean(~shown.any(axis=1)) == pytest.approx(0.538, abs=0.02)


def test_nih_patients_are_as_often_female_and_filmed_lying_as_in_the_real_table():
    exams = plan("nih", 4000, seed=1)

    assert np.mean([s.sex == "F" for s in exams if s.visit == 0]) == pytest.approx(0.46, abs=0.04)
    assert np.mean([s.view == "AP" for s in exams]) == pytest.approx(0.40, abs=0.03)


@pytest.mark.parametrize(("profile", "concept"), [("tb", "active_tb"), ("nih", "cardiomegaly")])
@pytest.mark.parametrize("lies", [False, True])
def test_a_planted_pacemaker_follows_its_concept_or_lies(profile, concept, lies):
    shortcut = Shortcut(with_concept=0.9, without_concept=0.1, lies=lies)
    exams = plan(profile, 2500, seed=1, shortcut=shortcut)
    with_concept = [s.has_shortcut for s in exams if concept in s.concepts]
    without = [s.has_shortcut for s in exams if concept not in s.concepts]

    assert np.mean(with_concept) == pytest.approx(0.1 if lies else 0.9, abs=0.08)
    assert np.mean(without) == pytest.approx(0.9 if lies else 0.1, abs=0.04)
    assert all(s.has_shortcut == ("pacemaker" in s.devices) for s in exams)


def test_a_shortcut_changes_nothing_but_the_device():
    plain = plan("nih", 300, seed=1)
    planted = plan("nih", 300, seed=1, shortcut=Shortcut(concept="effusion"))

    for before, after in zip(plain, planted, strict=True):
        assert (before.film_id, before.findings, before.view) == (after.film_id, after.findings, after.view)
        assert set(before.devices) ^ set(after.devices) <= {"pacemaker"}


def test_without_a_shortcut_no_film_claims_one():
    assert not any(exam.has_shortcut for exam in plan("tb", 300, seed=1))


@pytest.mark.parametrize(
    ("shortcut", "message"),
    [(Shortcut(concept="cardiomegaly"), "no concept 'cardiomegaly'"), (Shortcut(device="pacemakr"), "'pacemaker'")],
)
def test_a_shortcut_that_cannot_be_planted_is_refused(shortcut, message):
    with pytest.raises(UserError, match=message):
        plan("tb", 4, seed=0, shortcut=shortcut)


def test_patients_of_another_seed_have_other_names():
    names = [{exam.patient_id for exam in plan("tb", 20, seed=seed)} for seed in (0, 1, 2)]
    assert not names[0] & names[1]
    assert not names[1] & names[2]
