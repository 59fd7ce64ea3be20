"""What is to be read, written down before the first film: which films, in which order, how many to a part.

The films stand in a file, one to a line, and are only ever looked at a part at a time. Ordering them and leaving out
those that are listed twice is SQLite's work, in a temporary file: no list of all films is ever in memory.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from medgrape.bulk.listing import ListedFilm, films_of
from medgrape.errors import UserError
from medgrape.files import whole_file

PLAN, FILMS = "_plan.json", "_films.jsonl"
"""Programs that read a folder of Parquet files pass over names with an underscore."""
FORMAT = 1
LARGEST_PART, SMALLEST_PART = 512, 32
"""Films to a part where nobody says how many: so few that a lost worker costs little, so many that files stay few."""
_PARTS_TO_A_WORKER = 32
_WHOLE_BATCHES, _FROM = 8, 32
"""Parts of so many films and more are whole numbers of batches."""


@dataclass(frozen=True)
class Listing:
    """All films, in a file."""

    path: Path
    films: int
    digest: str
    """Of where all of them are, in their order."""


@dataclass(frozen=True)
class Part:
    """Some films whose rows become one file."""

    number: int
    films: tuple[ListedFilm, ...]

    @property
    def name(self) -> str:
        """Of its file."""
        return f"part-{self.number:05d}.parquet"


@dataclass(frozen=True)
class Plan:
    """What a folder of results is made of, whichever engine fills it."""

    model: str
    """Version of the model."""
    films: int
    digest: str
    part: int
    """Films to a part."""
    format: int = FORMAT

    @property
    def parts(self) -> int:
        """How many files there will be."""
        return -(-self.films // self.part)

    def write(self, out: Path, listing: Listing) -> None:
        """Into its folder; the plan itself last, so that one that is there has its films."""
        listing.path.replace(out / FILMS)
        with whole_file(out / PLAN) as draft:
            draft.write_text(json.dumps(asdict(self), indent=1) + "\n", "utf-8")

    def each(self, out: Path) -> Iterator[Part]:
        """Part after part, of which only one is looked at at a time."""
        with (out / FILMS).open(encoding="utf-8") as lines:
            for number in range(self.parts):
                yield Part(number, tuple(ListedFilm(*json.loads(line)) for line in islice(lines, self.part)))


def plan_for(listing: Listing, model: str, part: int | None, workers: int) -> Plan:
    """A new plan, with parts of the size that somebody asks for or that suits so many films and workers."""
    return Plan(model, listing.films, listing.digest, part or fair_part(listing.films, workers))


def fair_part(films: int, workers: int) -> int:
    """Every worker gets as many parts as the others, and many where there are enough films: so all end at once."""
    wanted = min(LARGEST_PART, max(SMALLEST_PART, _share(films, _PARTS_TO_A_WORKER * workers)))
    rounds = _share(films, wanted * workers)
    part = _share(films, rounds * workers)
    return part if part < _FROM else _share(part, _WHOLE_BATCHES) * _WHOLE_BATCHES


def _share(films: int, among: int) -> int:
    return -(-films // among)


def plan_in(out: Path) -> Plan | None:
    """The plan of an earlier call, if there is one."""
    path = out / PLAN
    if not path.is_file():
        return None
    try:
        told: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if told["format"] != FORMAT:
            raise UserError(f"{out} was begun by another version of medgrape; choose another --out.")
        return Plan(**told)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path} cannot be read; choose another --out.") from error


def list_films(places: Iterable[str], path: Path) -> Listing:
    """Every film once, in an order that the same places always give, into a file."""
    with closing(sqlite3.connect("", isolation_level=None)) as sorter, path.open("w", encoding="utf-8") as file:
        sorter.execute("CREATE TABLE film (place TEXT PRIMARY KEY, number INT, rank INT, name TEXT) WITHOUT ROWID")
        sorter.execute("BEGIN")
        sorter.executemany("INSERT OR IGNORE INTO film VALUES (?, ?, ?, ?)", _rows(places))
        return _written(sorter.execute("SELECT name, place FROM film ORDER BY number, rank, name"), file, path)


def _rows(places: Iterable[str]) -> Iterator[tuple[bytes, int, int, bytes]]:
    """Names as bytes: a file's name need not be text."""
    for number, rank, name in films_of(places):
        film = ListedFilm.of(name)
        yield _bytes(film.place), number, rank, _bytes(film.name)


def _written(films: Iterable[tuple[bytes, bytes]], file: IO[str], path: Path) -> Listing:
    digest, count = hashlib.sha256(), 0
    for name, place in films:
        digest.update(place + b"\n")
        file.write(json.dumps([_text(name), _text(place)]) + "\n")
        count += 1
    return Listing(path, count, digest.hexdigest()[:16])


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
