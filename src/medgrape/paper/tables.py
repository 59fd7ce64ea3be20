"""A table of results, and the same table as CSV, LaTeX and Markdown."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from medgrape.evaluation.plots import Plot
from medgrape.evaluation.statistics import Comparison


@dataclass(frozen=True)
class Value:
    """Mean of a figure over the seeds."""

    mean: float
    sd: float | None = None  # standard deviation; None with one seed only
    n: int = 1
    low: float | None = None  # bounds of an interval over patients, if there is one
    high: float | None = None
    whole: bool = False  # whether it is a count, to be shown without decimals

    @property
    def se(self) -> float | None:
        """Standard error of the mean; None with one seed only."""
        return None if self.sd is None else self.sd / self.n**0.5

    @property
    def text(self) -> str:
        """The figure as the report shows it."""
        if self.whole:
            return f"{self.mean:,.0f}"
        if self.low is not None and self.high is not None:
            return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"
        return self.rounded(3)

    def rounded(self, digits: int) -> str:
        """Return mean ± standard deviation."""
        return f"{self.mean:.{digits}f}" + ("" if self.sd is None else f" ± {self.sd:.{digits}f}")


def spread(values: Sequence[float | None], *, whole: bool = False) -> Value | None:
    """Return mean and standard deviation of the values that are defined; None if none is."""
    known = [float(value) for value in values if value is not None]
    if not known:
        return None
    mean = sum(known) / len(known)
    sd = (sum((value - mean) ** 2 for value in known) / (len(known) - 1)) ** 0.5 if len(known) > 1 else None
    return Value(mean, sd, len(known), whole=whole)


Cell = Value | str | None  # None if the figure is not defined, or not measured yet


@dataclass(frozen=True)
class Column:
    """One figure of every row."""

    key: str
    title: str
    better: str = ""  # "higher", "lower", or nothing if neither is better
    digits: int = 3  # decimals in Markdown

    @property
    def heading(self) -> str:
        """The title with an arrow towards better values."""
        return self.title + {"higher": " ↑", "lower": " ↓"}.get(self.better, "")


@dataclass(frozen=True)
class Line:
    """One row of a table; its mappings have the keys of the columns."""

    title: str
    ours: Mapping[str, Cell]
    key: str = ""  # key of the row in published.toml
    paper: Mapping[str, str] = field(default_factory=dict)  # the paper's figures
    trivial: bool = False  # whether this is a trivial baseline, which looks at no film
    compared: Mapping[str, Comparison] = field(default_factory=dict)  # with the reference row of the table

    def __post_init__(self) -> None:
        if self.trivial:  # a trivial baseline does not depend on the seed
            object.__setattr__(self, "ours", {key: without_sd(cell) for key, cell in self.ours.items()})


def without_sd(cell: Cell) -> Cell:
    """Return a cell without the standard deviation over the seeds."""
    return replace(cell, sd=None) if isinstance(cell, Value) else cell


@dataclass(frozen=True)
class Table:
    """One section of the report."""

    title: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    reading: str = ""  # the result in one sentence
    against: str = ""  # title of the row with which others are compared
    notes: tuple[str, ...] = ()
    plots: tuple[Plot, ...] = ()
    pictures: tuple[Mapping[str, str], ...] = ()  # file and caption of each
    suite: str = ""
    labels: tuple[str, ...] = ()  # labels of the paper's tables and figures
    command: str = ""  # the command that makes it

    @property
    def has_paper(self) -> bool:
        """Whether the paper has any of these figures."""
        return any(self.beside(column) for column in self.columns)

    def beside(self, column: Column) -> bool:
        """Return whether the paper has any figure of that column."""
        return any(column.key in line.paper for line in self.lines)

    @property
    def over_seeds(self) -> bool:
        """Whether any figure is a mean over seeds."""
        cells = [cell for line in self.lines for cell in line.ours.values()]
        return any(isinstance(cell, Value) and cell.sd is not None and cell.low is None for cell in cells)

    @property
    def compared_columns(self) -> tuple[Column, ...]:
        """Columns in which any row is compared."""
        return tuple(column for column in self.columns if any(column.key in line.compared for line in self.lines))


def shown(cell: Cell, seeds: int = 0) -> str:
    """Format a cell for the report, with its number of seeds if that is smaller than ``seeds``."""
    if not isinstance(cell, Value):
        return "–" if cell is None else cell
    return f"{cell.text} (n = {cell.n})" if 0 < cell.n < seeds and cell.sd is not None else cell.text


def as_csv(table: Table) -> str:
    """Return CSV with one line for each row and figure, ours and the paper's, without rounding."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["row", "figure", "ours", "sd", "n", "low", "high", "paper", "trivial", "difference", "difference_low",
         "difference_high", "p_t_test", "p_permutation", "p_holm"]
    )  # fmt: skip
    for line in table.lines:
        for column in table.columns:
            cell, comparison = line.ours.get(column.key), line.compared.get(column.key)
            figures: list[object] = [cell or "", "", "", "", ""]
            if isinstance(cell, Value):
                figures = [cell.mean, cell.sd, cell.n, cell.low, cell.high]
            tests: list[object] = [""] * 6
            if comparison is not None:
                bounds = comparison.interval
                low, high = (None, None) if bounds is None else (bounds.low, bounds.high)
                p_values = comparison.t_test, comparison.permutation, comparison.holm
                tests = [comparison.difference, low, high, *p_values]
            paper = line.paper.get(column.key, "")
            writer.writerow([line.title, column.key, *figures, paper, int(line.trivial), *tests])
    return text.getvalue()


def as_latex(table: Table) -> str:
    """Return the table with booktabs; the paper's figures are in a column beside ours."""
    columns = "".join("ll" if table.beside(column) else "l" for column in table.columns)
    heads = [f"{_tex(column.heading)}{' & paper' if table.beside(column) else ''}" for column in table.columns]
    rows = []
    for line in table.lines:
        cells = [_tex(line.title)]
        for column in table.columns:
            cells.append(_tex(shown(line.ours.get(column.key))))
            cells += [_tex(line.paper.get(column.key, ""))] if table.beside(column) else []
        rows.append(" & ".join(cells))
    body = " \\\\\n    ".join(rows)
    return (
        f"% {table.command}\n\\begin{{table}}\n  \\caption{{{_tex(table.title)}. {_tex(table.reading)}}}\n"
        f"  \\label{{tab:medgrape-{table.suite}}}\n  \\centering\n"
        f"  \\begin{{tabular}}{{@{{}}l{columns}@{{}}}}\n    \\toprule\n"
        f"    {' & '.join(['', *heads])} \\\\\n    \\midrule\n    {body} \\\\\n    \\bottomrule\n"
        f"  \\end{{tabular}}\n\\end{{table}}\n"
    )


_TEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "→": r"$\to$", "µ": r"$\mu$", "–": "--",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "“": "``", "”": "''", "<": "$<$",
})  # fmt: skip


def _tex(text: str) -> str:
    return text.translate(_TEX)


def as_markdown(table: Table) -> str:
    """Return the table in Markdown; its title is the heading of the first column."""
    rows = [(table.title, *(column.title for column in table.columns)), ("---",) * (1 + len(table.columns))]
    for line in table.lines:
        cells = [(line.ours.get(column.key), column.digits) for column in table.columns]
        texts = (cell.rounded(digits) if isinstance(cell, Value) else cell or "-" for cell, digits in cells)
        rows.append((line.title, *texts))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)
