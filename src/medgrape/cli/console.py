"""Printing for people and for programs."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

T = TypeVar("T")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
out = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
err = Console(stderr=True, width=None if sys.stderr.isatty() else 140, highlight=False)


def complain(sentence: str) -> None:
    """One sentence on standard error, as it is: no colour codes hide in a file's name."""
    err.print(f"medgrape: {printable(sentence)}", markup=False, soft_wrap=True)


def note(sentence: str) -> None:
    """One sentence about what was done."""
    out.print(printable(sentence), markup=False, soft_wrap=True)


def printable(text: str) -> str:
    """A name may hold bytes that are no text, or orders to the terminal; both are shown as codes."""
    told = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", told)


def print_json(data: object) -> None:
    """Plain JSON on standard output, and nothing else."""
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table; every column but the first is a figure and stands to the right. Cells are text, whatever they hold."""
    out.print(printable(title), style="bold", markup=False, soft_wrap=True)
    shown = Table()
    for place, column in enumerate(columns):
        shown.add_column(Text(printable(column)), justify="left" if place == 0 else "right", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(printable(str(cell))) for cell in row))
    out.print(shown)


def track(items: Iterable[T], label: str, total: int) -> Iterable[T]:
    """A progress bar on standard error, with the time left."""
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
        console=err, transient=True, disable=not err.is_terminal,
    ) as bar:  # fmt: skip
        yield from bar.track(items, total=total, description=label)


@contextmanager
def watch(label: str, total: int, done: int = 0) -> Iterator[Callable[[str], None]]:
    """A bar on standard error whose text tells the latest figures, with the time left."""
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
        TextColumn("{task.fields[news]}"), console=err, transient=True, disable=not err.is_terminal,
    ) as bar:  # fmt: skip
        task = bar.add_task(label, total=total, completed=done, news="")

        def step(news: str) -> None:
            bar.update(task, advance=1, news=news)

        yield step
