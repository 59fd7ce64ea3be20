"""Splits into training, validation and test by patient: all films of a patient are in one split."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from medgrape.datasets.dataset import FilmRecord
from medgrape.errors import UserError

UNTESTED = "untested"
"""In place of a split: a film to train or validate on, but never to test on."""


@dataclass(frozen=True)
class SplitRule:
    """How films are split. A published test list is always kept; validation is always cut from training."""

    validation: float = 0.15
    """Share of the patients who are not in the test split."""
    test: float = 0.0
    """Share of patients to test on where no published test film is there."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.validation < 1 and 0 <= self.test < 1):
            raise UserError("The shares for validation and test must be between 0 and 1 and leave some for training.")

    def __str__(self) -> str:
        cut = f"{self.test:g} to test, of the rest " if self.test else ""
        return f"patients split with seed {self.seed}: {cut}{self.validation:g} to validation"


def split_films(films: Sequence[FilmRecord], rule: SplitRule) -> tuple[FilmRecord, ...]:
    """Return the films with their split: published test films stay test, the rest is split by patient and stratum.

    Patients with an ``UNTESTED`` film are never cut into the test split, but may be used for validation.
    """
    published = {film.patient for film in films if film.split == "test"}
    queue = [
        patient
        for stratum in _strata(film for film in films if film.patient not in published)
        for patient in sorted(stratum, key=lambda patient: _random_key(rule.seed, patient))
    ]
    untested = {film.patient for film in films if film.split == UNTESTED}
    testable = [patient for patient in queue if patient not in untested]
    test = published | _evenly_spaced(testable, 0.0 if published else rule.test)
    validation = _evenly_spaced([patient for patient in queue if patient not in test], rule.validation)
    splits = dict.fromkeys(test, "test") | dict.fromkeys(validation, "val")
    return tuple(replace(film, split=splits.get(film.patient, "train")) for film in films)


def _evenly_spaced(queue: Sequence[str], share: float) -> set[str]:
    """A share of the patients at even distances, so that every stratum contributes, however small it is."""
    return {
        patient
        for place, patient in enumerate(queue)
        if int((place + 1) * share + 0.5) > int(place * share + 0.5)
    }  # fmt: skip


def _strata(films: Iterable[FilmRecord]) -> list[list[str]]:
    """Groups of patients with the same class on most of their films and the same rarest finding."""
    classes: dict[str, Counter[str]] = defaultdict(Counter)
    findings: dict[str, set[str]] = defaultdict(set)
    for film in films:
        classes[film.patient][film.class_name] += 1
        findings[film.patient] |= {name for name, present in film.labels.items() if present}
    frequency = Counter(name for names in findings.values() for name in names)
    strata: dict[tuple[str, str], list[str]] = defaultdict(list)
    for patient, counts in classes.items():
        most = min(counts, key=lambda name: (-counts[name], name))
        rarest = min(findings[patient], key=lambda name: (frequency[name], name), default="")
        strata[most, rarest].append(patient)
    return [strata[key] for key in sorted(strata)]


def _random_key(seed: int, patient: str) -> bytes:
    """A sort key that depends on seed and patient alone, not on the other patients or their order."""
    return hashlib.sha256(f"{seed}/{patient}".encode()).digest()
