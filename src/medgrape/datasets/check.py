"""Is a prepared data set fit to learn from and to test on?"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from jaxtyping import Float

from medgrape.config import Config
from medgrape.datasets.cache import CachedFilms, FilmCache
from medgrape.datasets.dataset import SPLITS, Dataset, DrawnBox, FilmRecord
from medgrape.datasets.draft import Complaints
from medgrape.datasets.sources.tbx11k import is_borrowed
from medgrape.datasets.statistics import CoOccurrence, Guess, co_occurrence, guess
from medgrape.errors import nearest
from medgrape.films.reading import upright_size
from medgrape.progress import Track, quietly

SIDE = 32
SAME = 0.995
"""Correlation of two 32 x 32 thumbnails above which they are taken for one film.

Measured (docs/how-to/data-sets.md): different films, of one patient too, stay below 0.989; a film resized, saved
again as JPEG and brightened stays above 0.998.
"""
_ROWS = 1024


@dataclass(frozen=True)
class Pair:
    """Positions of two films that look the same, and how much."""

    first: int
    second: int
    exact: bool
    """The very same bytes, not only the same look."""


def find_pairs(films: CachedFilms, others: CachedFilms | None = None) -> list[Pair]:
    """Pairs within one set, or between two."""
    here, there = films.readable(), (others or films).readable()
    looks_here = thumbnails(films, here)
    looks_there = looks_here if others is None else thumbnails(others, there)
    pairs = []
    for start in range(0, len(here), _ROWS):
        alike = looks_here[start : start + _ROWS] @ looks_there.T >= SAME
        for row, column in zip(*np.nonzero(alike), strict=True):
            first, second = here[start + int(row)], there[int(column)]
            if others is not None or first < second:
                same = films.contents[first] == (others or films).contents[second]
                pairs.append(Pair(first, second, same))
    return pairs


def thumbnails(films: CachedFilms, positions: Sequence[int]) -> Float[np.ndarray, "films pixels"]:
    """Small pictures with brightness and contrast taken out, so that a dot product is a correlation."""
    small = [cv2.resize(films[position], (SIDE, SIDE), interpolation=cv2.INTER_AREA).ravel() for position in positions]
    looks = np.array(small, dtype=np.float32).reshape(-1, SIDE * SIDE)
    looks -= looks.mean(axis=1, keepdims=True)
    return np.asarray(looks / np.maximum(np.linalg.norm(looks, axis=1, keepdims=True), 1e-6))


@dataclass(frozen=True)
class CheckReport:
    """What was found. Errors make figures worthless; warnings are worth knowing."""

    dataset: Dataset
    errors: Complaints
    warnings: Complaints
    graph: CoOccurrence
    tau: float
    guesses: dict[str, Guess]
    """Blind pointing for each concept that has boxes to learn from and to test on."""
    guessed_on: str

    def class_counts(self) -> dict[str, dict[str, int]]:
        """Films by split and class."""
        counted = Counter((film.split, film.class_name) for film in self.dataset.films)
        return {split: {name: counted[split, name] for name in self.dataset.classes} for split in SPLITS}

    def concept_counts(self) -> dict[str, dict[str, int]]:
        """For each concept: films that show it, films on which it is not known, and boxes."""
        boxes = Counter(box.concept for box in self.dataset.boxes)
        return {
            name: {
                "films": sum(film.labels[name] is True for film in self.dataset.films),
                "unknown": sum(film.labels[name] is None for film in self.dataset.films),
                "boxes": boxes[name],
            }
            for name in self.dataset.concepts.names
        }

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        names, edges = self.dataset.concepts.names, self.graph.edges(self.tau)
        listening = [
            {
                "listener": names[k],
                "speaker": names[j],
                "probability": float(self.graph.probability[k, j]),
                "films": int(self.graph.counts[j]),
            }
            for k, j in zip(*edges.nonzero(), strict=True)
        ]
        return {
            "name": self.dataset.name,
            "films": len(self.dataset.films),
            "boxes": len(self.dataset.boxes),
            "patients": len({film.patient for film in self.dataset.films}),
            "classes": self.class_counts(),
            "concepts": self.concept_counts(),
            "graph": {"tau": self.tau, "nodes": len(names), "edges": int(edges.sum()), "listening": listening},
            "blind_pointing": {"on": self.guessed_on, **{name: asdict(g) for name, g in self.guesses.items()}},
            "errors": list(self.errors.lines()),
            "warnings": list(self.warnings.lines()),
            "notes": list(self.dataset.source.notes),
        }


def open_films(dataset: Dataset, folder: Path, config: Config, track: Track = quietly) -> CachedFilms:
    """All pictured films of a data set, decoded once into its cache."""
    return FilmCache(folder / "cache", config).films(
        [dataset.film_path(film) for film in dataset.pictured], track=track
    )


def check(
    dataset: Dataset,
    films: CachedFilms,
    *,
    tau: float = 0.10,
    against: tuple[Dataset, CachedFilms] | None = None,
) -> CheckReport:
    """Look for everything that has spoilt somebody's figures before."""
    errors, warnings = Complaints(), Complaints()
    _check_rows(dataset, errors)
    _check_boxes(dataset, errors, warnings)
    _check_patients(dataset, errors)
    _check_classes(dataset, warnings)
    _check_files(dataset, films, errors, warnings)
    _check_doubles(dataset, films, errors, warnings)
    _check_borrowed(dataset, warnings)
    if against is not None:
        _check_overlap(dataset, films, *against, warnings)
    guessed_on = "test" if _has_boxes(dataset, "test") else "val"
    guesses = {name: guess(dataset, name, (guessed_on,)) for name in dataset.concepts.names}
    known = {name: found for name, found in guesses.items() if found is not None}
    return CheckReport(dataset, errors, warnings, co_occurrence(dataset), tau, known, guessed_on)


def _has_boxes(dataset: Dataset, split: str) -> bool:
    return any(film.id in dataset.boxes_by_film for film in dataset.in_split(split))


def _check_rows(dataset: Dataset, errors: Complaints) -> None:
    for film in dataset.films:
        if film.class_name not in dataset.classes:
            hint = nearest(film.class_name, dataset.classes)
            errors.add("films of an unknown class", f"{film.id}: {film.class_name!r}{hint}")


def _check_boxes(dataset: Dataset, errors: Complaints, warnings: Complaints) -> None:
    films = {film.id: film for film in dataset.films}
    for drawn in dataset.boxes:
        film = films.get(drawn.film)
        if film is None:
            errors.add("boxes on a film that is not listed", drawn.film)
        else:
            _check_box(drawn, film, dataset, errors)
    for box, count in Counter(dataset.boxes).items():
        if count > 1:
            warnings.add("boxes drawn twice in the same place", f"{box.concept} on {box.film}")


def _check_box(drawn: DrawnBox, film: FilmRecord, dataset: Dataset, errors: Complaints) -> None:
    if drawn.concept not in dataset.concepts:
        errors.add("boxes of an unknown concept", f"{drawn.concept}{nearest(drawn.concept, dataset.concepts.names)}")
    elif not drawn.box.within(film.size, slack=1e-3):
        errors.add("boxes reaching outside their film", f"{drawn.box.corners} on {film.id} of {film.size}")
    elif film.labels[drawn.concept] is False:
        errors.add("boxes of a finding that the labels deny", f"{drawn.concept} on {film.id}")


def _check_patients(dataset: Dataset, errors: Complaints) -> None:
    splits: dict[str, set[str]] = {}
    for film in dataset.films:
        splits.setdefault(film.patient, set()).add(film.split)
    for patient, sides in splits.items():
        if len(sides) > 1:
            errors.add("patients in more than one split", f"{patient} in {' and '.join(sorted(sides))}")


def _check_classes(dataset: Dataset, warnings: Complaints) -> None:
    present = Counter((film.split, film.class_name) for film in dataset.films)
    for split in SPLITS:
        absent = [name for name in dataset.classes if not present[split, name]]
        if not dataset.in_split(split):
            warnings.add("splits without a film", split)
        else:
            for name in absent:
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


def _check_doubles(dataset: Dataset, films: CachedFilms, errors: Complaints, warnings: Complaints) -> None:
    for pair in find_pairs(films):
        first, second = dataset.pictured[pair.first], dataset.pictured[pair.second]
        how = "the same file" if pair.exact else "the same look"
        example = f"{first.id} = {second.id} ({how})"
        if first.split != second.split:
            errors.add("films that are in two splits", example)
        else:
            warnings.add("films that are there twice", example)
        if _labels_differ(first, second):
            warnings.add("films that are there twice with other labels", example)


def _labels_differ(first: FilmRecord, second: FilmRecord) -> bool:
    return first.class_name != second.class_name or first.labels != second.labels


def _check_borrowed(dataset: Dataset, warnings: Complaints) -> None:
    """TBX11K's extra films were published before, in sets that somebody may test on."""
    if dataset.source.kind != "tbx11k":
        return
    for film in dataset.films:
        if is_borrowed(film.path):
            warnings.add("films borrowed from other public sets (Shenzhen, Montgomery, DA, DB)", film.id)


def _check_overlap(
    dataset: Dataset, films: CachedFilms, other: Dataset, other_films: CachedFilms, warnings: Complaints
) -> None:
    for pair in find_pairs(films, other_films):
        first, second = dataset.pictured[pair.first], other.pictured[pair.second]
        warnings.add(
            f"films that are also in {other.name}", f"{first.id} ({first.split}) = {second.id} ({second.split})"
        )


def positions_to_show(dataset: Dataset, films: CachedFilms, count: int) -> Sequence[int]:
    """Films for a contact sheet: in turn from every class and concept, other patients and films with boxes first."""
    groups: dict[tuple[str, str], list[tuple[int, bool, int]]] = {}
    seen: Counter[str] = Counter()
    for position in films.readable():
        film = dataset.pictured[position]
        concepts = sorted(name for name, present in film.labels.items() if present)
        place_in_line = (seen[film.patient], film.id not in dataset.boxes_by_film, position)
        for concept in concepts or [""]:
            groups.setdefault((film.class_name, concept), []).append(place_in_line)
        seen[film.patient] += 1
    lines = [sorted(groups[key]) for key in sorted(groups)]
    longest = max((len(line) for line in lines), default=0)
    in_turn = [line[place][-1] for place in range(longest) for line in lines if place < len(line)]
    chosen = list(dict.fromkeys(in_turn))[:count]
    return sorted(chosen, key=lambda position: (dataset.pictured[position].class_name, position))
