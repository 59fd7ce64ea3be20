"""Train, validation and test, by patient: no patient is ever on two sides."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from medgrape.data.dataset import FilmRecord
from medgrape.errors import UserError


@dataclass(frozen=True)
class SplitRule:
    """How films are divided. A published test list is always kept; validation is always cut from training."""

    validation: float = 0.15
    test: float = 0.0
    """Share of patients to test on where the source publishes no test list."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.validation < 1 and 0 <= self.test < 1 and self.validation + self.test < 1):
            raise UserError("The shares for validation and test must be between 0 and 1 and leave some for training.")

    def __str__(self) -> str:
        cut = f"{self.test:g} of the patients to test, " if self.test else ""
        return f"split by patient with seed {self.seed}: {cut}{self.validation:g} of the patients to validation"


def split_films(films: Sequence[FilmRecord], rule: SplitRule) -> tuple[FilmRecord, ...]:
    """The films with their split: published test films stay test, the rest is divided by patient within each class."""
    published = {film.patient for film in films if film.split == "test"}
    sides = dict.fromkeys(published, "test")
    test_share = 0.0 if published else rule.test
    for patients in _strata(film for film in films if film.patient not in published):
        shuffled = sorted(patients, key=lambda patient: _lot(rule.seed, patient))
        to_test = round(test_share * len(shuffled))
        to_validation = round(rule.validation * len(shuffled))
        for place, patient in enumerate(shuffled):
            sides[patient] = "test" if place < to_test else "val" if place < to_test + to_validation else "train"
    return tuple(replace(film, split=sides[film.patient]) for film in films)


def _strata(films: Iterable[FilmRecord]) -> list[list[str]]:
    """Patients who belong together: the same class on most films, and the same set of findings over all films."""
    classes: dict[str, Counter[str]] = defaultdict(Counter)
    findings: dict[str, set[str]] = defaultdict(set)
    for film in films:
        classes[film.patient][film.class_name] += 1
        findings[film.patient] |= {name for name, present in film.labels.items() if present}
    rarity = Counter(name for found in findings.values() for name in found)
    strata: dict[tuple[str, str], list[str]] = defaultdict(list)
    for patient, counts in classes.items():
        most = min(counts, key=lambda name: (-counts[name], name))
        rarest = min(findings[patient], key=lambda name: (rarity[name], name), default="")
        strata[most, rarest].append(patient)
    return [strata[key] for key in sorted(strata)]


def _lot(seed: int, patient: str) -> bytes:
    """A number drawn for a patient that depends on nothing but seed and patient, not on order or company."""
    return hashlib.sha256(f"{seed}/{patient}".encode()).digest()
