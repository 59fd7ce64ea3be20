"""The outputs of a model on some films, and the check that figures can be computed from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.errors import UserError, nearest


@dataclass(frozen=True)
class Readings:
    """Outputs of a model, one row for each film that could be read."""

    dataset: Dataset
    films: Sequence[FilmRecord]
    probabilities: Float[np.ndarray, "films classes"]
    scores: Float[np.ndarray, "films concepts"]  # peak of each concept's mean map
    mean_maps: Float[np.ndarray, "films concepts h w"]  # mean over the concept's prototypes at each patch
    max_maps: Float[np.ndarray, "films concepts h w"]  # maximum over the concept's prototypes at each patch
    cam_maps: Mapping[str, Float[np.ndarray, "films h w"]] = field(default_factory=dict)
    """Logits of the CAM head by concept; concepts that the model learned after training have none."""


_TOLERANCE = 1e-2  # half-precision probabilities add up to 1 only roughly
_ARRAYS = ("probabilities", "scores", "mean_maps", "max_maps")


class EvaluationError(UserError):
    """An evaluation that is not possible, such as one of invalid readings."""


def check_readings(readings: Readings) -> None:
    """Raise if the readings are empty, do not fit the data set, or hold values that are not finite."""
    if not readings.films:
        raise EvaluationError("No film could be read, so there is nothing to evaluate; see medgrape data check.")
    films, classes, concepts = len(readings.films), len(readings.dataset.classes), len(readings.dataset.concepts)
    for name in _ARRAYS:
        shape = getattr(readings, name).shape
        if shape[:2] != (films, classes if name == "probabilities" else concepts):
            raise EvaluationError(
                f"The model's {name.replace('_', ' ')} are of shape {shape}, but the data set has {films} films, "
                f"{classes} classes and {concepts} concepts; evaluate a model on the classes and concepts it knows."
            )
    arrays = {name.replace("_", " "): getattr(readings, name) for name in _ARRAYS}
    arrays |= {f"CAM maps of {name}": maps for name, maps in readings.cam_maps.items()}
    for name, values in arrays.items():
        invalid = np.flatnonzero(~np.isfinite(values.reshape(films, -1)).all(axis=1))
        if invalid.size:
            film = readings.films[int(invalid[0])].id
            raise EvaluationError(
                f"The model's {name} are not all numbers on {invalid.size:,} films, first on {film}; "
                "train it again with a lower learning rate."
            )
    wrong = np.abs(readings.probabilities.sum(axis=1, dtype=np.float64) - 1) > _TOLERANCE
    wrong |= (readings.probabilities < 0).any(axis=1)
    if wrong.any():
        film = readings.films[int(np.flatnonzero(wrong)[0])].id
        raise EvaluationError(f"The class probabilities of film {film} do not add up to 1; pass them after softmax.")


def true_classes(readings: Readings) -> Int[np.ndarray, " films"]:
    """Return the index of each film's class."""
    indices = {name: index for index, name in enumerate(readings.dataset.classes)}
    for film in readings.films:
        if film.class_name not in indices:
            hint = nearest(film.class_name, readings.dataset.classes)
            raise EvaluationError(
                f"Film {film.id} is of the unknown class {film.class_name!r}{hint}; correct films.csv."
            )
    return np.array([indices[film.class_name] for film in readings.films], dtype=np.int64)


def training_frequencies(dataset: Dataset) -> Float[np.ndarray, " classes"] | None:
    """Return the share of each class among the training films, the trivial prediction; None without such films."""
    trained = [film.class_name for film in dataset.in_split("train")]
    counts = np.array([trained.count(name) for name in dataset.classes], dtype=np.float64)
    return counts / counts.sum() if counts.sum() else None
