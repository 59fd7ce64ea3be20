"""The films that are passed to ``fit``, as one data set that is split by patient."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from medgrape.concepts import Concept, ConceptSet
from medgrape.datasets.dataset import (
    SPLITS,
    Dataset,
    DrawnBox,
    FilmRecord,
    Source,
    SplitRule,
    check_split,
    split_films,
)
from medgrape.errors import UserError, nearest
from medgrape.films.reading import upright_size

NAME, ROOT = "films handed to fit", Path("/")
"""Name and root of these data sets. Their paths are absolute, so that the same films have the same checksum."""
Films = list[tuple[FilmRecord, tuple[DrawnBox, ...]]]


@dataclass(frozen=True)
class LabelledFilm:
    """A film of a prepared data set with its findings and boxes."""

    path: Path
    record: FilmRecord
    boxes: tuple[DrawnBox, ...]
    concepts: ConceptSet


@dataclass(frozen=True)
class LabelledFilms:
    """Three columns of the same length."""

    films: np.ndarray  # array of ``LabelledFilm`` objects: ``X`` of scikit-learn
    classes: np.ndarray  # names of classes: ``y``
    patients: np.ndarray  # names of patients: ``groups``, so that no patient is on both sides of a fold


def labelled_films(data: Path | str | Dataset, *splits: str) -> LabelledFilms:
    """Return the films of a prepared data set that have a file and a known class, of these splits or of all."""
    dataset = data if isinstance(data, Dataset) else Dataset.load(Path(data))
    for split in splits:
        check_split(split)
    records = [
        film for film in dataset.pictured if film.class_name in dataset.classes and film.split in (splits or SPLITS)
    ]
    films = np.empty(len(records), dtype=object)
    for place, film in enumerate(records):
        boxes = dataset.boxes_by_film.get(film.id, ())
        films[place] = LabelledFilm(dataset.film_path(film).resolve(), film, boxes, dataset.concepts)
    classes, patients = [film.class_name for film in records], [film.patient for film in records]
    return LabelledFilms(films, np.array(classes), np.array(patients))


def column(values: Any, what: str, films: int | None = None) -> np.ndarray:  # noqa: ANN401 (lists, arrays, tables)
    """Return one value for each film as an array; a table with a single column is that column."""
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths
        array = np.empty(())
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise UserError(f"Give {what} as one list, with one entry for each film.")
    if films is not None and len(array) != films:
        raise UserError(f"There are {films} films and {len(array)} {what}; give one for each film.")
    return array


def label_column(y: Any, films: int) -> np.ndarray:  # noqa: ANN401
    """Return the labels; raise unless there are at least two different ones and none is missing."""
    if any(_is_missing(label) for label in column(np.asarray(y, dtype=object), "y", films)):
        raise UserError("Some labels are missing; leave out films of unknown class.")
    labels = column(y, "y")
    try:
        kinds = np.unique(labels)
    except TypeError:
        raise UserError("These labels cannot be sorted; give all of them as text, or all as numbers.") from None
    if len(kinds) < 2:
        raise UserError("All films have the same label; a classifier needs at least two classes.")
    return labels


def _is_missing(label: Any) -> bool:  # noqa: ANN401
    try:
        return label is None or bool(label != label)  # only NaN differs from itself
    except TypeError:  # pandas.NA cannot be compared
        return True


def class_names(films: Sequence[Any], labels: np.ndarray) -> dict[Any, str]:
    """Return the class of each label: the one of its films if labels and classes are one-to-one, else the label's text.

    Some tools of scikit-learn replace labels by numbers; the classes keep their names.
    """
    texts = {label: str(label) for label in np.unique(labels).tolist()}
    if not all(isinstance(film, LabelledFilm) for film in films):
        return texts
    pairs = {(label, film.record.class_name) for film, label in zip(films, labels.tolist(), strict=True)}
    known = {label: name for label, name in pairs if name}
    is_one_to_one = len(pairs) == len(known) == len(set(known.values()))
    return {label: known[label] for label in texts} if is_one_to_one else texts


def normal_names(normal: Any, classes: Sequence[str]) -> set[str]:  # noqa: ANN401 (any value of a user)
    """Return the classes without findings; raise for a name that is not a class."""
    if isinstance(normal, str):
        raise UserError(f"normal is a list of classes, so write normal=[{normal!r}].")
    names = {str(name) for name in normal}
    for name in sorted(names - set(classes)):
        raise UserError(f"normal names {name!r}, which is none of the labels{nearest(name, classes)}.")
    return names


@dataclass(frozen=True)
class FitInput:
    """Films, the class of each, and the patient of each if known."""

    films: Sequence[Any]
    classes: Sequence[str]
    patients: Sequence[str] | None


def gather_dataset(fit_input: FitInput, classes: tuple[str, ...], normal: Sequence[str], rule: SplitRule) -> Dataset:
    """Make a data set with the findings and boxes of labelled films; for paths, the classes are the findings."""
    kinds = {isinstance(film, LabelledFilm) for film in fit_input.films}
    if len(kinds) != 1:
        raise UserError("Give either films of labelled_films() or paths, not both at once, and at least one.")
    films, concepts = _labelled(fit_input) if kinds == {True} else _paths(fit_input, classes, normal)
    records = split_films([record for record, _ in films], rule)
    boxes = tuple(box for _, drawn in films for box in drawn)
    return Dataset(NAME, classes, concepts, ROOT, records, boxes, Source("scikit-learn", "", {}, (str(rule),)))


def _labelled(fit_input: FitInput) -> tuple[Films, ConceptSet]:
    concepts = {film.concepts for film in fit_input.films}
    if len(concepts) > 1:
        raise UserError("These films are from data sets with different concepts; prepare one data set of them first.")
    occurrences, films = Counter[str](), Films()
    for place, (film, class_name) in enumerate(zip(fit_input.films, fit_input.classes, strict=True)):
        name = film.record.id
        occurrences[name] += 1
        if occurrences[name] > 1:  # bootstrapping draws films repeatedly
            name = f"{name}~{occurrences[name]}"
        patient = film.record.patient if fit_input.patients is None else fit_input.patients[place]
        record = replace(
            film.record, id=name, path=str(film.path), class_name=class_name, patient=patient, split="train"
        )
        films.append((record, tuple(replace(box, film=name) for box in film.boxes)))
    return films, concepts.pop()


def _paths(fit_input: FitInput, classes: tuple[str, ...], normal: Sequence[str]) -> tuple[Films, ConceptSet]:
    healthy = normal_names(normal, classes)
    shown = _concepts([name for name in classes if name not in healthy])
    films = Films()
    for place, (path, class_name) in enumerate(zip(fit_input.films, fit_input.classes, strict=True)):
        labels = {concept.name: known == class_name for known, concept in shown.items()}
        resolved = Path(path).resolve()
        patient = str(resolved) if fit_input.patients is None else fit_input.patients[place]  # a path may occur twice
        size = upright_size(resolved).size
        films.append((FilmRecord(f"{place:06d}", str(resolved), class_name, patient, size, labels), ()))
    return films, ConceptSet(tuple(shown.values()))


def _concepts(classes: Sequence[str]) -> dict[str, Concept]:
    """The finding of each class. If two names are spelled alike (TB+ and TB-), the second gets a number."""
    concepts: dict[str, Concept] = {}
    for name in classes:
        concept = replace(Concept.named(name), aliases=())
        taken = {other.name for other in concepts.values()}
        names = chain([concept.name], (f"{concept.name}_{number}" for number in count(2)))
        concepts[name] = replace(concept, name=next(free for free in names if free not in taken))
    return concepts
