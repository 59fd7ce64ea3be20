"""Whatever films somebody hands to ``fit``, as one data set with a split by patient."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from medgrape.concepts import Concept, ConceptSet
from medgrape.datasets.dataset import SPLITS, Dataset, DrawnBox, FilmRecord, Source, SplitRule, split_films
from medgrape.errors import UserError, nearest
from medgrape.films.reading import upright_size


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


def column(given: Any, what: str, films: int | None = None) -> np.ndarray:  # noqa: ANN401 (lists, arrays, tables)
    """One value for each of so many films; a table of a single column is that column."""
    try:
        found = np.asarray(given)
    except ValueError:  # lists of several lengths
        found = np.empty(())
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise UserError(f"Give {what} as one list, with one entry for each film.")
    if films is not None and len(found) != films:
        raise UserError(f"There are {films} films and {len(found)} {what}; give one for each film.")
    return found


def label_column(y: Any, films: int) -> np.ndarray:  # noqa: ANN401
    """Labels of at least two kinds, none of them missing."""
    if any(_is_missing(label) for label in column(np.asarray(y, dtype=object), "y", films)):
        raise UserError("Some labels are missing; leave films of unknown class out.")
    labels = column(y, "y")
    try:
        kinds = np.unique(labels)
    except TypeError:
        raise UserError(
            "These labels cannot be put in an order; give all of them as text, or all as numbers."
        ) from None
    if len(kinds) < 2:
        raise UserError("All films have the same label; a classifier needs at least two classes to choose from.")
    return labels


def class_names(films: Sequence[Any], labels: np.ndarray) -> dict[Any, str]:
    """Label -> class: as the films themselves call it where each label is one class of theirs, else as it is written.

    Some of scikit-learn's tools number the labels before they hand them on; the classes keep their names all the same.
    """
    written = {label: str(label) for label in np.unique(labels).tolist()}
    if not all(isinstance(film, LabelledFilm) for film in films):
        return written
    pairs = {(label, film.record.class_name) for film, label in zip(films, labels.tolist(), strict=True)}
    known = {label: name for label, name in pairs if name}
    return (
        {label: known[label] for label in written} if len(pairs) == len(known) == len(set(known.values())) else written
    )


def normal_names(normal: Any, classes: Sequence[str]) -> set[str]:  # noqa: ANN401 (whatever somebody set)
    """The classes that show nothing; a name that is none of the classes would change what is learnt, unseen."""
    if isinstance(normal, str):
        raise UserError(f"normal is a list of classes, so write normal=[{normal!r}].")
    names = {str(name) for name in normal}
    for name in sorted(names - set(classes)):
        raise UserError(f"normal names {name!r}, which is none of the labels{nearest(name, classes)}.")
    return names


def _is_missing(label: Any) -> bool:  # noqa: ANN401
    try:
        return label is None or bool(label != label)  # true of NaN alone
    except TypeError:  # pandas' own word for it cannot be compared
        return True


NAME, ROOT = "films handed to fit", Path("/")
"""Paths of these films are absolute; whatever else the root were, the same films would be another data set."""


@dataclass(frozen=True)
class Given:
    """Films, the class of each and, where somebody knows, whose they are."""

    films: Sequence[Any]
    classes: Sequence[str]
    patients: Sequence[str] | None


def gathered(given: Given, classes: tuple[str, ...], normal: Sequence[str], rule: SplitRule) -> Dataset:
    """One data set of them. Findings and boxes come along; of mere paths, the classes are the findings."""
    kinds = {isinstance(film, LabelledFilm) for film in given.films}
    if len(kinds) != 1:
        raise UserError("Give films of labelled_films(), or paths; not none, and not both at once.")
    films, concepts = _labelled(given) if kinds == {True} else _paths(given, classes, normal)
    records = split_films([record for record, _ in films], rule)
    boxes = tuple(box for _, drawn in films for box in drawn)
    return Dataset(NAME, classes, concepts, ROOT, records, boxes, Source("scikit-learn", "", {}, (str(rule),)))


Films = list[tuple[FilmRecord, tuple[DrawnBox, ...]]]


def _labelled(given: Given) -> tuple[Films, ConceptSet]:
    known = {film.concepts for film in given.films}
    if len(known) > 1:
        raise UserError("These films are of data sets with other concepts; prepare one data set of them first.")
    seen, films = Counter[str](), Films()
    for place, (film, class_name) in enumerate(zip(given.films, given.classes, strict=True)):
        seen[film.record.id] += 1  # a film may be drawn twice, as in bootstrapping
        name = film.record.id if seen[film.record.id] == 1 else f"{film.record.id}~{seen[film.record.id]}"
        patient = film.record.patient if given.patients is None else given.patients[place]
        record = replace(
            film.record, id=name, path=str(film.path), class_name=class_name, patient=patient, split="train"
        )
        films.append((record, tuple(replace(box, film=name) for box in film.boxes)))
    return films, known.pop()


def _paths(given: Given, classes: tuple[str, ...], normal: Sequence[str]) -> tuple[Films, ConceptSet]:
    healthy = normal_names(normal, classes)
    shown = _concepts([name for name in classes if name not in healthy])
    films = Films()
    for place, (path, class_name) in enumerate(zip(given.films, given.classes, strict=True)):
        labels = {concept.name: known == class_name for known, concept in shown.items()}
        where = Path(path).resolve()
        patient = str(where) if given.patients is None else given.patients[place]  # it may be drawn twice
        size = upright_size(where).size
        films.append((FilmRecord(f"{place:06d}", str(where), class_name, patient, size, labels), ()))
    return films, ConceptSet(tuple(shown.values()))


def _concepts(classes: Sequence[str]) -> dict[str, Concept]:
    """Class -> finding; where two would be called alike (TB+ and TB-), the second is numbered."""
    found: dict[str, Concept] = {}
    for name in classes:
        concept = replace(Concept.named(name), aliases=())
        taken = {one.name for one in found.values()}
        names = chain([concept.name], (f"{concept.name}_{number}" for number in count(2)))
        found[name] = replace(concept, name=next(free for free in names if free not in taken))
    return found
