"""A table of results as plain data, and the same table as CSV, LaTeX and Markdown."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from medgrape.evaluation.plots import Plot
from medgrape.evaluation.statistics import Comparison


@dataclass(frozen=True)
class Value:
    """Mean of a figure over the seeds."""

    mean: float
    sd: float | None = None
    """Standard deviation; None with one seed only."""
    n: int = 1
    low: float | None = None
    """Lower bound of an interval over patients, if there is one."""
    high: float | None = None
    whole: bool = False
    """Whether it is a count, to be shown without decimals."""

    @property
    def se(self) -> float | None:
        """Standard error of the mean; None with one seed only."""
        return None if self.sd is None else self.sd / self.n**0.5

    @property
    def text(self) -> str:
        """The figure for people."""
        if self.whole:
            return f"{self.mean:,.0f}"
        if self.low is not None and self.high is not None:
            return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"
        return self.rounded(3)

    def rounded(self, digits: int) -> str:
        """Mean ± standard deviation."""
        return f"{self.mean:.{digits}f}" + ("" if self.sd is None else f" ± {self.sd:.{digits}f}")


def spread(values: Sequence[float | None], *, whole: bool = False) -> Value | None:
    """Mean and standard deviation of the values that are defined; None if none is."""
    known = [float(value) for value in values if value is not None]
    if not known:
        return None
    mean = sum(known) / len(known)
    sd = (sum((value - mean) ** 2 for value in known) / (len(known) - 1)) ** 0.5 if len(known) > 1 else None
    return Value(mean, sd, len(known), whole=whole)


Cell = Value | str | None
"""A figure or text; None if the figure is not defined, or not measured yet."""


@dataclass(frozen=True)
class Column:
    """One figure of every row."""

    key: str
    title: str
    better: str = ""
    """``higher``, ``lower``, or nothing if neither is better."""
    digits: int = 3
    """Decimals in Markdown."""

    @property
    def heading(self) -> str:
        """The title with an arrow towards better values."""
        return self.title + {"higher": " ↑", "lower": " ↓"}.get(self.better, "")


@dataclass(frozen=True)
class Line:
    """One row of a table."""

    title: str
    ours: Mapping[str, Cell]
    """Column key to our figure."""
    paper: Mapping[str, str] = field(default_factory=dict)
    """Column key to the figure in the paper."""
    trivial: bool = False
    """Whether this is a trivial baseline, which looks at no film."""
    compared: Mapping[str, Comparison] = field(default_factory=dict)
    """Column key to a comparison with the reference row of the table."""

    def __post_init__(self) -> None:
        if self.trivial:  # a trivial baseline does not depend on the seed
            cells = {
                key: replace(cell, sd=None) if isinstance(cell, Value) else cell for key, cell in self.ours.items()
            }
            object.__setattr__(self, "ours", cells)


@dataclass(frozen=True)
class Table:
    """One section of the report."""

    title: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    reading: str = ""
    """The result in one sentence."""
    against: str = ""
    """Title of the row with which others are compared."""
    notes: tuple[str, ...] = ()
    plots: tuple[Plot, ...] = ()
    pictures: tuple[Mapping[str, str], ...] = ()
    """File and caption of each."""
    suite: str = ""
    labels: tuple[str, ...] = ()
    """Labels of the paper's tables and figures."""
    command: str = ""
    """The command that makes it."""

    @property
    def has_paper(self) -> bool:
        """Whether the paper has any of these figures."""
        return any(self.beside(column) for column in self.columns)

    def beside(self, column: Column) -> bool:
        """Whether the paper has any figure of that column."""
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
    """Format a cell for people, with its number of seeds if that is smaller than ``seeds``."""
    if cell is None:
        return "–"
    if not isinstance(cell, Value):
        return cell
    return f"{cell.text} (n = {cell.n})" if 0 < cell.n < seeds and cell.sd is not None else cell.text


def as_csv(table: Table) -> str:
    """One line for each row and figure, ours and the paper's, without rounding."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(
        ["row", "figure", "ours", "sd", "n", "low", "high", "paper", "trivial", "difference", "difference_low",
         "difference_high", "p_t_test", "p_permutation", "p_holm"]
    )  # fmt: skip
    for line in table.lines:
        for column in table.columns:
            cell, found = line.ours.get(column.key), line.compared.get(column.key)
            figures: list[object] = [cell or "", "", "", "", ""]
            if isinstance(cell, Value):
                figures = [cell.mean, cell.sd, cell.n, cell.low, cell.high]
            comparison: list[object] = [""] * 6
            if found is not None:
                bounds = (None, None) if found.interval is None else (found.interval.low, found.interval.high)
                comparison = [found.difference, *bounds, found.t_test, found.permutation, found.holm]
            paper = line.paper.get(column.key, "")
            writer.writerow([line.title, column.key, *figures, paper, int(line.trivial), *comparison])
    return written.getvalue()


def as_latex(table: Table) -> str:
    """The table with booktabs; the paper's figures stand in a column beside ours."""
    columns = "".join("ll" if table.beside(column) else "l" for column in table.columns)
    heads = [f"{_tex(column.heading)}{' & paper' if table.beside(column) else ''}" for column in table.columns]
    rows = [" & ".join(["", *heads])]
    for line in table.lines:
        cells = [_tex(line.title)]
        for column in table.columns:
            cells.append(_tex(shown(line.ours.get(column.key))))
            cells += [_tex(line.paper.get(column.key, ""))] if table.beside(column) else []
        rows.append(" & ".join(cells))
    body = " \\\\\n    ".join(rows[1:])
    return (
        f"% {table.command}\n\\begin{{table}}\n  \\caption{{{_tex(table.title)}. {_tex(table.reading)}}}\n"
        f"  \\label{{tab:medgrape-{table.suite}}}\n  \\centering\n"
        f"  \\begin{{tabular}}{{@{{}}l{columns}@{{}}}}\n    \\toprule\n"
        f"    {rows[0]} \\\\\n    \\midrule\n    {body} \\\\\n    \\bottomrule\n  \\end{{tabular}}\n\\end{{table}}\n"
    )


_ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "→": r"$\to$", "µ": r"$\mu$", "–": "--",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "“": "``", "”": "''", "<": "$<$",
}  # fmt: skip


def _tex(text: str) -> str:
    return re.sub(r"[\\&%$#_{}~^±→µ–↑↓“”<]", lambda found: _ESCAPED[found.group()], text)


def as_markdown(table: Table) -> str:
    """The table in Markdown; its title heads the first column."""
    rows = [(table.title, *(column.title for column in table.columns)), ("---",) * (1 + len(table.columns))]
    for line in table.lines:
        cells = [(line.ours.get(column.key), column.digits) for column in table.columns]
        texts = (cell.rounded(digits) if isinstance(cell, Value) else cell or "-" for cell, digits in cells)
        rows.append((line.title, *texts))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)
