"""What most tables are made of: rows by recipe, trivial baselines below, comparisons corrected for their number."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from medgrape.evaluation.statistics import Comparison, holm
from medgrape.paper.jobs import PaperJob, Role
from medgrape.paper.recipes import Recipe, fixed_recipes
from medgrape.paper.results import MACRO_F1, POINTING, Results
from medgrape.paper.tables import Cell, Column, Line, Table, Value

F1 = Column("macro_f1", "Macro-F1", "higher")
POINTS = Column("pointing.film.mean", "Pointing, per film", "higher")
PAIRS = Column("pointing.pair.mean", "Pointing, per film and finding", "higher")
ENERGY = Column("energy", "Box energy", "higher")
NOT_MEASURED = "Not measured yet."

Needs = Callable[[Results], Sequence[PaperJob]]
Build = Callable[[Results], Table]


@dataclass(frozen=True)
class Suite:
    """A table, or a few that the paper prints as one, with the jobs that it needs."""

    name: str
    labels: tuple[str, ...]
    """Labels of the paper's tables and figures; empty if the paper has it in its text only."""
    needs: Needs
    role: Role
    """The data set without which there is no table."""
    build: Build

    @property
    def title(self) -> str:
        """What it shows: the docstring of the function that builds it."""
        return (self.build.__doc__ or "").removesuffix(".")


def suite(name: str, *labels: str, needs: Needs, role: Role = "first") -> Callable[[Build], Suite]:
    """Make a suite of the function that builds its table."""
    return lambda build: Suite(name, labels, needs, role, build)


def films(*recipes: str, role: Role = "first") -> Needs:
    """Need the test films' figures of some recipes."""
    return lambda results: results.jobs("films", *recipes, role=role)


@cache
def published() -> dict[str, dict[str, dict[str, str]]]:
    """The paper's figures by suite, row and column."""
    tables = tomllib.loads(Path(__file__).parents[1].joinpath("published.toml").read_text("utf-8"))
    return {suite: {str(row): cells for row, cells in rows.items()} for suite, rows in tables.items()}


@dataclass(frozen=True)
class RecipeRow:
    """A recipe as a row of a table."""

    recipe: str | Recipe
    own_title: str = ""
    own_key: str = ""
    role: Role = "first"
    again: bool = False
    """Whether the recipe has a row already, and is not compared once more."""

    @property
    def title(self) -> str:
        """Title of the row; that of the recipe, if the row has none."""
        if self.own_title:
            return self.own_title
        return self.recipe.title if isinstance(self.recipe, Recipe) else fixed_recipes()[self.recipe].title

    @property
    def key(self) -> str:
        """Key in the paper's figures; name of the recipe, if the row has none."""
        return self.own_key or (self.recipe if isinstance(self.recipe, str) else self.recipe.name)


def recipe_lines(
    results: Results,
    suite: str,
    rows: Sequence[RecipeRow],
    columns: Sequence[Column],
    against: RecipeRow | None = None,
    keys: Sequence[str] = (MACRO_F1, POINTING),
) -> list[Line]:
    """One line for each recipe; in the columns of these keys, compared with one of them."""
    paper = published().get(suite, {})
    shown = [column.key for column in columns]
    lines = []
    for row in rows:
        compared: dict[str, Comparison | None] = {}
        if against is not None and not row.again and row.recipe != against.recipe:
            other = against.recipe
            compared = {key: results.compared(row.recipe, other, key, row.role) for key in shown if key in keys}
        line = Line(
            row.title,
            {key: results.value(row.recipe, key, row.role) for key in shown},
            {key: text for key, text in paper.get(row.key, {}).items() if key in shown},
            compared={key: comparison for key, comparison in compared.items() if comparison is not None},
        )
        lines.append(line)
    return corrected(lines)


def recipe_table(
    results: Results,
    suite: str,
    title: str,
    rows: Sequence[RecipeRow],
    columns: tuple[Column, ...],
    *,
    against: int = 0,
    read: int,
    keys: Sequence[str] = (MACRO_F1, POINTING),
    notes: tuple[str, ...] = (),
) -> Table:
    """A table of recipes and trivial baselines. Its reading compares row ``read`` with row ``against``."""
    base = rows[against]
    lines = recipe_lines(results, suite, rows, columns, base, keys)
    lines += trivial_lines(results, base.recipe, columns, base.role)
    return Table(title, columns, tuple(lines), versus(lines, lines[read], lines[against], F1), base.title, notes)


def corrected(lines: Sequence[Line]) -> list[Line]:
    """Correct the p-values of each column for all rows of the table."""
    found = list(lines)
    for key in dict.fromkeys(key for line in lines for key in line.compared):
        there = [place for place, line in enumerate(found) if key in line.compared]
        adjusted = holm([found[place].compared[key].permutation for place in there])
        for place, p in zip(there, adjusted, strict=True):
            line = found[place]
            found[place] = replace(line, compared={**line.compared, key: replace(line.compared[key], holm=p)})
    return found


def trivial_lines(
    results: Results, recipe: str | Recipe, columns: Sequence[Column], role: Role = "first"
) -> list[Line]:
    """Trivial baselines, which look at no film. They are the same in the results of every recipe."""
    by_title: dict[str, dict[str, Cell]] = {}
    for column in columns:
        for title, key in _trivial_keys(column.key).items():
            by_title.setdefault(title, {})[column.key] = results.value(recipe, key, role)
    return [Line(title, cells, trivial=True) for title, cells in by_title.items() if any(cells.values())]


def _trivial_keys(key: str) -> dict[str, str]:
    if key == MACRO_F1:
        return {"always the commonest class": "majority.macro_f1"}
    if key.startswith("pointing."):
        stem = key.rsplit(".", 1)[0]
        return {"a random point": f"{stem}.chance", "one fixed point for each finding": f"{stem}.fixed"}
    return {"a map that is the same everywhere": "energy.flat"} if key == "energy" else {}


def number(line: Line, key: str) -> float | None:
    """A figure of a line; None if there is no such figure."""
    cell = line.ours.get(key)
    return cell.mean if isinstance(cell, Value) else None


def ranked(lines: Sequence[Line], key: str, *, trivial: bool = False) -> list[tuple[float, str]]:
    """Figure and title of the lines that have the figure, lowest first."""
    return sorted(
        (value, line.title) for line in lines if line.trivial == trivial and (value := number(line, key)) is not None
    )


def versus(lines: Sequence[Line], line: Line, against: Line, column: Column) -> str:
    """Compare a line with another and with the best trivial baseline, in one sentence."""
    ours, theirs = number(line, column.key), number(against, column.key)
    if ours is None or theirs is None:
        return NOT_MEASURED
    sentence = f"{column.title}: {line.title} {ours:.3f}, {against.title} {theirs:.3f}"
    compared = line.compared.get(column.key)
    if compared is not None and compared.interval is not None:
        low, high = compared.interval.low, compared.interval.high
        sure = "excludes zero" if low > 0 or high < 0 else "does not exclude zero"
        sentence += f"; difference {compared.difference:+.3f}, 95 % interval [{low:+.3f}, {high:+.3f}], which {sure}"
    baselines = ranked(lines, column.key, trivial=True)
    return sentence + (f"; {baselines[-1][1]} gets {baselines[-1][0]:.3f}." if baselines else ".")
