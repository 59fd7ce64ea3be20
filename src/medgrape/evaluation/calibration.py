"""When the model says 0.9, is it right nine times of ten?"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from medgrape.evaluation.checks import training_frequencies, true_classes
from medgrape.evaluation.readings import Readings

BINS = 15


@dataclass(frozen=True)
class ReliabilityBin:
    """The films whose most probable class has a probability from ``low`` up to (but not including) ``high``.

    The last bin includes 1.
    """

    low: float
    high: float
    films: int
    confidence: float | None
    """Mean probability of the answer; None in an empty bin."""
    accuracy: float | None
    """Share of right answers; None in an empty bin."""


@dataclass(frozen=True)
class ConstantProbabilities:
    """Always giving the class frequencies of the training films as probabilities."""

    expected_error: float
    brier: float


@dataclass(frozen=True)
class Calibration:
    """How far probabilities are from shares; smaller is better throughout."""

    expected_error: float
    """Expected calibration error: distance of confidence and accuracy, weighted by the films in each bin."""
    brier: float
    """Squared distance to the truth, summed over classes and averaged over films: from 0 to 2."""
    bins: tuple[ReliabilityBin, ...]
    constant: ConstantProbabilities | None
    """None where the data set has no training films."""


def calibration(readings: Readings) -> Calibration:
    """Compare the probability of the answer with how often it is right."""
    truth = true_classes(readings)
    probabilities = readings.probabilities.astype(np.float64)
    frequencies = training_frequencies(readings.dataset)
    constant = None
    if frequencies is not None:
        same = np.tile(frequencies, (len(truth), 1))
        constant = ConstantProbabilities(expected_error(reliability(same, truth)), brier(same, truth))
    bins = reliability(probabilities, truth)
    return Calibration(expected_error(bins), brier(probabilities, truth), bins, constant)


def reliability(
    probabilities: Float[np.ndarray, "films classes"], truth: Int[np.ndarray, " films"]
) -> tuple[ReliabilityBin, ...]:
    """Films by the probability of their answer, in bins of equal width."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    place = np.clip((confidence * BINS).astype(np.int64), 0, BINS - 1)
    films = np.bincount(place, minlength=BINS)
    mean_confidence = np.bincount(place, confidence, BINS) / np.maximum(films, 1)
    accuracy = np.bincount(place, right, BINS) / np.maximum(films, 1)
    return tuple(
        ReliabilityBin(
            number / BINS,
            (number + 1) / BINS,
            int(films[number]),
            float(mean_confidence[number]) if films[number] else None,
            float(accuracy[number]) if films[number] else None,
        )
        for number in range(BINS)
    )


def expected_error(bins: tuple[ReliabilityBin, ...]) -> float:
    """Distance of confidence and accuracy, averaged over films."""
    gaps = [one.films * abs((one.confidence or 0.0) - (one.accuracy or 0.0)) for one in bins]
    return sum(gaps) / sum(one.films for one in bins)


def brier(probabilities: Float[np.ndarray, "films classes"], truth: Int[np.ndarray, " films"]) -> float:
    """Squared distance to the truth, summed over classes and averaged over films."""
    wanted = np.eye(probabilities.shape[1])[truth]
    return float(((probabilities - wanted) ** 2).sum(axis=1).mean())
