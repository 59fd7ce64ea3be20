"""Does the model name the right class, and how much better than always naming the most frequent one?"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from medgrape.evaluation.checks import training_frequencies, true_classes
from medgrape.evaluation.readings import Readings
from medgrape.evaluation.statistics import Interval, interval, resampled_sums


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
