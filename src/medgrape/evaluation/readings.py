"""Is what a model said fit to be counted?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.errors import UserError, nearest


@dataclass(frozen=True)
class Readings:
    """One row for each film that could be read."""

    dataset: Dataset
    films: Sequence[FilmRecord]
    probabilities: Float[np.ndarray, "films classes"]
    scores: Float[np.ndarray, "films concepts"]
    """How strongly each concept shows anywhere on the film: the peak of its mean map."""
    mean_maps: Float[np.ndarray, "films concepts h w"]
    """Mean over the concept's prototypes at each patch."""
    max_maps: Float[np.ndarray, "films concepts h w"]
    """Maximum over the concept's prototypes at each patch."""
    cam_maps: Mapping[str, Float[np.ndarray, "films h w"]] = field(default_factory=dict)
    """The CAM head's logits, by concept; those that the model learnt after training have none."""


_SLACK = 1e-2
"""Half precision adds up to 1 only about."""
_KINDS = ("probabilities", "scores", "mean_maps", "max_maps")


class EvaluationError(UserError):
    """Readings that no honest figure can be made of."""


def check_readings(readings: Readings) -> None:
    """Refuse readings that are empty, of another shape than the data set, or no numbers."""
    if not readings.films:
        raise EvaluationError("No film could be read, so there is nothing to evaluate; see medgrape data check.")
    _check_shapes(readings)
    told = {kind.replace("_", " "): getattr(readings, kind) for kind in _KINDS}
    told |= {f"CAM maps of {name}": maps for name, maps in readings.cam_maps.items()}
    for kind, values in told.items():
        broken = np.flatnonzero(~np.isfinite(values.reshape(len(readings.films), -1)).all(axis=1))
        if broken.size:
            film = readings.films[int(broken[0])].id
            raise EvaluationError(
                f"The model's {kind} are not all numbers on {broken.size:,} films, first on {film}; "
                "train it again with a lower learning rate."
            )
    _check_probabilities(readings)


def true_classes(readings: Readings) -> Int[np.ndarray, " films"]:
    """The number of each film's class."""
    places = {name: place for place, name in enumerate(readings.dataset.classes)}
    for film in readings.films:
        if film.class_name not in places:
            hint = nearest(film.class_name, readings.dataset.classes)
            raise EvaluationError(f"Film {film.id} is of the unknown class {film.class_name!r}{hint}; mend films.csv.")
    return np.array([places[film.class_name] for film in readings.films], dtype=np.int64)


def training_frequencies(dataset: Dataset) -> Float[np.ndarray, " classes"] | None:
    """How often each class is seen in training: all that a model knows that looks at no film. None without films."""
    trained = [film.class_name for film in dataset.in_split("train")]
    counts = np.array([trained.count(name) for name in dataset.classes], dtype=np.float64)
    return counts / counts.sum() if counts.sum() else None


def _check_shapes(readings: Readings) -> None:
    films, classes, concepts = len(readings.films), len(readings.dataset.classes), len(readings.dataset.concepts)
    for kind in _KINDS:
        found, shape = getattr(readings, kind).shape, (films, classes if kind == "probabilities" else concepts)
        if found[:2] != shape:
            raise EvaluationError(
                f"The model's {kind.replace('_', ' ')} are of shape {found}, but the data set has {films} films, "
                f"{classes} classes and {concepts} concepts; evaluate a model on the classes and concepts it knows."
            )


def _check_probabilities(readings: Readings) -> None:
    odd = np.abs(readings.probabilities.sum(axis=1, dtype=np.float64) - 1) > _SLACK
    odd |= (readings.probabilities < 0).any(axis=1)
    if odd.any():
        film = readings.films[int(np.flatnonzero(odd)[0])].id
        raise EvaluationError(f"The class probabilities of film {film} do not add up to 1; pass them after softmax.")
