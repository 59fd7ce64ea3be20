"""What most tables are made of: rows by recipe, trivial answers below, comparisons corrected for their number."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from medgrape.evaluation.statistics import Comparison, holm
from medgrape.paper.jobs import Job, Role
from medgrape.paper.recipes import Recipe, fixed_recipes
from medgrape.paper.results import MACRO_F1, POINTING, Results
from medgrape.paper.tables import Cell, Column, Line, Table, Value

F1 = Column("macro_f1", "Macro-F1", "higher")
POINTS = Column("pointing.film.mean", "Pointing, per film", "higher")
PAIRS = Column("pointing.pair.mean", "Pointing, per film and finding", "higher")
ENERGY = Column("energy", "Box energy", "higher")


@dataclass(frozen=True)
class Suite:
    """A table, or a few that the paper prints as one, with the work that it needs."""

    name: str
    title: str
    labels: tuple[str, ...]
    """Of the paper's tables and figures; empty where the paper tells it in its text."""
    needs: Callable[[Results], Sequence[Job]]
    build: Callable[[Results], Table]
    role: Role = "first"
    """Without this data set there is nothing to show."""


@cache
def published() -> dict[str, dict[str, dict[str, str]]]:
    """The paper's figures by suite, row and column."""
    told = tomllib.loads(Path(__file__).parents[1].joinpath("published.toml").read_text("utf-8"))
    return {suite: {str(row): cells for row, cells in rows.items()} for suite, rows in told.items()}


@dataclass(frozen=True)
class Row:
    """A recipe in a table."""

    recipe: str | Recipe
    title: str = ""
    name: str = ""
    """In the paper's figures; that of the recipe, where there is none."""
    role: Role = "first"
    again: bool = False
    """Stands in the table already, and is not compared once more."""

    @property
    def told(self) -> str:
        """As people read it."""
        if self.title:
            return self.title
        return self.recipe.title if isinstance(self.recipe, Recipe) else fixed_recipes()[self.recipe].title

    @property
    def key(self) -> str:
        """In the paper's figures."""
        return self.name or (self.recipe if isinstance(self.recipe, str) else self.recipe.name)


def recipe_lines(
    results: Results,
    suite: str,
    rows: Sequence[Row],
    columns: Sequence[Column],
    against: Row | None = None,
    keys: Sequence[str] = (MACRO_F1, POINTING),
) -> list[Line]:
    """One line for each recipe; compared with one of them in the columns of these keys."""
    paper = published().get(suite, {})
    lines = [
        Line(
            row.told,
            {column.key: results.value(row.recipe, column.key, row.role) for column in columns},
            {key: text for key, text in paper.get(row.key, {}).items() if key in {column.key for column in columns}},
            compared=_compared(results, row, against, [column.key for column in columns if column.key in keys]),
        )
        for row in rows
    ]
    return corrected(lines)


def _compared(results: Results, row: Row, against: Row | None, keys: Sequence[str]) -> dict[str, Comparison]:
    if against is None or row.again or row.recipe == against.recipe:
        return {}
    found = {key: results.compared(row.recipe, against.recipe, key, row.role) for key in keys}
    return {key: comparison for key, comparison in found.items() if comparison is not None}


def corrected(lines: Sequence[Line]) -> list[Line]:
    """The same with p-values corrected for all rows of the table, column by column."""
    found = list(lines)
    for key in dict.fromkeys(key for line in lines for key in line.compared):
        there = [place for place, line in enumerate(found) if key in line.compared]
        adjusted = holm([found[place].compared[key].permutation for place in there])
        for place, p in zip(there, adjusted, strict=True):
            line = found[place]
            found[place] = replace(line, compared={**line.compared, key: replace(line.compared[key], holm=p)})
    return found


def trivial_lines(results: Results, recipe: str, columns: Sequence[Column], role: Role = "first") -> list[Line]:
    """Answers that look at no film, on the same films; a recipe is named only because its results hold them."""
    told: dict[str, dict[str, Cell]] = {}
    for column in columns:
        for title, key in _trivial(column.key).items():
            told.setdefault(title, {})[column.key] = results.value(recipe, key, role)
    return [Line(title, cells, trivial=True) for title, cells in told.items() if any(cells.values())]


def _trivial(key: str) -> dict[str, str]:
    if key == MACRO_F1:
        return {"always the commonest class": "majority.macro_f1"}
    if key.startswith("pointing."):
        stem = key.rsplit(".", 1)[0]
        return {"a random point": f"{stem}.chance", "one fixed point for each finding": f"{stem}.fixed"}
    return {"a map that is the same everywhere": "energy.flat"} if key == "energy" else {}


def number(line: Line | None, key: str) -> float | None:
    """A figure of a line, if it is one."""
    cell = None if line is None else line.ours.get(key)
    return cell.mean if isinstance(cell, Value) else None


def named(lines: Sequence[Line], title: str) -> Line | None:
    """The line of that title."""
    return next((line for line in lines if line.title == title), None)


def versus(lines: Sequence[Line], line: Line | None, against: Line | None, column: Column) -> str:
    """How one line does against another and against the best trivial answer, as one sentence."""
    ours, theirs = number(line, column.key), number(against, column.key)
    if line is None or against is None or ours is None or theirs is None:
        return "Not measured yet."
    told = f"{column.title}: {line.title} {ours:.3f}, {against.title} {theirs:.3f}"
    compared = line.compared.get(column.key)
    if compared is not None and compared.interval is not None:
        low, high = compared.interval.low, compared.interval.high
        sure = "excludes zero" if low > 0 or high < 0 else "does not exclude zero"
        told += f"; difference {compared.difference:+.3f}, 95 % interval [{low:+.3f}, {high:+.3f}], which {sure}"
    blind = [(value, one.title) for one in lines if one.trivial and (value := number(one, column.key)) is not None]
    best = max(blind, default=None)
    return told + ("." if best is None else f"; {best[1]} gets {best[0]:.3f}.")
