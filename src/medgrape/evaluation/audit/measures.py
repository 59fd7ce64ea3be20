"""The measures of an audit: the figures of the report as sums over films, each with its trivial baselines."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float, Int

from medgrape.datasets.dataset import FilmRecord
from medgrape.evaluation.audit.resampling import (
    AucStatistic,
    FigureOfSums,
    Mask,
    Measure,
    Sums,
    SumStatistic,
    TrivialBaseline,
)
from medgrape.evaluation.classification import BINS, confusion_cells, macro_f1, reliability_bins, squared_errors
from medgrape.evaluation.localisation import box_energies, localise
from medgrape.evaluation.readings import Readings, training_frequencies, true_classes
from medgrape.evaluation.statistics import ratio
from medgrape.safety.claims import Alarms, SimulatedClaims

Confusions = Float[np.ndarray, "n c c"]


@dataclass(frozen=True)
class CheckAlarms:
    """Warnings of the run's safety check at claims about boxes, and those of a check that ignores the film."""

    claims: SimulatedClaims
    own: Alarms
    trivial: Alarms | None  # None if no training film has a box
    trivial_title: str = ""


@dataclass(frozen=True)
class FaithfulnessAreas:
    """Insertion and deletion areas of each film: in the order of the model's map, and in a random order."""

    deletion: Float[np.ndarray, " films"]
    insertion: Float[np.ndarray, " films"]
    random_deletion: Float[np.ndarray, " films"]
    random_insertion: Float[np.ndarray, " films"]


def audit_statistics(
    readings: Readings, alarms: CheckAlarms | None = None, areas: FaithfulnessAreas | None = None
) -> list[SumStatistic | AucStatistic]:
    """Return all statistics in the order of the page; without boxes only those that need none."""
    return [
        *_classification(readings),
        _class_auc(readings),
        *_calibration(readings),
        *_pointing_game(readings),
        *_box_energy(readings),
        *([] if areas is None else _faithfulness(areas)),
        *([] if alarms is None else _safety_check(alarms, readings.films)),
    ]


def _classification(readings: Readings) -> Iterator[SumStatistic]:
    """Macro-F1, accuracy, and the recall of every class that occurs."""
    truth, names = true_classes(readings), readings.dataset.classes
    cells, frequencies = confusion_cells(readings), training_frequencies(readings.dataset)
    count, everyone = len(names), np.ones(len(truth), dtype=bool)
    of_class = {place: truth == place for place in range(count) if (truth == place).any()}
    majority = None if frequencies is None else int(frequencies.argmax())

    def baselines(figure: FigureOfSums) -> list[TrivialBaseline]:
        return [] if majority is None else [TrivialBaseline("majority", f"always “{names[majority]}”", figure)]

    def of_confusions(
        measure: Measure, figure: Callable[[Confusions], Float[np.ndarray, " n"]], occurring: Sequence[Mask] = ()
    ) -> SumStatistic:
        def always_majority(sums: Sums) -> Float[np.ndarray, " n"]:
            films_by_class = sums.reshape(-1, count, count).sum(axis=2, keepdims=True)
            return figure(films_by_class * np.eye(count)[majority or 0])

        def own(sums: Sums) -> Float[np.ndarray, " n"]:
            return figure(sums.reshape(-1, count, count))

        return SumStatistic(measure, baselines(always_majority), [everyone], cells, own, occurring=occurring)

    yield of_confusions(Measure("macro_f1", "macro-F1", "high"), _macro_f1, list(of_class.values()))
    yield of_confusions(Measure("accuracy", "right answers", "high"), _accuracy)
    for place, films in of_class.items():
        measure = Measure(f"recall_{names[place]}", f"recall of “{names[place]}”", "high")
        rows = np.column_stack([cells[:, place * (count + 1)], films])
        trivial = baselines(_constant(float(place == majority)))
        yield SumStatistic(measure, trivial, [films], rows, _column_ratio(0, 1))


def _macro_f1(confusions: Confusions) -> Float[np.ndarray, " n"]:
    with np.errstate(invalid="ignore"):  # NaN without films
        return macro_f1(confusions)


def _accuracy(confusions: Confusions) -> Float[np.ndarray, " n"]:
    return ratio(np.trace(confusions, axis1=1, axis2=2), confusions.sum(axis=(1, 2)))


def _class_auc(readings: Readings) -> AucStatistic:
    truth = true_classes(readings)
    occurring = np.unique(truth)
    present, scores = truth == occurring[:, None], readings.probabilities[:, occurring].T.astype(np.float64)
    chance = TrivialBaseline("chance", "chance", _constant(0.5))
    return AucStatistic(Measure("auc", "AUC of the classes", "high"), [chance], [*present, *~present], present, scores)


def _calibration(readings: Readings) -> Iterator[SumStatistic]:
    """Calibration error, overconfidence and Brier score, beside constant probabilities."""
    truth, frequencies = true_classes(readings), training_frequencies(readings.dataset)
    rows = _calibration_rows(readings.probabilities.astype(np.float64), truth)
    width, everyone = rows.shape[1], np.ones(len(truth), dtype=bool)
    if frequencies is not None:
        constant = _calibration_rows(np.tile(frequencies, (len(truth), 1)), truth)
        rows = np.concatenate([rows, constant], axis=1)

    def statistic(measure: Measure, figure: FigureOfSums) -> SumStatistic:
        title = "the same probabilities for every film"
        trivial = TrivialBaseline("constant", title, lambda sums: figure(sums[:, width:]))
        baselines = [] if frequencies is None else [trivial]
        return SumStatistic(measure, baselines, [everyone], rows, lambda sums: figure(sums[:, :width]))

    def expected_error(sums: Sums) -> Float[np.ndarray, " n"]:
        return ratio(np.abs(sums[:, 3:]).sum(axis=1), sums[:, 0])

    yield statistic(Measure("expected_error", "calibration error", "low", compared=False), expected_error)
    yield statistic(Measure("overconfidence", "overconfidence", "zero"), _column_ratio(1, 0))
    yield statistic(Measure("brier", "Brier score", "low"), _column_ratio(2, 0))


def _calibration_rows(probabilities: Float[np.ndarray, "films c"], truth: Int[np.ndarray, " films"]) -> Sums:
    """Return the columns: 1; confidence minus correctness (0 or 1); Brier score; the second column, one per bin."""
    confidence = probabilities.max(axis=1)
    excess = confidence - (probabilities.argmax(axis=1) == truth)
    bins = np.eye(BINS)[reliability_bins(confidence)]
    return np.column_stack([np.ones(len(truth)), excess, squared_errors(probabilities, truth), bins * excess[:, None]])


def _pointing_game(readings: Readings) -> Iterator[SumStatistic]:
    """The pointing game of the mean map, by pair."""
    localisation = localise(readings)
    if localisation.per_pair is not None:
        pairs = localisation.pairs
        counts = np.array([(pair.mean.hit, 1, pair.chance, pair.fixed) for pair in pairs], dtype=np.float64)
        rows = _sums_by_film(counts, [pair.film for pair in pairs], readings.films)
        baselines = [TrivialBaseline("chance", "a random point", _column_ratio(2, 1))]
        if localisation.per_pair.fixed is not None:
            baselines.append(TrivialBaseline("fixed", "one fixed point for each concept", _column_ratio(3, 1)))
        measure = Measure("pointing", "pointing, mean map", "high")
        yield SumStatistic(measure, baselines, [rows[:, 1] > 0], rows, _column_ratio(0, 1))


def _box_energy(readings: Readings) -> Iterator[SumStatistic]:
    """The share of the mean map's energy in the boxes, by pair."""
    pairs = box_energies(readings)
    if pairs:
        counts = np.array([(pair.share, 1, pair.area) for pair in pairs], dtype=np.float64)
        rows = _sums_by_film(counts, [pair.film for pair in pairs], readings.films)
        flat = TrivialBaseline("flat", "a map that is the same everywhere", _column_ratio(2, 1))
        measure = Measure("energy", "box energy", "high")
        yield SumStatistic(measure, [flat], [rows[:, 1] > 0], rows, _column_ratio(0, 1))


def _faithfulness(areas: FaithfulnessAreas) -> Iterator[SumStatistic]:
    everyone = np.ones(len(areas.deletion), dtype=bool)
    random = TrivialBaseline("random", "patches in a random order", _column_ratio(2, 1))
    for measure, own, trivial in (
        (Measure("deletion", "deletion", "low"), areas.deletion, areas.random_deletion),
        (Measure("insertion", "insertion", "high"), areas.insertion, areas.random_insertion),
    ):
        rows = np.column_stack([own, everyone, trivial])
        yield SumStatistic(measure, [random], [everyone], rows, _column_ratio(0, 1))


def _safety_check(alarms: CheckAlarms, films: Sequence[FilmRecord]) -> Iterator[SumStatistic]:
    """The wrong claims caught, the false alarms, and the balance of these two pooled shares."""
    claims = alarms.claims
    refutable = claims.wrong.any(axis=1)
    columns = [refutable, np.ones_like(refutable), claims.caught(alarms.own), claims.false_alarms(alarms.own)]
    if alarms.trivial is not None:
        columns += [claims.caught(alarms.trivial), claims.false_alarms(alarms.trivial)]
    rows = _sums_by_film(np.column_stack(columns).astype(np.float64), [film.id for film in claims.films], films)
    claimed_wrongly, boxed = rows[:, 0] > 0, rows[:, 1] > 0

    def caught(sums: Sums, check: int) -> Float[np.ndarray, " n"]:
        return ratio(sums[:, check], sums[:, 0])

    def false_alarms(sums: Sums, check: int) -> Float[np.ndarray, " n"]:
        return ratio(sums[:, check + 1], sums[:, 1])

    def balance(sums: Sums, check: int) -> Float[np.ndarray, " n"]:
        return np.asarray((caught(sums, check) + 1 - false_alarms(sums, check)) / 2)

    for measure, figure, needed, proportions in (
        (Measure("caught", "wrong claims caught", "high"), caught, claimed_wrongly, 1),
        (Measure("false_alarms", "false alarms", "low"), false_alarms, boxed, 1),
        (Measure("balance", "balance of the check", "high"), balance, claimed_wrongly, 2),
    ):
        own, trivial = partial(figure, check=2), partial(figure, check=4)  # first columns of each check
        baselines = [] if alarms.trivial is None else [TrivialBaseline("majority", alarms.trivial_title, trivial)]
        yield SumStatistic(measure, baselines, [needed], rows, own, proportions=proportions)


def _column_ratio(part: int, whole: int) -> FigureOfSums:
    return lambda sums: ratio(sums[:, part], sums[:, whole])


def _constant(value: float) -> FigureOfSums:
    return lambda sums: np.full(len(sums), value)


def _sums_by_film(
    counts: Sums, owner: Sequence[str], films: Sequence[FilmRecord]
) -> Float[np.ndarray, "films columns"]:
    """Add up the counts of pairs or boxes for the film that they are on."""
    places = {film.id: place for place, film in enumerate(films)}
    rows = np.zeros((len(films), counts.shape[1]))
    np.add.at(rows, [places[film] for film in owner], counts)
    return rows
