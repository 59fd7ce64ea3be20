"""Groups of patients by sex, age and view, or by several of these together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from medgrape.datasets.dataset import FilmRecord
from medgrape.errors import nearest
from medgrape.evaluation.readings import EvaluationError

NOT_KNOWN = "not known"
AGE_BANDS = ((0, 17), (18, 39), (40, 59), (60, 69), (70, 120))
"""In years. Children have another build and are filmed differently; from 60 on findings of age are common, and auditors
ask about patients over 70. The bands are fixed, so that two audits can be compared."""
_SEXES = {"F": "female", "M": "male", "O": "other"}
By = tuple[tuple[str, ...], ...]
"""For each table, the attributes that it crosses."""


@dataclass(frozen=True)
class Subgroup:
    """Films with the same values of the attributes."""

    name: str
    known: bool  # whether all its values are known
    members: Bool[np.ndarray, " films"]


@dataclass(frozen=True)
class Division:
    """The groups of one attribute, or of several crossed; each film is in exactly one group."""

    by: tuple[str, ...]
    groups: tuple[Subgroup, ...]

    @property
    def title(self) -> str:
        """The attributes in words."""
        return " and ".join(self.by)


def attributes(text: str) -> By:
    """Parse a list of tables such as ``sex,sex+age``; each table is kept once."""
    tables = [tuple(name.strip() for name in part.split("+")) for part in text.split(",")]
    for names in tables:
        unknown = [name for name in names if name not in ATTRIBUTES]
        if unknown:
            hint = nearest(unknown[0], ATTRIBUTES)
            raise EvaluationError(f"Films cannot be grouped by {unknown[0]!r}{hint}; --by takes sex,age or sex+age.")
        if len(set(names)) < len(names):
            raise EvaluationError(f"--by names an attribute twice in {'+'.join(names)!r}; cross different ones.")
    return tuple(dict.fromkeys(tables))


def divide(films: Sequence[FilmRecord], by: tuple[str, ...]) -> Division:
    """Return the groups that have at least one film; groups with an unknown value come last."""
    values_of_films = [tuple(ATTRIBUTES[name](film) for name in by) for film in films]
    order = sorted(set(values_of_films), key=lambda values: [(value == "", value) for value in values])
    groups = (
        Subgroup(_group_name(by, group), all(group), np.array([values == group for values in values_of_films]))
        for group in order
    )
    return Division(by, tuple(groups))


def divisions(films: Sequence[FilmRecord], by: By) -> tuple[Division, ...]:
    """Return the division of each table; raise if no table has a group of which everything is known."""
    tables = tuple(divide(films, names) for names in by)
    if not any(group.known for division in tables for group in division.groups):
        names = " or ".join(division.title for division in tables)
        raise EvaluationError(
            f"No film of this split has a known {names}, so there are no groups to compare; "
            "prepare the data set from labels that tell it."
        )
    return tables


def _group_name(by: tuple[str, ...], values: tuple[str, ...]) -> str:
    unknown = [NOT_KNOWN] if len(by) == 1 else [f"{name} {NOT_KNOWN}" for name in by]
    return ", ".join(value or missing for value, missing in zip(values, unknown, strict=True))


def _age_band(film: FilmRecord) -> str:
    for youngest, oldest in AGE_BANDS:
        if film.age is not None and youngest <= film.age <= oldest:
            return f"{youngest} and over" if oldest == AGE_BANDS[-1][1] else f"{youngest} to {oldest}"
    return ""


ATTRIBUTES: Mapping[str, Callable[[FilmRecord], str]] = {
    "sex": lambda film: _SEXES.get(film.sex.strip().upper(), film.sex.strip()),
    "age": _age_band,
    "view": lambda film: film.view.strip(),
}
"""Each attribute's value of a film in words; empty if it is not known."""
