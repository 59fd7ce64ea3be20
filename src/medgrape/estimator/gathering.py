"""Whatever films somebody hands to ``fit``, as one data set with a split by patient."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from medgrape.concepts import Concept, ConceptSet
from medgrape.data.dataset import Dataset, DrawnBox, FilmRecord, Source
from medgrape.data.reading import stance
from medgrape.data.splits import SplitRule, split_films
from medgrape.errors import UserError
from medgrape.estimator.columns import normal_names
from medgrape.estimator.labelled_films import LabelledFilm

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
        films.append((FilmRecord(f"{place:06d}", str(where), class_name, patient, stance(where).size, labels), ()))
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
