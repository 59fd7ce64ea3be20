"""Checks of a prepared data set: whether it is fit to train and test on."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import cv2
import numpy as np
from jaxtyping import Float

from medgrape.datasets.cache import CachedFilms
from medgrape.datasets.dataset import SPLITS, Dataset
from medgrape.datasets.draft import Complaints
from medgrape.datasets.sources.tbx11k import is_borrowed
from medgrape.datasets.statistics import BlindPointing, CoOccurrence, blind_pointing, co_occurrence
from medgrape.errors import nearest
from medgrape.films.reading import upright_size

SIDE = 32
SAME = 0.995
"""Correlation of two 32 x 32 thumbnails above which two films are considered the same.

Measured (docs/how-to/data-sets.md): different films, even of one patient, stay below 0.989; a film resized, saved again
as JPEG and brightened stays above 0.998.
"""
_ROWS = 1024  # thumbnails that are compared with all others at a time


@dataclass(frozen=True)
class Pair:
    """Positions of two films that look the same."""

    first: int
    second: int
    exact: bool  # whether their files have the same bytes


def find_pairs(films: CachedFilms, others: CachedFilms | None = None) -> list[Pair]:
    """Return the pairs of films that look the same, within one data set or between two."""
    rows, columns = films.readable(), (others or films).readable()
    row_looks = thumbnails(films, rows)
    column_looks = row_looks if others is None else thumbnails(others, columns)
    pairs = []
    for start in range(0, len(rows), _ROWS):
        alike = row_looks[start : start + _ROWS] @ column_looks.T >= SAME
        for row, column in zip(*np.nonzero(alike), strict=True):
            first, second = rows[start + int(row)], columns[int(column)]
            if others is not None or first < second:
                pairs.append(Pair(first, second, films.contents[first] == (others or films).contents[second]))
    return pairs


def thumbnails(films: CachedFilms, positions: Sequence[int]) -> Float[np.ndarray, "films pixels"]:
    """Return thumbnails with zero mean and unit norm, so that a dot product is a correlation."""
    small = [cv2.resize(films[position], (SIDE, SIDE), interpolation=cv2.INTER_AREA).ravel() for position in positions]
    looks = np.array(small, dtype=np.float32).reshape(-1, SIDE * SIDE)
    looks -= looks.mean(axis=1, keepdims=True)
    return np.asarray(looks / np.maximum(np.linalg.norm(looks, axis=1, keepdims=True), 1e-6))


@dataclass(frozen=True)
class CheckReport:
    """The result of a check. Errors make metrics worthless; warnings are worth knowing."""

    dataset: Dataset
    errors: Complaints
    warnings: Complaints
    graph: CoOccurrence
    tau: float
    blind_pointing: dict[str, BlindPointing]  # for each concept that has boxes to test on
    pointing_split: str

    def class_counts(self) -> dict[str, dict[str, int]]:
        """Return the number of films by split and class."""
        counts = Counter((film.split, film.class_name) for film in self.dataset.films)
        return {split: {name: counts[split, name] for name in self.dataset.classes} for split in SPLITS}

    def concept_counts(self) -> dict[str, dict[str, int]]:
        """Return for each concept: films that show it, films on which it is not known, and boxes."""
        boxes = Counter(box.concept for box in self.dataset.boxes)
        labels = {
            name: Counter(film.labels[name] for film in self.dataset.films) for name in self.dataset.concepts.names
        }
        return {
            name: {"films": counts[True], "unknown": counts[None], "boxes": boxes[name]}
            for name, counts in labels.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Plain data, ready for ``json.dumps``."""
        names, graph, edges = self.dataset.concepts.names, self.graph, self.graph.edges(self.tau)
        listening = [
            {"listener": names[k], "speaker": names[j], "probability": float(graph.probability[k, j]),
             "films": int(graph.counts[j])}
            for k, j in zip(*edges.nonzero(), strict=True)
        ]  # fmt: skip
        return {
            "name": self.dataset.name,
            "films": len(self.dataset.films),
            "boxes": len(self.dataset.boxes),
            "patients": len({film.patient for film in self.dataset.films}),
            "classes": self.class_counts(),
            "concepts": self.concept_counts(),
            "graph": {"tau": self.tau, "nodes": len(names), "edges": int(edges.sum()), "listening": listening},
            "blind_pointing": {"on": self.pointing_split, **{k: asdict(row) for k, row in self.blind_pointing.items()}},
            "errors": list(self.errors.lines()),
            "warnings": list(self.warnings.lines()),
            "notes": list(self.dataset.source.notes),
        }


def check(
    dataset: Dataset, films: CachedFilms, *, tau: float = 0.10, against: tuple[Dataset, CachedFilms] | None = None
) -> CheckReport:
    """Check a data set for leaks between splits, duplicates and contradictions."""
    errors, warnings = Complaints(), Complaints()
    _check_rows(dataset, errors)
    _check_boxes(dataset, errors, warnings)
    _check_classes(dataset, warnings)
    _check_files(dataset, films, errors, warnings)
    _check_duplicates(dataset, films, errors, warnings)
    for film in dataset.films:
        if dataset.source.kind == "tbx11k" and is_borrowed(film.path):
            warnings.add("films borrowed from other public sets (Shenzhen, Montgomery, DA, DB)", film.id)
    if against is not None:
        other, other_films = against
        for pair in find_pairs(films, other_films):
            first, second = dataset.pictured[pair.first], other.pictured[pair.second]
            example = f"{first.id} ({first.split}) = {second.id} ({second.split})"
            warnings.add(f"films that are also in {other.name}", example)
    has_test_boxes = any(film.id in dataset.boxes_by_film for film in dataset.in_split("test"))
    pointing_split = "test" if has_test_boxes else "val"
    baselines = {name: blind_pointing(dataset, name, (pointing_split,)) for name in dataset.concepts.names}
    pointing = {name: baseline for name, baseline in baselines.items() if baseline is not None}
    return CheckReport(dataset, errors, warnings, co_occurrence(dataset), tau, pointing, pointing_split)


def _check_rows(dataset: Dataset, errors: Complaints) -> None:
    """Check the classes, and that no patient is in more than one split."""
    splits = defaultdict[str, set[str]](set)
    for film in dataset.films:
        splits[film.patient].add(film.split)
        if film.class_name not in dataset.classes:
            hint = nearest(film.class_name, dataset.classes)
            errors.add("films of an unknown class", f"{film.id}: {film.class_name!r}{hint}")
    for patient, names in splits.items():
        if len(names) > 1:
            errors.add("patients in more than one split", f"{patient} in {' and '.join(sorted(names))}")


def _check_boxes(dataset: Dataset, errors: Complaints, warnings: Complaints) -> None:
    films = {film.id: film for film in dataset.films}
    for drawn in dataset.boxes:
        film = films.get(drawn.film)
        if film is None:
            errors.add("boxes on a film that is not listed", drawn.film)
        elif drawn.concept not in dataset.concepts:
            errors.add(
                "boxes of an unknown concept", f"{drawn.concept}{nearest(drawn.concept, dataset.concepts.names)}"
            )
        elif not drawn.box.within(film.size, slack=1e-3):
            errors.add("boxes reaching outside their film", f"{drawn.box.corners} on {film.id} of {film.size}")
        elif film.labels[drawn.concept] is False:
            errors.add("boxes of a finding that the labels deny", f"{drawn.concept} on {film.id}")
    for box, count in Counter(dataset.boxes).items():
        if count > 1:
            warnings.add("boxes drawn twice in the same place", f"{box.concept} on {box.film}")


def _check_classes(dataset: Dataset, warnings: Complaints) -> None:
    for split in SPLITS:
        present = {film.class_name for film in dataset.in_split(split)}
        if not present:
            warnings.add("splits without a film", split)
        for name in dataset.classes if present else ():
            if name not in present:
                warnings.add("classes without a film", f"{name} in {split}")
    for name in dataset.concepts.names:
        if not any(film.labels[name] for film in dataset.in_split("train")):
            warnings.add("concepts without a training film", name)


def _check_files(dataset: Dataset, films: CachedFilms, errors: Complaints, warnings: Complaints) -> None:
    for reason in films.refused.values():
        errors.add("films that cannot be read", reason)
    for position in films.readable():
        film = dataset.pictured[position]
        size = upright_size(dataset.film_path(film)).size
        if size != film.size:
            errors.add("films of another size than when they were prepared", f"{film.id} was {film.size}, is {size}")
    for film in dataset.films:
        if not film.path:
            warnings.add("films with labels alone", film.id)


def _check_duplicates(dataset: Dataset, films: CachedFilms, errors: Complaints, warnings: Complaints) -> None:
    for pair in find_pairs(films):
        first, second = dataset.pictured[pair.first], dataset.pictured[pair.second]
        example = f"{first.id} = {second.id} ({'the same file' if pair.exact else 'the same look'})"
        if first.split != second.split:
            errors.add("films that are in two splits", example)
        else:
            warnings.add("films that are there twice", example)
        if first.class_name != second.class_name or first.labels != second.labels:
            warnings.add("films that are there twice with other labels", example)
