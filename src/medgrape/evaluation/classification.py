"""Classes against the majority answer, calibration of the probabilities, and detection of concepts."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from medgrape.evaluation.readings import Readings, training_frequencies, true_classes
from medgrape.evaluation.statistics import Interval, interval, resampled_sums

BINS = 15


@dataclass(frozen=True)
class ReliabilityBin:
    """The films whose most probable class has a probability in [low, high); the last bin includes 1."""

    low: float
    high: float
    films: int
    confidence: float | None  # mean probability of the answer; None in an empty bin
    accuracy: float | None  # share of right answers; None in an empty bin


@dataclass(frozen=True)
class ConstantProbabilities:
    """Trivial baseline: the class frequencies of the training films as probabilities of every film."""

    expected_error: float
    brier: float


@dataclass(frozen=True)
class Calibration:
    """How well probabilities agree with observed shares; smaller is better."""

    expected_error: float  # expected calibration error
    brier: float  # Brier score, from 0 to 2
    bins: tuple[ReliabilityBin, ...]
    constant: ConstantProbabilities | None  # None if the data set has no training films


def calibration(readings: Readings) -> Calibration:
    """Compute the calibration of the class probabilities."""
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
    """Group the films by the probability of their answer, in bins of equal width."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    bin_of_film = reliability_bins(confidence)
    films = np.bincount(bin_of_film, minlength=BINS)
    mean_confidence = np.bincount(bin_of_film, confidence, BINS) / np.maximum(films, 1)
    accuracy = np.bincount(bin_of_film, right, BINS) / np.maximum(films, 1)
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


def reliability_bins(confidence: Float[np.ndarray, " films"]) -> Int[np.ndarray, " films"]:
    """Return the index of the reliability bin of each film."""
    return np.clip((confidence * BINS).astype(np.int64), 0, BINS - 1)


def expected_error(bins: tuple[ReliabilityBin, ...]) -> float:
    """Compute the expected calibration error: the mean over films of |confidence - accuracy| of their bins."""
    gaps = [b.films * abs((b.confidence or 0.0) - (b.accuracy or 0.0)) for b in bins]
    return sum(gaps) / sum(b.films for b in bins)


def brier(probabilities: Float[np.ndarray, "films classes"], truth: Int[np.ndarray, " films"]) -> float:
    """Compute the Brier score: the squared distance to the truth, summed over classes and averaged over films."""
    return float(squared_errors(probabilities, truth).mean())


def squared_errors(
    probabilities: Float[np.ndarray, "films classes"], truth: Int[np.ndarray, " films"]
) -> Float[np.ndarray, " films"]:
    """Return the Brier score of each film."""
    return np.asarray(((probabilities - np.eye(probabilities.shape[1])[truth]) ** 2).sum(axis=1))


@dataclass(frozen=True)
class ConceptDetection:
    """One concept, over the films on which it is known to be present or absent."""

    name: str
    title: str
    known: int
    present: int
    auc: float | None  # 0.5 for a random score; None if all known films, or none, show the finding
    average_precision: float | None  # None if all known films, or none, show the finding
    prevalence: float | None  # average precision of a random score; None if the label of no film is known


@dataclass(frozen=True)
class Detection:
    """All concepts in the vocabulary's order, and means over the concepts with an AUC."""

    concepts: tuple[ConceptDetection, ...]
    mean_auc: float | None
    mean_average_precision: float | None
    mean_prevalence: float | None
    warnings: tuple[str, ...]


def detect(readings: Readings) -> Detection:
    """Compare scores with labels; films whose label is unknown do not count."""
    from sklearn.metrics import average_precision_score  # slow to import

    labels = readings.dataset.label_matrix(readings.films)
    concepts = []
    for column, concept in enumerate(readings.dataset.concepts):
        known = ~np.isnan(labels[:, column])
        present, scores = labels[known, column] == 1, readings.scores[known, column]
        films, shown, auc = len(present), int(present.sum()), _auc(present, scores)
        precision = None if auc is None else float(average_precision_score(present, scores))
        prevalence = shown / films if films else None
        concepts.append(ConceptDetection(concept.name, concept.title, films, shown, auc, precision, prevalence))
    measured = [detection for detection in concepts if detection.auc is not None]
    warnings = [
        f"Detection of {d.title} has no figure: {d.present} of {d.known} films with a known label show it."
        for d in concepts
        if d.auc is None
    ]
    return Detection(
        tuple(concepts),
        _mean(d.auc for d in measured),
        _mean(d.average_precision for d in measured),
        _mean(d.prevalence for d in measured),
        tuple(warnings),
    )


def _auc(present: Bool[np.ndarray, " films"], scores: Float[np.ndarray, " films"]) -> float | None:
    from sklearn.metrics import roc_auc_score  # slow to import

    return float(roc_auc_score(present, scores)) if 0 < present.sum() < len(present) else None


def _mean(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None


@dataclass(frozen=True)
class ClassFigures:
    """One class against all others; undefined figures are None."""

    name: str
    support: int  # films of this class
    answered: int  # films for which the model answers this class
    precision: float | None
    recall: float | None
    f1: float | None  # None if no film is of this class
    auc: float | None  # None if all films, or none, are of this class


@dataclass(frozen=True)
class MajorityAnswer:
    """Trivial baseline: always the commonest class of the training films (the first if several are)."""

    answer: str
    macro_f1: float
    accuracy: float


@dataclass(frozen=True)
class Classification:
    """Results of the classification; the answer for a film is its most probable class."""

    films: int
    macro_f1: float  # mean F1 over the classes that occur among the films
    interval: Interval | None  # of the macro-F1; None for a single patient
    accuracy: float
    macro_auc: float | None  # mean over the classes with an AUC
    classes: tuple[ClassFigures, ...]
    confusion: tuple[tuple[int, ...], ...]  # films by true class (row) and answer (column)
    majority: MajorityAnswer | None  # None if the data set has no training films
    warnings: tuple[str, ...]


def classify(readings: Readings, *, seed: int = 0) -> Classification:
    """Compute the classification figures; ``seed`` is that of the resampling for the interval."""
    truth, names = true_classes(readings), readings.dataset.classes
    cells = confusion_cells(readings)
    confusion = cells.sum(axis=0).reshape(len(names), len(names))
    sums = resampled_sums(cells, readings.films, seed=seed)
    right, occurs, answered = np.diagonal(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    classes = tuple(
        ClassFigures(
            name=name,
            support=int(occurs[k]),
            answered=int(answered[k]),
            precision=float(right[k] / answered[k]) if answered[k] else None,
            recall=float(right[k] / occurs[k]) if occurs[k] else None,
            f1=float(2 * right[k] / (occurs[k] + answered[k])) if occurs[k] else None,
            auc=_auc(truth == k, readings.probabilities[:, k]),
        )
        for k, name in enumerate(names)
    )
    warnings = [
        f"No film of class {figures.name!r} was read: it has no F1 and no AUC, and the means leave it out."
        for figures in classes
        if not figures.support
    ]
    majority = _majority(readings, occurs)
    if majority is None:
        warnings.append("The data set has no training films, so there is no most frequent class to compare with.")
    return Classification(
        films=len(truth),
        macro_f1=float(macro_f1(confusion)),
        interval=None if sums is None else interval(macro_f1(sums.reshape(-1, len(names), len(names)))),
        accuracy=float(np.trace(confusion) / len(truth)),
        macro_auc=_mean(figures.auc for figures in classes),
        classes=classes,
        confusion=tuple(tuple(int(count) for count in row) for row in confusion),
        majority=majority,
        warnings=tuple(warnings),
    )


def confusion_cells(readings: Readings) -> Float[np.ndarray, "films cells"]:
    """One-hot encode each film's cell of the flattened confusion matrix."""
    count = len(readings.dataset.classes)
    return np.asarray(np.eye(count**2)[true_classes(readings) * count + readings.probabilities.argmax(axis=1)])


def macro_f1(confusion: Float[np.ndarray, "*rounds c c"]) -> Float[np.ndarray, "*rounds"]:
    """Compute the mean F1 over the classes that occur, for one confusion matrix or many.

    A class without films has no F1 and is left out; wrong answers of that class still lower the recall of the others.
    """
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    occurs, answered = confusion.sum(axis=-1), confusion.sum(axis=-2)
    f1 = 2 * right / np.maximum(occurs + answered, 1)
    return np.asarray((f1 * (occurs > 0)).sum(axis=-1) / (occurs > 0).sum(axis=-1))


def _majority(readings: Readings, support: Float[np.ndarray, " classes"]) -> MajorityAnswer | None:
    frequencies = training_frequencies(readings.dataset)
    if frequencies is None:
        return None
    answer = int(frequencies.argmax())
    confusion = np.outer(support, np.eye(len(frequencies))[answer])
    accuracy = float(support[answer] / support.sum())
    return MajorityAnswer(readings.dataset.classes[answer], float(macro_f1(confusion)), accuracy)
