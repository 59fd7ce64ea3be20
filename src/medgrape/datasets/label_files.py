"""Published label files: whatever is wrong with one is told with its name and line."""

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from medgrape.errors import UserError, nearest


class SourceError(UserError):
    """A folder or file that is not what it is said to be."""


def required(path: Path, what: str) -> Path:
    """``path``, which a source must have."""
    return first_present(path.parent, [path.name], what)


def first_present(folder: Path, names: Iterable[str], what: str) -> Path:
    """The first of several spellings of a file that is there."""
    choices = list(names)
    for name in choices:
        if (folder / name).is_file():
            return folder / name
    raise SourceError(f"{what} needs {folder / choices[0]}, which is not there; is this the right folder?")


def read_text(path: Path) -> str:
    """A label file's text, gzipped or not."""
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise SourceError(f"{path} cannot be read: {error}.") from error


def plain_rows(path: Path) -> Iterator[list[str]]:
    """A CSV file's rows as they are, without the empty ones."""
    try:
        yield from (row for row in csv.reader(io.StringIO(read_text(path), newline="")) if row)
    except csv.Error as error:
        raise SourceError(f"{path} is no CSV file: {error}.") from error


def named_rows(path: Path, wanted: Iterable[str]) -> Iterator[dict[str, str]]:
    """A CSV file's rows by column; a cell that a short row leaves out is empty."""
    rows = plain_rows(path)
    names = next(rows, [])
    doubled = [name for name, count in Counter(names).items() if count > 1 and name]
    if doubled:
        raise SourceError(f"{path} has two columns {doubled[0]!r}; rename one.")
    for column in wanted:
        if column not in names:
            raise SourceError(f"{path} has no column {column!r}{nearest(column, names)}.")
    for row in rows:
        yield dict.fromkeys(names, "") | dict(zip(names, row, strict=False))


def written(value: object) -> str:
    """A value as text that can be written down again: half a letter, as JSON may spell it, becomes its code."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def number(text: str) -> float:
    """What a cell says, or NaN where that is no number."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def age_in_years(text: str, oldest: int = 120) -> int | None:
    """``58``, ``058Y`` or ``58.0`` as years; None for months, days and what nobody reaches."""
    digits = text.strip().removesuffix("Y").removesuffix(".0")
    return int(digits) if digits.isdecimal() and int(digits) <= oldest else None
