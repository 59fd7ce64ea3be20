"""What an audit measures: the figures of the report as sums over films, with the blind answer beside each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from medgrape.datasets.dataset import FilmRecord
from medgrape.evaluation.audit.sampling import Blind, Measure, OfSums, Ranked, Summed, Sums, ratio
from medgrape.evaluation.classification import BINS, macro_f1
from medgrape.evaluation.localisation import box_energies, localise
from medgrape.evaluation.readings import Readings, training_frequencies, true_classes
from medgrape.safety.claims import Alarms, SimulatedClaims

Confusions = Float[np.ndarray, "n c c"]


@dataclass(frozen=True)
class Checked:
    """Where a safety check warns among the claims on some boxes, and where one does that looks at no film."""

    claims: SimulatedClaims
    own: Alarms
    blind: Alarms | None
    """None where no training film has a box."""
    blind_title: str = ""


@dataclass(frozen=True)
class Changed:
    """Areas of insertion and deletion on each film, by the model's own maps and by patches in an order drawn by lot."""

    deletion: Float[np.ndarray, " films"]
    insertion: Float[np.ndarray, " films"]
    random_deletion: Float[np.ndarray, " films"]
    random_insertion: Float[np.ndarray, " films"]


def figures_of(
    readings: Readings, checked: Checked | None = None, changed: Changed | None = None
) -> list[Summed | Ranked]:
    """All figures, in the order of the page; where nobody drew boxes only those that need none."""
    return [
        *_naming(readings),
        _ranking(readings),
        *_believing(readings),
        *_pointing(readings),
        *_filling(readings),
        *([] if changed is None else _needing(changed)),
        *([] if checked is None else _warning(checked, readings.films)),
    ]


def _naming(readings: Readings) -> list[Summed]:
    """Macro-F1, right answers, and the recall of every class that there are films of."""
    truth, names = true_classes(readings), readings.dataset.classes
    count, kinds = len(names), [truth == place for place in range(len(names))]
    cells = np.eye(count**2)[truth * count + readings.probabilities.argmax(axis=1)]
    frequencies = training_frequencies(readings.dataset)
    answer = None if frequencies is None else int(frequencies.argmax())

    def blind(figure: OfSums | float) -> tuple[Blind, ...]:
        return () if answer is None else (Blind("majority", f"always “{names[answer]}”", figure),)

    def summed(
        measure: Measure, figure: Callable[[Confusions], Float[np.ndarray, " n"]], *occurring: "_Kind"
    ) -> Summed:
        trivial = blind(lambda sums: figure(_always(sums.reshape(-1, count, count), answer or 0)))
        return Summed(
            measure, cells, lambda sums: figure(sums.reshape(-1, count, count)), trivial, (_all(readings),), occurring
        )

    return [
        summed(Measure("macro_f1", "macro-F1", "high"), _macro_f1, *(kind for kind in kinds if kind.any())),
        summed(Measure("accuracy", "right answers", "high"), _accuracy),
        *(
            _share(
                Measure(f"recall_{name}", f"recall of “{name}”", "high"),
                [cells[:, place * (count + 1)], kinds[place]],
                blind(float(place == answer)),
                kinds[place],
            )
            for place, name in enumerate(names)
            if kinds[place].any()
        ),
    ]


def _ranking(readings: Readings) -> Ranked:
    truth = true_classes(readings)
    places = [place for place in range(len(readings.dataset.classes)) if (truth == place).any()]
    present = np.array([truth == place for place in places])
    scores = readings.probabilities[:, places].T.astype(np.float64)
    return Ranked(Measure("auc", "AUC of the classes", "high"), present, scores, (Blind("chance", "chance", 0.5),))


def _believing(readings: Readings) -> list[Summed]:
    """How far probabilities are from shares, and from the truth."""
    truth, frequencies = true_classes(readings), training_frequencies(readings.dataset)
    rows = own = _beliefs(readings.probabilities.astype(np.float64), truth)
    if frequencies is not None:
        rows = np.concatenate([own, _beliefs(np.tile(frequencies, (len(truth), 1)), truth)], axis=1)
    width = own.shape[1]

    def summed(measure: Measure, figure: OfSums) -> Summed:
        blind = Blind("constant", "the same probabilities for every film", lambda sums: figure(sums[:, width:]))
        trivial = () if frequencies is None else (blind,)
        return Summed(measure, rows, lambda sums: figure(sums[:, :width]), trivial, (_all(readings),))

    return [
        summed(Measure("expected_error", "calibration error", "low", compared=False), _expected_error),
        summed(Measure("overconfidence", "overconfidence", "zero"), lambda sums: ratio(sums, 1, 0)),
        summed(Measure("brier", "Brier score", "low"), lambda sums: ratio(sums, 2, 0)),
    ]


def _pointing(readings: Readings) -> list[Summed]:
    """The pointing game of the mean map, by pair."""
    found = localise(readings)
    if found.per_pair is None:
        return []
    each = np.array([(pair.mean.hit, 1, pair.chance, pair.fixed) for pair in found.pairs], dtype=np.float64)
    rows = _by_film(each, [pair.film for pair in found.pairs], readings.films)
    chance = Blind("chance", "a random point", lambda sums: ratio(sums, 2, 1))
    fixed = Blind("fixed", "one fixed point for each concept", lambda sums: ratio(sums, 3, 1))
    trivial = (chance,) if found.per_pair.fixed is None else (chance, fixed)
    measure = Measure("pointing", "pointing, mean map", "high")
    return [Summed(measure, rows, lambda sums: ratio(sums, 0, 1), trivial, (rows[:, 1] > 0,))]


def _filling(readings: Readings) -> list[Summed]:
    """How much of the mean map's energy is in the boxes, by pair."""
    pairs = box_energies(readings)
    if not pairs:
        return []
    each = np.array([(pair.share, 1, pair.area) for pair in pairs], dtype=np.float64)
    rows = _by_film(each, [pair.film for pair in pairs], readings.films)
    flat = Blind("flat", "a map that is the same everywhere", lambda sums: ratio(sums, 2, 1))
    measure = Measure("energy", "box energy", "high")
    return [Summed(measure, rows, lambda sums: ratio(sums, 0, 1), (flat,), (rows[:, 1] > 0,))]


def _needing(changed: Changed) -> list[Summed]:
    """Whether answers rest on what the maps call important, by film."""
    every = np.ones(len(changed.deletion), dtype=bool)
    blind = Blind("random", "patches in a random order", lambda sums: ratio(sums, 2, 1))
    deletion, insertion = Measure("deletion", "deletion", "low"), Measure("insertion", "insertion", "high")
    return [
        _share(deletion, [changed.deletion, every, changed.random_deletion], (blind,), every),
        _share(insertion, [changed.insertion, every, changed.random_insertion], (blind,), every),
    ]


def _warning(checked: Checked, films: Sequence[FilmRecord]) -> list[Summed]:
    """What the run's safety check catches, what it doubts without reason, and both together."""
    claims, alarms = checked.claims, [one for one in (checked.own, checked.blind) if one is not None]
    refutable = claims.wrong.any(axis=1)
    warned = [column for one in alarms for column in (claims.caught(one), claims.false_alarms(one))]
    each = np.column_stack([refutable, np.ones_like(refutable), *warned]).astype(np.float64)
    rows = _by_film(each, [film.id for film in claims.films], films)

    def summed(measure: Measure, figure: "_OfCheck", kind: int, shares: int = 1) -> Summed:
        blind = Blind("majority", checked.blind_title, lambda sums: figure(sums, 4))
        trivial = () if checked.blind is None else (blind,)
        return Summed(measure, rows, lambda sums: figure(sums, 2), trivial, (rows[:, kind] > 0,), shares=shares)

    return [
        summed(Measure("caught", "wrong claims caught", "high"), _caught, 0),
        summed(Measure("false_alarms", "false alarms", "low"), _false_alarms, 1),
        summed(Measure("balance", "balance of the check", "high"), _balance, 0, shares=2),
    ]


def _caught(sums: Sums, own: int) -> Float[np.ndarray, " n"]:
    return ratio(sums, own, 0)


def _false_alarms(sums: Sums, own: int) -> Float[np.ndarray, " n"]:
    return ratio(sums, own + 1, 1)


def _balance(sums: Sums, own: int) -> Float[np.ndarray, " n"]:
    """Of the pooled shares, so that it follows from the two figures before it."""
    return np.asarray((_caught(sums, own) + 1 - _false_alarms(sums, own)) / 2)


_Kind = Bool[np.ndarray, " n"]
_OfCheck = Callable[[Sums, int], Float[np.ndarray, " n"]]
"""A figure of the check whose columns begin there."""


def _all(readings: Readings) -> _Kind:
    return np.ones(len(readings.films), dtype=bool)


def _share(measure: Measure, columns: Sequence[np.ndarray], blind: tuple[Blind, ...], needed: _Kind) -> Summed:
    rows = np.column_stack(columns).astype(np.float64)
    return Summed(measure, rows, lambda sums: ratio(sums, 0, 1), blind, (needed,))


def _always(confusions: Confusions, answer: int) -> Confusions:
    """The same films, all given one answer."""
    return np.asarray(confusions.sum(axis=2, keepdims=True) * np.eye(confusions.shape[-1])[answer])


def _macro_f1(confusions: Confusions) -> Float[np.ndarray, " n"]:
    with np.errstate(invalid="ignore"):  # no films at all have none
        return macro_f1(confusions)


def _accuracy(confusions: Confusions) -> Float[np.ndarray, " n"]:
    right, films = np.trace(confusions, axis1=1, axis2=2), confusions.sum(axis=(1, 2))
    return ratio(np.column_stack([right, films]), 0, 1)


def _beliefs(probabilities: Float[np.ndarray, "films c"], truth: Int[np.ndarray, " films"]) -> Sums:
    """Of each film: one; confidence less rightness; the Brier score; then confidence less rightness in its bin."""
    confidence = probabilities.max(axis=1)
    excess = confidence - (probabilities.argmax(axis=1) == truth)
    squares = ((probabilities - np.eye(probabilities.shape[1])[truth]) ** 2).sum(axis=1)
    bins = np.eye(BINS)[np.clip((confidence * BINS).astype(np.int64), 0, BINS - 1)]
    return np.column_stack([np.ones(len(truth)), excess, squares, bins * excess[:, None]])


def _expected_error(sums: Sums) -> Float[np.ndarray, " n"]:
    return ratio(np.column_stack([np.abs(sums[:, 3:]).sum(axis=1), sums[:, 0]]), 0, 1)


def _by_film(each: Sums, owner: Sequence[str], films: Sequence[FilmRecord]) -> Float[np.ndarray, "films columns"]:
    """What pairs or boxes add, summed up for the film that they are on."""
    places = {film.id: place for place, film in enumerate(films)}
    rows = np.zeros((len(films), each.shape[1]))
    np.add.at(rows, [places[film] for film in owner], each)
    return rows
