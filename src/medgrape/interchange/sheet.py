"""CSV that may be opened in a spreadsheet: no text of somebody else's is ever taken for a formula."""

import csv
import io
import re
from collections.abc import Iterable, Iterator

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a cell may begin with that spreadsheets compute; the last four are the wide ones of East Asian keyboards."""


def lines(header: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Line after line, each with its end."""
    yield _line(header)
    yield from (_line(row) for row in rows)


def _line(row: Iterable[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([_cell(value) for value in row])
    return text.getvalue()


def _cell(value: object) -> object:
    """Numbers as they are; text that would be computed gets an apostrophe before it, as one types it there."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.10g}"
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> str:
    """In one line: some programs take a lone return within a cell for the next row."""
    line = re.sub(r"[\x00-\x1f\x7f]", " ", value)
    return f"'{line}" if line.lstrip(" ").startswith(_FORMULA) else line
