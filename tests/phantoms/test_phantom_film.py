import hashlib
import subprocess
import sys
from dataclasses import replace

import cv2
import numpy as np
import pytest

from medgrape.geometry import Box, FilmSize
from medgrape.phantoms.cohort import PROFILES, plan
from medgrape.phantoms.film import draw
from medgrape.phantoms.findings import FINDINGS

DIGEST = """
import hashlib
from medgrape.phantoms.film import draw
from medgrape.phantoms.cohort import plan
for profile in ("tb", "nih"):
    for exam in reversed(plan(profile, 6, seed=9)):
        film = draw(exam, 96)
        lesions = b"".join(lesion.mask.tobytes() for lesion in film.lesions)
        print(film.exam.film_id, hashlib.sha256(film.pixels.tobytes() + lesions).hexdigest())
"""


def digest(film):
    lesions = b"".join(lesion.mask.tobytes() for lesion in film.lesions)
    return hashlib.sha256(film.pixels.tobytes() + lesions).hexdigest()


def test_a_film_is_the_same_in_another_process_and_in_reversed_order():
    printed = subprocess.run([sys.executable, "-c", DIGEST], capture_output=True, text=True, check=True)
    elsewhere = dict(line.split() for line in printed.stdout.splitlines())

    here = {exam.film_id: digest(draw(exam, 96)) for profile in ("tb", "nih") for exam in plan(profile, 6, seed=9)}

    assert elsewhere == here


def test_another_seed_gives_other_films():
    one, other = draw(plan("tb", 1, seed=1)[0], 64), draw(plan("tb", 1, seed=2)[0], 64)

    assert not np.array_equal(one.pixels, other.pixels)


@pytest.mark.parametrize("profile", ["tb", "nih"])
def test_a_film_uses_the_grey_range_from_the_air_beside_the_body_to_the_mediastinum(profile):
    for exam in plan(profile, 12, seed=4):
        pixels = draw(exam).pixels

        assert pixels.shape == (224, 224)
        assert np.percentile(pixels, 0.5) < 60
        assert np.percentile(pixels, 99.5) > 170
        assert pixels.std() > 35


def test_lungs_are_darker_than_the_heart_and_brighter_than_the_air_beside_the_body(healthy):
    pixels = draw(healthy, 256).pixels.astype(float)
    right_lung, heart, abdomen = pixels[85:130, 65:90], pixels[140:160, 120:145], pixels[225:245, 100:160]

    assert pixels[2:12, 2:12].mean() < right_lung.mean() - 20
    assert right_lung.mean() < heart.mean() - 40
    assert right_lung.mean() < abdomen.mean() - 40


@pytest.mark.parametrize("profile", ["tb", "nih"])
def test_every_lesion_lies_on_the_film_and_its_box_is_the_box_around_its_mask(profile, small_films):
    for film in small_films(profile):
        frame = FilmSize(*film.pixels.shape)
        for lesion in film.lesions:
            assert lesion.mask.shape == film.pixels.shape
            assert lesion.box == Box.around(lesion.mask)
            assert lesion.box.within(frame)


@pytest.mark.parametrize("profile", ["tb", "nih"])
def test_a_concept_is_positive_exactly_where_a_lesion_of_it_is_drawn(profile, small_films):
    for film in small_films(profile):
        drawn = {lesion.concept for lesion in film.lesions if lesion.concept is not None}

        assert drawn == set(film.exam.concepts)


def test_disease_outside_tuberculosis_is_drawn_but_is_no_concept_of_the_tb_profile():
    exam = next(exam for exam in plan("tb", 60, seed=3) if exam.class_name == "sick_non_tb")

    film = draw(exam, 96)

    assert film.lesions
    assert all(lesion.concept is None for lesion in film.lesions)


@pytest.mark.parametrize("finding", sorted(set(FINDINGS) - {"cardiomegaly"}))
def test_every_finding_visibly_changes_the_film_inside_its_mask_and_nowhere_else(finding, healthy, monkeypatch):
    """Against the same chest with everything else of the finding, but not its drawing."""
    exams = [replace(healthy, patient=healthy.patient + n, devices=(), findings=(finding,)) for n in range(3)]
    shown = [draw(exam) for exam in exams]
    known = FINDINGS[finding]
    draw_on_copy = replace(known, draw=lambda chest, site, random: known.draw(replace(chest), site, random))
    monkeypatch.setitem(FINDINGS, finding, draw_on_copy)
    for film, hidden in zip(shown, map(draw, exams), strict=True):
        difference = np.abs(film.pixels.astype(float) - hidden.pixels)
        mask = film.lesions[0].mask
        assert np.percentile(difference[mask], 75) >= 4.0
        around = cv2.dilate(mask.astype(np.uint8), np.ones((9, 9), np.uint8)) > 0  # softened edges, grain
        strong = difference > 0.5 * np.percentile(difference[mask], 90)
        assert (strong & ~around).sum() <= 0.05 * strong.sum()


def test_cardiomegaly_is_the_heart_itself(healthy):
    well, sick = draw(replace(healthy, devices=())), draw(replace(healthy, devices=(), findings=("cardiomegaly",)))
    mask = sick.lesions[0].mask
    assert np.abs(sick.pixels.astype(float) - well.pixels)[mask].mean() > 3.0
    assert 0.3 < sick.lesions[0].box.width / 224 < 0.7


def test_a_lesion_stays_where_it_is_between_visits_of_a_patient():
    exams = plan("tb", 300, seed=6)
    later = next(exam for exam in exams if exam.visit == 1 and "cavity" in exam.findings)
    first = next(exam for exam in exams if exam.patient == later.patient)

    before, after = (draw(exam, 128).lesions for exam in (first, later))

    assert [lesion.finding for lesion in before] == [lesion.finding for lesion in after]
    for old, new in zip(before, after, strict=True):
        assert np.hypot(*np.subtract(old.box.centre, new.box.centre)) < 0.15 * 128


@pytest.mark.parametrize("size", [224, 512])
def test_boxes_are_at_the_same_place_at_every_film_size(size):
    exam = next(exam for exam in plan("tb", 60, seed=3) if len(exam.concepts) > 1)
    coarse, fine = draw(exam, 128), draw(exam, size)

    for small, large in zip(coarse.lesions, fine.lesions, strict=True):
        shift = np.subtract(small.box.centre, np.multiply(large.box.centre, 128 / size))
        assert np.abs(shift).max() < 6


def test_devices_are_recorded_with_their_masks(healthy):
    film = draw(replace(healthy, devices=("pacemaker", "marker")), 128)

    assert [device.name for device in film.devices] == ["pacemaker", "marker"]
    assert all(device.mask.any() for device in film.devices)
    assert all(film.pixels[device.mask].mean() > film.pixels.mean() for device in film.devices)


def test_every_finding_of_every_profile_can_be_drawn():
    for profile in PROFILES.values():
        assert set(profile.concept_of) <= set(FINDINGS)
