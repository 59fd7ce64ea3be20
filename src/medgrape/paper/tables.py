"""A table as plain data: ours beside the paper's, trivial answers below, what is significant, and one line to read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from medgrape.evaluation.plots import Plot
from medgrape.evaluation.statistics import Comparison


@dataclass(frozen=True)
class Value:
    """A figure of ours, over the seeds."""

    mean: float
    sd: float | None = None
    """None where there is one seed only."""
    n: int = 1
    low: float | None = None
    high: float | None = None
    """Of an interval over patients, where the table has one."""
    whole: bool = False
    """A count, not a share."""

    @property
    def text(self) -> str:
        """As people read it."""
        if self.whole:
            return f"{self.mean:,.0f}"
        shown = f"{self.mean:.3f}"
        if self.low is not None and self.high is not None:
            return f"{shown} [{self.low:.3f}, {self.high:.3f}]"
        return shown if self.sd is None else f"{shown} ± {self.sd:.3f}"


Cell = Value | str | None
"""Words stand where there is no figure by nature; None where it is not defined, or not measured yet."""


@dataclass(frozen=True)
class Column:
    """One figure."""

    key: str
    title: str
    better: str = ""
    """``higher``, ``lower``, or nothing where neither is."""

    @property
    def heading(self) -> str:
        """With an arrow to where it is better."""
        return self.title + {"higher": " ↑", "lower": " ↓"}.get(self.better, "")


@dataclass(frozen=True)
class Line:
    """One row."""

    title: str
    ours: Mapping[str, Cell]
    paper: Mapping[str, str] = field(default_factory=dict)
    """Column to what the paper has there."""
    trivial: bool = False
    """An answer that looks at no film."""
    compared: Mapping[str, Comparison] = field(default_factory=dict)
    """Column to a comparison with the row that the table names."""

    def __post_init__(self) -> None:
        if self.trivial:  # no seed has a part in it
            cells = {
                key: replace(cell, sd=None) if isinstance(cell, Value) else cell for key, cell in self.ours.items()
            }
            object.__setattr__(self, "ours", cells)


@dataclass(frozen=True)
class Table:
    """One section of the report."""

    suite: str
    title: str
    labels: tuple[str, ...]
    """What the paper calls it."""
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    reading: str
    """What it says, in one line."""
    against: str = ""
    """The row that others are compared with."""
    notes: tuple[str, ...] = ()
    plots: tuple[Plot, ...] = ()
    pictures: tuple[Mapping[str, str], ...] = ()
    """File and caption."""
    command: str = ""

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
        """Those in which any row is compared."""
        return tuple(column for column in self.columns if any(column.key in line.compared for line in self.lines))


def spread(values: Sequence[float | None], *, whole: bool = False) -> Value | None:
    """Over the seeds that have the figure; None where none has."""
    known = [float(value) for value in values if value is not None]
    if not known:
        return None
    mean = sum(known) / len(known)
    sd = (sum((value - mean) ** 2 for value in known) / (len(known) - 1)) ** 0.5 if len(known) > 1 else None
    return Value(mean, sd, len(known), whole=whole)
