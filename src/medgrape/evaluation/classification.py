"""Does the model name the right class, and how much better than always naming the most frequent one?"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from medgrape.evaluation.readings import Readings, training_frequencies, true_classes
from medgrape.evaluation.statistics import Interval, interval, resampled_sums

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


CHANCE_AUC = 0.5


@dataclass(frozen=True)
class ConceptDetection:
    """One concept, over the films on which it is known to be present or absent."""

    name: str
    title: str
    known: int
    present: int
    auc: float | None
    """A score that knows nothing has 0.5. None where no film, or every film, shows the finding."""
    average_precision: float | None
    """None where no film, or every film, shows the finding."""
    prevalence: float | None
    """Share of films that show it: the average precision of a score that knows nothing. None where none is known."""


@dataclass(frozen=True)
class Detection:
    """All concepts in the vocabulary's order, and their means over those that have a figure."""

    concepts: tuple[ConceptDetection, ...]
    mean_auc: float | None
    mean_average_precision: float | None
    mean_prevalence: float | None
    """Over the same concepts: what the mean average precision must beat."""
    warnings: tuple[str, ...]


def detect(readings: Readings) -> Detection:
    """Compare scores with labels; films whose label is not known count neither way."""
    labels = readings.dataset.label_matrix(readings.films)
    found = []
    for place, concept in enumerate(readings.dataset.concepts):
        known = ~np.isnan(labels[:, place])
        present = labels[known, place] == 1
        found.append(_concept(concept.name, concept.title, present, readings.scores[known, place]))
    told = [one for one in found if one.auc is not None]
    warnings = [
        f"Detection of {one.title} has no figure: {one.present} of {one.known} films with a known label show it."
        for one in found
        if one.auc is None
    ]
    return Detection(
        tuple(found),
        _mean([one.auc for one in told]),
        _mean([one.average_precision for one in told]),
        _mean([one.prevalence for one in told]),
        tuple(warnings),
    )


def _concept(
    name: str, title: str, present: Bool[np.ndarray, " films"], scores: Float[np.ndarray, " films"]
) -> ConceptDetection:
    from sklearn.metrics import average_precision_score, roc_auc_score  # slow to import

    known, shown = len(present), int(present.sum())
    prevalence = shown / known if known else None
    if not 0 < shown < known:
        return ConceptDetection(name, title, known, shown, None, None, prevalence)
    auc, precision = roc_auc_score(present, scores), average_precision_score(present, scores)
    return ConceptDetection(name, title, known, shown, float(auc), float(precision), prevalence)


def _mean(values: list[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None


@dataclass(frozen=True)
class ClassFigures:
    """One class against all others. None where a figure is not defined, not where it is bad."""

    name: str
    support: int
    """Films that are of this class."""
    answered: int
    """Films that the model says are of this class."""
    precision: float | None
    """None where the model never gives this answer."""
    recall: float | None
    """None where no film is of this class."""
    f1: float | None
    """None where no film is of this class."""
    auc: float | None
    """None where no film, or every film, is of this class."""


@dataclass(frozen=True)
class MajorityAnswer:
    """Always naming the class that is most frequent in training (the first of them, where several are)."""

    answer: str
    macro_f1: float
    accuracy: float


@dataclass(frozen=True)
class Classification:
    """The answer on each film is its most probable class."""

    films: int
    macro_f1: float
    """Mean F1 over the classes that at least one of the films is of."""
    interval: Interval | None
    """Of the macro-F1; None where there is one patient only."""
    accuracy: float
    macro_auc: float | None
    """Mean over the classes that have one."""
    classes: tuple[ClassFigures, ...]
    confusion: tuple[tuple[int, ...], ...]
    """Films by true class (row) and answer (column)."""
    majority: MajorityAnswer | None
    """None where the data set has no training films."""
    warnings: tuple[str, ...]


def classify(readings: Readings, *, seed: int = 0) -> Classification:
    """Count right and wrong answers; ``seed`` is that of the interval's resampling."""
    truth, names = true_classes(readings), readings.dataset.classes
    answers = readings.probabilities.argmax(axis=1)
    cells = np.eye(len(names) ** 2)[truth * len(names) + answers]
    confusion = cells.sum(axis=0).reshape(len(names), len(names))
    sums = resampled_sums(cells, readings.films, seed=seed)
    figures = tuple(
        _class_figures(name, place, confusion, _auc(truth == place, readings.probabilities[:, place]))
        for place, name in enumerate(names)
    )
    known = [one.auc for one in figures if one.auc is not None]
    return Classification(
        films=len(truth),
        macro_f1=float(macro_f1(confusion)),
        interval=None if sums is None else interval(macro_f1(sums.reshape(-1, len(names), len(names)))),
        accuracy=float(np.trace(confusion) / len(truth)),
        macro_auc=float(np.mean(known)) if known else None,
        classes=figures,
        confusion=tuple(tuple(int(count) for count in row) for row in confusion),
        majority=_majority(readings, truth),
        warnings=_warnings(figures, readings),
    )


def macro_f1(confusion: Float[np.ndarray, "*rounds c c"]) -> Float[np.ndarray, "*rounds"]:
    """Mean F1 over the classes that occur, for one confusion matrix or many.

    A class that no film is of has no F1 and is left out; answering it wrongly still costs the recall of the others.
    """
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    occurs, answered = confusion.sum(axis=-1), confusion.sum(axis=-2)
    f1 = 2 * right / np.maximum(occurs + answered, 1)
    return np.asarray((f1 * (occurs > 0)).sum(axis=-1) / (occurs > 0).sum(axis=-1))


def _class_figures(name: str, place: int, confusion: Float[np.ndarray, "c c"], auc: float | None) -> ClassFigures:
    right, occurs, answered = confusion[place, place], confusion[place].sum(), confusion[:, place].sum()
    return ClassFigures(
        name=name,
        support=int(occurs),
        answered=int(answered),
        precision=float(right / answered) if answered else None,
        recall=float(right / occurs) if occurs else None,
        f1=float(2 * right / (occurs + answered)) if occurs else None,
        auc=auc,
    )


def _auc(present: Bool[np.ndarray, " films"], scores: Float[np.ndarray, " films"]) -> float | None:
    from sklearn.metrics import roc_auc_score  # slow to import

    return float(roc_auc_score(present, scores)) if 0 < present.sum() < len(present) else None


def _majority(readings: Readings, truth: Int[np.ndarray, " films"]) -> MajorityAnswer | None:
    frequencies = training_frequencies(readings.dataset)
    if frequencies is None:
        return None
    answer = int(frequencies.argmax())
    confusion = np.zeros((len(frequencies), len(frequencies)))
    confusion[:, answer] = np.bincount(truth, minlength=len(frequencies))
    return MajorityAnswer(
        readings.dataset.classes[answer], float(macro_f1(confusion)), float(confusion[answer, answer] / len(truth))
    )


def _warnings(figures: tuple[ClassFigures, ...], readings: Readings) -> tuple[str, ...]:
    told = [
        f"No film of class {one.name!r} was read: it has no F1 and no AUC, and the means leave it out."
        for one in figures
        if not one.support
    ]
    if training_frequencies(readings.dataset) is None:
        told.append("The data set has no training films, so there is no most frequent class to compare with.")
    return tuple(told)
