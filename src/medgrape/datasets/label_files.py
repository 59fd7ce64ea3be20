"""Reading published label files; an error names the file."""

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from medgrape.errors import UserError, nearest


class SourceError(UserError):
    """A folder or file that is not what it should be."""


def required(path: Path, what: str) -> Path:
    """Return ``path``, which the data set ``what`` must have."""
    return first_present(path.parent, [path.name], what)


def first_present(folder: Path, names: Iterable[str], what: str) -> Path:
    """Return the first of several spellings of a file that exists."""
    choices = list(names)
    for name in choices:
        if (folder / name).is_file():
            return folder / name
    raise SourceError(f"{what} needs {folder / choices[0]}, which is not there; is this the right folder?")


def read_text(path: Path) -> str:
    """Return a label file's text, gzipped or not."""
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise SourceError(f"{path} cannot be read: {error}.") from error


def plain_rows(path: Path) -> Iterator[list[str]]:
    """Yield the rows of a CSV file that are not empty."""
    try:
        yield from (row for row in csv.reader(io.StringIO(read_text(path), newline="")) if row)
    except csv.Error as error:
        raise SourceError(f"{path} is no CSV file: {error}.") from error


def named_rows(path: Path, required: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield a CSV file's rows by column; a cell that a short row lacks is empty."""
    rows = plain_rows(path)
    names = next(rows, [])
    repeated = [name for name, count in Counter(names).items() if count > 1 and name]
    if repeated:
        raise SourceError(f"{path} has two columns {repeated[0]!r}; rename one.")
    for column in required:
        if column not in names:
            raise SourceError(f"{path} has no column {column!r}{nearest(column, names)}.")
    for row in rows:
        yield dict.fromkeys(names, "") | dict(zip(names, row, strict=False))


def encodable(value: object) -> str:
    """Return a value as text that UTF-8 can encode: half a surrogate pair, which JSON allows, becomes its code."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def without_suffix(path: str) -> str:
    """Return a path without its suffix: tools and mirrors re-encode films but keep their names."""
    pure = PurePosixPath(path)
    return pure.with_suffix("").as_posix() if pure.name else path


def number(text: str) -> float:
    """Return the number in a cell; NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def age_in_years(text: str, oldest: int = 120) -> int | None:
    """Return ``58``, ``058Y`` or ``58.0`` as years; None for months, days and impossible ages."""
    digits = text.strip().removesuffix("Y").removesuffix(".0")
    return int(digits) if digits.isdecimal() and int(digits) <= oldest else None
