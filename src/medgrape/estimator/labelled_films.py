"""Films that carry all that is known about them, so that a cross-validation can divide them as it likes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from medgrape.concepts import ConceptSet
from medgrape.data.dataset import SPLITS, Dataset, DrawnBox, FilmRecord
from medgrape.errors import UserError


@dataclass(frozen=True)
class LabelledFilm:
    """One film of a prepared data set, with its findings and boxes."""

    path: Path
    record: FilmRecord
    boxes: tuple[DrawnBox, ...]
    concepts: ConceptSet


@dataclass(frozen=True)
class LabelledFilms:
    """Three columns of the same length."""

    films: np.ndarray
    """Objects, each a ``LabelledFilm``: what scikit-learn calls X."""
    classes: np.ndarray
    """Text: y."""
    patients: np.ndarray
    """Text: ``groups``, so that no patient is on both sides of a fold."""


def labelled_films(data: Path | str | Dataset, *splits: str) -> LabelledFilms:
    """The films of a prepared data set that have a file and a known class; of these splits, or of all."""
    dataset = data if isinstance(data, Dataset) else Dataset.load(Path(data))
    for split in splits:
        if split not in SPLITS:
            raise UserError(f"A split is one of {', '.join(SPLITS)}, not {split!r}.")
    wanted = [
        film for film in dataset.pictured if film.class_name in dataset.classes and film.split in (splits or SPLITS)
    ]
    films = np.empty(len(wanted), dtype=object)
    for place, film in enumerate(wanted):
        boxes = dataset.boxes_by_film.get(film.id, ())
        films[place] = LabelledFilm(dataset.film_path(film).resolve(), film, boxes, dataset.concepts)
    return LabelledFilms(
        films, np.array([film.class_name for film in wanted]), np.array([film.patient for film in wanted])
    )
