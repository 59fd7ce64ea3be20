"""A model must look: neither one fixed point nor a random one may find the lesions."""

import json
from importlib import resources

import numpy as np
import pytest

from medgrape.phantoms.cohort import PROFILES

STATISTICS = json.loads(resources.files("medgrape.phantoms").joinpath("nih_statistics.json").read_text())
BLIND_POINTING = STATISTICS["reference"]
"""Rates at which one fixed point and a random point hit the real boxes of each finding."""
BOXED = sorted(BLIND_POINTING)


@pytest.mark.slow
@pytest.mark.parametrize("concept", PROFILES["tb"].concepts)
def test_no_fixed_point_and_no_random_point_finds_a_tb_concept(concept, drawn_boxes):
    films = [film for film in drawn_boxes("tb", 1800) if any(name == concept for name, _ in film.boxes)]
    train = np.mean([film.hits(concept) for film in films if film.patient % 2], axis=0)
    test = np.mean([film.hits(concept) for film in films if not film.patient % 2], axis=0)

    assert test[np.unravel_index(train.argmax(), train.shape)] <= 0.30
    assert test.mean() <= 0.10


@pytest.mark.parametrize("concept", PROFILES["tb"].concepts)
def test_tb_lesions_lie_in_both_lungs_and_in_all_zones(concept, drawn_boxes):
    boxes = np.array([box for film in drawn_boxes("tb", 1800) for name, box in film.boxes if name == concept])
    across, down = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2

    assert 0.35 < np.mean(across < 0.5) < 0.65
    assert np.mean(down < 0.33) > 0.1
    assert np.mean(down > 0.5) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("finding", BOXED)
def test_nih_lesions_are_as_guessable_as_the_real_boxes(finding, drawn_boxes):
    real = BLIND_POINTING[finding]
    films = [film for film in drawn_boxes("nih", 320, *BOXED) if film.boxes[0][0] == finding]
    hit_rates = np.mean([film.hits(finding) for film in films], axis=0)

    assert hit_rates.max() == pytest.approx(real["fixed_point"], abs=0.10)
    assert hit_rates.mean() == pytest.approx(real["random_point"], abs=0.10)
    assert 0.5 < hit_rates.mean() / real["random_point"] < 2, "boxes are of the real size, not only of a harmless one"
