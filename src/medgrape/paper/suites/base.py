"""Suites, and what most of their tables share: rows by recipe with trivial baselines below, and comparisons."""

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

F1 = Column(MACRO_F1, "Macro-F1", "higher")
POINTS = Column("pointing.film.mean", "Pointing, per film", "higher")
PAIRS = Column(POINTING, "Pointing, per film and finding", "higher")
ENERGY = Column("energy", "Box energy", "higher")
NOT_MEASURED = "Not measured yet."

Needs = Callable[[Results], Sequence[PaperJob]]
Build = Callable[[Results], Table]


@dataclass(frozen=True)
class Suite:
    """A table, or a few that the paper prints as one, with the jobs that it needs."""

    name: str
    labels: tuple[str, ...]  # labels of the paper's tables and figures; empty if the paper has it in its text only
    needs: Needs
    role: Role  # the data set without which the table cannot be made
    build: Build

    @property
    def title(self) -> str:
        """The content of the table: the docstring of the function that builds it."""
        return (self.build.__doc__ or "").removesuffix(".")

    def table(self, results: Results, options: str) -> Table:
        """Build the table and add the paper's figures, corrected p-values and the command that makes it."""
        table, paper = self.build(results), published().get(self.name, {})
        lines = [replace(line, paper=line.paper or paper.get(line.key, {})) for line in _corrected(table.lines)]
        command = f"medgrape reproduce {self.name} {options}"
        return replace(table, lines=tuple(lines), suite=self.name, labels=self.labels, command=command)


def suite(name: str, *labels: str, needs: Needs, role: Role = "first") -> Callable[[Build], Suite]:
    """Make a suite of the function that builds its table."""
    return lambda build: Suite(name, labels, needs, role, build)


def films(*recipes: str, role: Role = "first") -> Needs:
    """Return the needs of a table with figures of the test films for some recipes."""
    return lambda results: results.jobs("films", *recipes, role=role)


@cache
def published() -> dict[str, dict[str, dict[str, str]]]:
    """Return the paper's figures by suite, row and column."""
    return tomllib.loads(Path(__file__).parents[1].joinpath("published.toml").read_text("utf-8"))


def _corrected(lines: Sequence[Line]) -> list[Line]:
    """Correct the p-values of each column for all rows of the table."""
    corrected = list(lines)
    for key in dict.fromkeys(key for line in lines for key in line.compared):
        places = [place for place, line in enumerate(lines) if key in line.compared]
        p_values = holm([lines[place].compared[key].permutation for place in places])
        for place, p in zip(places, p_values, strict=True):
            compared = corrected[place].compared
            changed = {**compared, key: replace(compared[key], holm=p)}
            corrected[place] = replace(corrected[place], compared=changed)
    return corrected


@dataclass(frozen=True)
class RecipeRow:
    """A recipe as a row of a table; title and key are by default those of the recipe."""

    recipe: str | Recipe
    title: str = ""
    key: str = ""  # key of the row in published.toml
    role: Role = "first"
    again: bool = False  # whether the table has another row of this recipe, which is compared already

    def __post_init__(self) -> None:
        recipe = self.recipe if isinstance(self.recipe, Recipe) else fixed_recipes()[self.recipe]
        object.__setattr__(self, "title", self.title or recipe.title)
        object.__setattr__(self, "key", self.key or recipe.name)


def recipe_lines(
    results: Results,
    rows: Sequence[RecipeRow],
    columns: Sequence[Column],
    against: RecipeRow | None = None,
    keys: Sequence[str] = (MACRO_F1, POINTING),
) -> list[Line]:
    """Return one line for each recipe; in the columns of ``keys`` it is compared with ``against``."""
    lines = []
    for row in rows:
        compared: dict[str, Comparison] = {}
        if against is not None and not row.again and row.recipe != against.recipe:
            for key in [column.key for column in columns if column.key in keys]:
                comparison = results.compared(row.recipe, against.recipe, key, row.role)
                compared |= {} if comparison is None else {key: comparison}
        ours = {column.key: results.value(row.recipe, column.key, row.role) for column in columns}
        lines.append(Line(row.title, ours, row.key, compared=compared))
    return lines


def recipe_table(
    results: Results,
    title: str,
    rows: Sequence[RecipeRow],
    columns: tuple[Column, ...],
    *,
    against: int = 0,
    read: int,
    keys: Sequence[str] = (MACRO_F1, POINTING),
    notes: tuple[str, ...] = (),
) -> Table:
    """Return a table of recipes and trivial baselines; its reading compares row ``read`` with row ``against``."""
    base = rows[against]
    lines = recipe_lines(results, rows, columns, base, keys) + trivial_lines(results, base.recipe, columns, base.role)
    return Table(title, columns, tuple(lines), versus(lines, lines[read], lines[against], F1), base.title, notes)


def trivial_lines(
    results: Results, recipe: str | Recipe, columns: Sequence[Column], role: Role = "first"
) -> list[Line]:
    """Return the trivial baselines, which look at no film. They are the same in the results of every recipe."""
    by_title: dict[str, dict[str, Cell]] = {}
    for column in columns:
        keys: dict[str, str] = {}
        if column == F1:
            keys = {"always the commonest class": "majority.macro_f1"}
        elif column in (POINTS, PAIRS):
            stem = column.key.removesuffix(".mean")
            keys = {"a random point": f"{stem}.chance", "one fixed point for each finding": f"{stem}.fixed"}
        elif column == ENERGY:
            keys = {"a map that is the same everywhere": "energy.flat"}
        for title, key in keys.items():
            by_title.setdefault(title, {})[column.key] = results.value(recipe, key, role)
    return [Line(title, cells, trivial=True) for title, cells in by_title.items() if any(cells.values())]


def number(line: Line, key: str) -> float | None:
    """Return a figure of a line; None if the line has no such figure."""
    cell = line.ours.get(key)
    return cell.mean if isinstance(cell, Value) else None


def ranked(lines: Sequence[Line], key: str, *, trivial: bool = False) -> list[tuple[float, str]]:
    """Return figure and title of the lines that have the figure, lowest first."""
    return sorted(
        (value, line.title) for line in lines if line.trivial == trivial and (value := number(line, key)) is not None
    )


def versus(lines: Sequence[Line], line: Line, against: Line, column: Column) -> str:
    """Compare a line with another and with the best trivial baseline, in one sentence."""
    ours, theirs = number(line, column.key), number(against, column.key)
    if ours is None or theirs is None:
        return NOT_MEASURED
    sentence = f"{column.title}: {line.title} {ours:.3f}, {against.title} {theirs:.3f}"
    comparison = line.compared.get(column.key)
    if comparison is not None and comparison.interval is not None:
        low, high = comparison.interval.low, comparison.interval.high
        verdict = "excludes zero" if low > 0 or high < 0 else "does not exclude zero"
        bounds = f"[{low:+.3f}, {high:+.3f}], which {verdict}"
        sentence += f"; difference {comparison.difference:+.3f}, 95 % interval {bounds}"
    baselines = ranked(lines, column.key, trivial=True)
    return sentence + (f"; {baselines[-1][1]} gets {baselines[-1][0]:.3f}." if baselines else ".")
