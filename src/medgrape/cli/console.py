"""Console output: messages and tables for people, JSON for programs, progress bars."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from medgrape.errors import escape_undecodable

T = TypeVar("T")
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
out = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
err = Console(stderr=True, width=None if sys.stderr.isatty() else 140, highlight=False)


def print_error(message: str) -> None:
    """Print one line to standard error."""
    err.print(f"medgrape: {printable(message)}", markup=False, soft_wrap=True)


def note(message: str) -> None:
    """Print one line to standard output."""
    out.print(printable(message), markup=False, soft_wrap=True)


def print_warnings(warnings: Iterable[str]) -> None:
    """Print one line for each warning."""
    for warning in warnings:
        note(f"warning: {warning}")


def printable(text: str) -> str:
    """Escape control characters and undecodable bytes, which the name of a file or a text of a server may contain."""
    return _CONTROL_CHARACTERS.sub(lambda match: f"\\x{ord(match[0]):02x}", escape_undecodable(text))


def print_json(data: object) -> None:
    """Print the data as JSON to standard output; objects are converted by their ``to_json``, and paths to strings."""
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False, default=_to_json) + "\n")


def print_result(result: T, show: Callable[[T], None], *, as_json: bool) -> None:
    """Print a result as JSON, or as text and tables with ``show``."""
    if as_json:
        print_json(result)
    else:
        show(result)


def _to_json(value: Any) -> Any:  # noqa: ANN401
    return value.to_json() if hasattr(value, "to_json") else os.fspath(value)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table: floats with three decimals, bools as yes or no, None as a dash."""
    out.print(printable(title), style="bold", markup=False, soft_wrap=True)
    grid = Table()
    for position, column in enumerate(columns):
        grid.add_column(Text(printable(column)), justify="right" if position else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(printable(_format_cell(cell))) for cell in row))
    out.print(grid)


def _format_cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _progress_bar(*columns: TextColumn) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
        *columns, console=err, transient=True, disable=not err.is_terminal,
    )  # fmt: skip


def track(items: Iterable[T], label: str, total: int) -> Iterable[T]:
    """Yield the items with a progress bar on standard error."""
    with _progress_bar() as bar:
        yield from bar.track(items, total=total, description=label)


@contextmanager
def watch(label: str, total: int, done: int = 0) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on standard error; yield a function that advances it by one and changes its message."""
    with _progress_bar(TextColumn("{task.fields[message]}")) as bar:
        task = bar.add_task(label, total=total, completed=done, message="")
        yield lambda message: bar.update(task, advance=1, message=message)
