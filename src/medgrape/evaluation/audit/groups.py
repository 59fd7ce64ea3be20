"""Whose films they are: groups by sex, age and view, or by several of these at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from medgrape.datasets.dataset import FilmRecord
from medgrape.errors import nearest
from medgrape.evaluation.readings import EvaluationError

NOT_KNOWN = "not known"
AGE_BANDS = ((0, 17), (18, 39), (40, 59), (60, 69), (70, 120))
"""In years. Children have chests of another build and are filmed otherwise; from 60 on findings of age are common, and
an auditor asks about those over 70 apart. The bands are fixed, so that two audits can be laid side by side."""
_SEXES = {"F": "female", "M": "male", "O": "other"}
By = tuple[tuple[str, ...], ...]
"""A table for each: the attributes that it crosses."""


@dataclass(frozen=True)
class Subgroup:
    """Films that have something in common."""

    name: str
    known: bool
    """Whether each of its values is known."""
    members: Bool[np.ndarray, " films"]


@dataclass(frozen=True)
class Division:
    """All films by one attribute, or by several crossed: each film is in exactly one group."""

    by: tuple[str, ...]
    groups: tuple[Subgroup, ...]

    @property
    def title(self) -> str:
        """As people say it."""
        return " and ".join(self.by)


def attributes(text: str) -> By:
    """``sex,sex+age`` as the tables it asks for, each named once."""
    asked = [tuple(name.strip() for name in part.split("+")) for part in text.split(",")]
    for names in asked:
        strange = [name for name in names if name not in ATTRIBUTES]
        if strange:
            hint = nearest(strange[0], ATTRIBUTES)
            raise EvaluationError(f"Films cannot be told apart by {strange[0]!r}{hint}; --by takes sex,age or sex+age.")
        if len(set(names)) < len(names):
            raise EvaluationError(f"--by names an attribute twice in {'+'.join(names)!r}; cross different ones.")
    return tuple(dict.fromkeys(asked))


def divide(films: Sequence[FilmRecord], by: tuple[str, ...]) -> Division:
    """The groups that at least one of the films is in; those of which something is not known come last."""
    told = [tuple(ATTRIBUTES[name](film) for name in by) for film in films]
    order = sorted(set(told), key=lambda values: [(value == "", value) for value in values])
    groups = (Subgroup(_named(by, values), all(values), np.array([one == values for one in told])) for values in order)
    return Division(by, tuple(groups))


def divisions(films: Sequence[FilmRecord], by: By) -> tuple[Division, ...]:
    """One for each table; refused where not one of them has a group of which everything is known."""
    found = tuple(divide(films, names) for names in by)
    if not any(group.known for division in found for group in division.groups):
        names = " or ".join(division.title for division in found)
        raise EvaluationError(
            f"No film of this split has a known {names}, so there are no groups to compare; "
            "prepare the data set from labels that tell it."
        )
    return found


def _named(by: tuple[str, ...], values: tuple[str, ...]) -> str:
    if len(by) == 1:
        return values[0] or NOT_KNOWN
    return ", ".join(value or f"{name} {NOT_KNOWN}" for name, value in zip(by, values, strict=True))


def _sex(film: FilmRecord) -> str:
    told = film.sex.strip()
    return _SEXES.get(told.upper(), told)


def _age(film: FilmRecord) -> str:
    band = next((band for band in AGE_BANDS if film.age is not None and band[0] <= film.age <= band[1]), None)
    if band is None:
        return ""
    return f"{band[0]} and over" if band == AGE_BANDS[-1] else f"{band[0]} to {band[1]}"


def _view(film: FilmRecord) -> str:
    return film.view.strip()


ATTRIBUTES: Mapping[str, Callable[[FilmRecord], str]] = {"sex": _sex, "age": _age, "view": _view}
"""What a film's record tells of it, in words; empty where it does not."""
