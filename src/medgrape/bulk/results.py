"""The folder that ``medgrape predict`` fills: its plan, its parts and its summary.

The plan says which films are read, in which order, and how many form a part. It is written before the first film is
read. The films stand in a file, one per line, of which one part is read at a time; SQLite sorts them and removes
duplicates in a temporary file. So memory does not grow with the number of films.
"""

import hashlib
import importlib.util
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medgrape.bulk.film_reader import REFUSED
from medgrape.bulk.listing import ListedFilm, films_of
from medgrape.errors import UserError, escape_undecodable
from medgrape.explain.words import NOTICE
from medgrape.files import whole_file, write_json
from medgrape.progress import Track, quietly
from medgrape.records import Record

if TYPE_CHECKING:
    import pyarrow as pa

PLAN, FILMS, SUMMARY = "_plan.json", "_films.jsonl", "_summary.json"
"""Programs that read a folder of Parquet files ignore names that start with an underscore."""
FORMAT = 1
LARGEST_PART, SMALLEST_PART = 512, 32
"""Default limits of a part, in films: small enough that a lost worker costs little, large enough for few files."""
_PARTS_PER_WORKER = 32
_BATCH = 8  # parts of ``SMALLEST_PART`` films or more are a multiple of this
_EXAMPLES = 20  # refused films that the summary names; the table has them all
NEEDED = "Tables of films need: pip install 'medgrape[bulk]'."


@dataclass(frozen=True)
class Listing:
    """The file that lists all films."""

    path: Path
    films: int
    digest: str  # hash of the places of all films in their order


def list_films(places: Iterable[str], path: Path) -> Listing:
    """Write every film once to the file ``path``, in an order that depends on the places alone."""
    with closing(sqlite3.connect("", isolation_level=None)) as sorter, path.open("w", encoding="utf-8") as file:
        sorter.execute("CREATE TABLE film (place TEXT PRIMARY KEY, number INT, rank INT, name TEXT) WITHOUT ROWID")
        sorter.execute("BEGIN")
        sorter.executemany("INSERT OR IGNORE INTO film VALUES (?, ?, ?, ?)", _rows(places))
        digest, films = hashlib.sha256(), 0
        for name, place in sorter.execute("SELECT name, place FROM film ORDER BY number, rank, name"):
            digest.update(place + b"\n")
            file.write(json.dumps([text.decode("utf-8", "surrogateescape") for text in (name, place)]) + "\n")
            films += 1
    return Listing(path, films, digest.hexdigest()[:16])


def _rows(places: Iterable[str]) -> Iterator[tuple[bytes, int, int, bytes]]:
    """Encode names as bytes, because the name of a file may be invalid text."""
    for number, rank, name in films_of(places):
        film = ListedFilm.of(name)
        yield film.place.encode("utf-8", "surrogateescape"), number, rank, name.encode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Part:
    """Films whose rows form one Parquet file."""

    number: int
    films: tuple[ListedFilm, ...]

    @property
    def name(self) -> str:
        """Name of the file."""
        return f"part-{self.number:05d}.parquet"


class Plan(Record):
    """How the films of a folder of results are divided; it does not depend on the engine."""

    model: str  # version of the model
    films: int
    digest: str
    part: int  # films in a part
    format: int = FORMAT

    @property
    def parts(self) -> int:
        """Number of parts."""
        return ceil(self.films / self.part)

    def write(self, out: Path, listing: Listing) -> None:
        """Write list and plan into the folder; the plan last, so that a folder with a plan has its list."""
        listing.path.replace(out / FILMS)
        write_json(out / PLAN, self.to_json(), indent=1)

    def each(self, out: Path) -> Iterator[Part]:
        """Yield the parts one after the other."""
        with (out / FILMS).open(encoding="utf-8") as lines:
            for number in range(self.parts):
                yield Part(number, tuple(ListedFilm(*json.loads(line)) for line in islice(lines, self.part)))


def read_plan(out: Path) -> Plan | None:
    """Return the plan of an earlier call, or None if the folder has none."""
    path = out / PLAN
    if not path.is_file():
        return None
    try:
        payload = json.loads(path.read_text("utf-8"))
        if payload["format"] == FORMAT:
            return Plan.from_json(payload)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} cannot be read; choose another --out.") from error
    raise UserError(f"{out} was made by another version of medgrape; choose another --out.")


def part_size(films: int, workers: int) -> int:
    """Return a size with which all workers get the same number of parts, and many of them: so all end together."""
    wanted = min(LARGEST_PART, max(SMALLEST_PART, ceil(films / (_PARTS_PER_WORKER * workers))))
    rounds = ceil(films / (wanted * workers))
    size = ceil(films / (rounds * workers))
    return size if size < SMALLEST_PART else ceil(size / _BATCH) * _BATCH


@dataclass(frozen=True)
class Count:
    """How many films and parts there are."""

    films: int = 0
    refused: int = 0
    parts: int = 0
    examples: tuple[tuple[str, str], ...] = ()  # the first refused films, each with its reason

    def plus(self, table: "pa.Table") -> "Count":
        """Return the count with one more part."""
        import pyarrow.compute as pc

        refused = table.filter(pc.equal(table["status"], REFUSED)).select(["film", "reason"])
        examples = tuple((row["film"], row["reason"]) for row in refused.slice(0, _EXAMPLES).to_pylist())
        return self + Count(table.num_rows, refused.num_rows, 1, examples)

    def __add__(self, other: "Count") -> "Count":
        examples = (self.examples + other.examples)[:_EXAMPLES]
        return Count(self.films + other.films, self.refused + other.refused, self.parts + other.parts, examples)


@dataclass(frozen=True)
class Summary:
    """What a call of ``medgrape predict`` did."""

    out: str
    model: str
    engine: str
    workers: int
    found: Count  # what earlier calls had completed
    made: Count  # what this call has read
    seconds: float  # duration of this call

    @property
    def all(self) -> Count:
        """What the folder holds now."""
        return self.found + self.made

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        total = self.all
        return {
            "out": self.out, "films": total.films, "read": total.films - total.refused,
            "refused": total.refused, "parts": total.parts, "model": self.model, "engine": self.engine,
            "workers": self.workers, "films_found_done": self.found.films, "seconds": round(self.seconds, 2),
            "notice": NOTICE,
            "refused_films": [{"film": film, "reason": reason} for film, reason in total.examples],
        }  # fmt: skip

    def write(self, out: Path) -> None:
        """Write it beside the parts."""
        write_json(out / SUMMARY, self.to_json(), indent=1)


@dataclass
class Parts:
    """The parts of a folder: those that exist, and those that are still to be read."""

    out: Path
    plan: Plan
    found: Count = Count()
    made: Count = Count()

    def missing(self) -> Iterator[Part]:
        """Yield the parts to read; count the complete ones on the way."""
        for part in self.plan.each(self.out):
            table = self._existing(part)
            if table is None:
                yield part
            else:
                self.found = self.found.plus(table)

    def keep(self, part: Part, table: "pa.Table") -> None:
        """Write a part after checking that its rows belong to its films."""
        import pyarrow.parquet as pq

        if not self._fits(part, table):
            raise RuntimeError(f"the rows of {part.name} do not belong to its films")
        with whole_file(self.out / part.name) as draft:
            pq.write_table(table, draft, compression="zstd")
        self.made = self.made.plus(table)

    def _existing(self, part: Part) -> "pa.Table | None":
        """Return the part that an earlier call wrote; None if it is missing or damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(
                self.out / part.name, columns=["film", "status", "reason", "model"], partitioning=None
            )
        except (OSError, pa.ArrowException):
            return None
        return table if self._fits(part, table) else None

    def _fits(self, part: Part, table: "pa.Table") -> bool:
        names = [escape_undecodable(film.name) for film in part.films]
        return table["film"].to_pylist() == names and set(table["model"].to_pylist()) <= {self.plan.model}


@dataclass(frozen=True)
class Results:
    """Every part of a complete folder, in the order of the plan."""

    parts: tuple[Path, ...]

    @property
    def schema(self) -> "pa.Schema":
        """Schema of every part."""
        import pyarrow.parquet as pq

        return pq.read_schema(self.parts[0])

    def batches(self, track: Track = quietly) -> Iterator["pa.RecordBatch"]:
        """Yield the rows in batches, so that memory does not grow with the number of films."""
        import pyarrow.parquet as pq

        for part in track(self.parts, "reading parts", len(self.parts)):
            with pq.ParquetFile(part) as file:
                yield from file.iter_batches()


def results_in(folder: Path) -> Results:
    """Return the results in a folder, or raise if they are not complete."""
    if importlib.util.find_spec("pyarrow") is None:
        raise UserError(NEEDED)
    plan = read_plan(folder)
    if plan is None:
        raise UserError(f"{folder} holds no readings; make some with: medgrape predict --out {folder}.")
    parts = tuple(folder / Part(number, ()).name for number in range(plan.parts))
    missing = sum(not part.is_file() for part in parts)
    if missing or not parts:
        raise UserError(
            f"{folder} is not complete: {missing} of {len(parts)} parts are missing; give the same medgrape predict "
            "command again."
        )
    return Results(parts)
