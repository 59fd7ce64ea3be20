import numpy as np
import pytest
from evaluation_scenes import dataset, film, readings

from medgrape.evaluation.classification import BINS, brier, calibration, expected_error, reliability


def sure_of_ill(probability, ill, healthy):
    """Films on which the model gives ``ill`` the same probability."""
    films = [film(f"i{n}", "ill") for n in range(ill)] + [film(f"h{n}", "healthy") for n in range(healthy)]
    films += [film("t1", "ill", split="train"), film("t2", "healthy", split="train")]
    return readings(dataset(films), probabilities=[(1 - probability, probability)] * (ill + healthy))


def test_probability_08_with_eight_of_ten_right_has_no_calibration_error():
    assert calibration(sure_of_ill(0.8, ill=8, healthy=2)).expected_error == pytest.approx(0)


def test_probability_09_with_half_right_has_a_calibration_error_of_04():
    result = calibration(sure_of_ill(0.9, ill=5, healthy=5))
    assert result.expected_error == pytest.approx(0.4)
    filled = [entry for entry in result.bins if entry.films]
    assert len(filled) == 1
    assert (filled[0].films, filled[0].accuracy) == (10, 0.5)
    assert filled[0].low <= 0.9 < filled[0].high


def test_errors_in_opposite_directions_do_not_cancel():
    truth = np.array([0] * 10 + [0] * 2 + [1] * 8)
    probabilities = np.array([(0.6, 0.4)] * 10 + [(0.8, 0.2)] * 10)
    assert expected_error(reliability(probabilities, truth)) == pytest.approx((0.4 + 0.6) / 2)


def test_calibration_error_and_brier_score_agree_with_slow_loops():
    chance = np.random.default_rng(0)
    probabilities, truth = chance.dirichlet((1, 1, 1), size=200), chance.integers(0, 3, 200)
    total, squares = 0.0, 0.0
    for number in range(BINS):
        inside = [
            row for row in range(200)
            if number / BINS <= probabilities[row].max() < (number + 1) / BINS
        ]  # fmt: skip
        if inside:
            confidence = sum(probabilities[row].max() for row in inside) / len(inside)
            accuracy = sum(probabilities[row].argmax() == truth[row] for row in inside) / len(inside)
            total += len(inside) / 200 * abs(confidence - accuracy)
    for row in range(200):
        squares += sum((probabilities[row, name] - (name == truth[row])) ** 2 for name in range(3)) / 200
    assert expected_error(reliability(probabilities, truth)) == pytest.approx(total)
    assert brier(probabilities, truth) == pytest.approx(squares)


def test_full_certainty_falls_into_the_last_bin():
    bins = reliability(np.array([(1.0, 0.0)]), np.array([0]))
    assert bins[-1].films == 1
    assert bins[0].confidence is None


def test_the_baseline_of_calibration_are_the_class_frequencies_of_training():
    result = calibration(sure_of_ill(0.8, ill=9, healthy=1))
    assert result.constant.brier == pytest.approx(0.5), "a half for each class, whatever the film"
    assert result.constant.expected_error == pytest.approx(0.4), "it answers healthy, with a half, and is right once"


def test_without_training_films_calibration_has_no_baseline():
    assert calibration(readings(dataset([film("a")]))).constant is None
