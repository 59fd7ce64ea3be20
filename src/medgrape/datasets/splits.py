"""Train, validation and test, by patient: no patient is ever on two sides."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from medgrape.datasets.dataset import FilmRecord
from medgrape.errors import UserError

UNTESTED = "untested"
"""What a source says instead of a split of films that may teach, but that no model should be tested on."""


@dataclass(frozen=True)
class SplitRule:
    """How films are divided. A published test list is always kept; validation is always cut from training."""

    validation: float = 0.15
    """Share of the patients who are not tested on."""
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
    """The films with their split: published test films stay test, the rest is divided by patient within each class.

    A share is cut for testing from patients without an ``UNTESTED`` film only; those may still validate.
    """
    published = {film.patient for film in films if film.split == "test"}
    line = [
        patient
        for stratum in _strata(film for film in films if film.patient not in published)
        for patient in sorted(stratum, key=lambda patient: _lot(rule.seed, patient))
    ]
    spared = {film.patient for film in films if film.split == UNTESTED}
    testable = [patient for patient in line if patient not in spared]
    tested = published | _every_so_often(testable, 0.0 if published else rule.test)
    validated = _every_so_often([patient for patient in line if patient not in tested], rule.validation)
    sides = dict.fromkeys(tested, "test") | dict.fromkeys(validated, "val")
    return tuple(replace(film, split=sides.get(film.patient, "train")) for film in films)


def _every_so_often(line: Sequence[str], share: float) -> set[str]:
    """A share of those who stand in line, evenly spaced, so that every stratum gives its part, however small it is."""
    return {one for place, one in enumerate(line) if int((place + 1) * share + 0.5) > int(place * share + 0.5)}


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
