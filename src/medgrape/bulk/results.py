"""A folder that ``medgrape predict`` filled, opened again."""

import importlib.util
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medgrape.bulk.film_reader import REFUSED, printable
from medgrape.bulk.plan import Part, Plan, plan_in
from medgrape.errors import UserError
from medgrape.explain.words import NOTICE
from medgrape.files import whole_file
from medgrape.progress import Track, quietly

if TYPE_CHECKING:
    import pyarrow as pa

SUMMARY = "_summary.json"
_TOLD = 20
"""Refused films that the summary names; all of them are in the table."""


@dataclass(frozen=True)
class Count:
    """What rows add up to."""

    films: int = 0
    refused: int = 0
    parts: int = 0
    examples: tuple[tuple[str, str], ...] = ()
    """The first refused films, each with its reason."""

    def plus(self, table: "pa.Table") -> "Count":
        """With the rows of one more part."""
        import pyarrow.compute as pc

        bad = table.filter(pc.equal(table["status"], REFUSED)).select(["film", "reason"])
        named = tuple((row["film"], row["reason"]) for row in bad.slice(0, _TOLD).to_pylist())
        return Count(
            self.films + table.num_rows, self.refused + bad.num_rows, self.parts + 1, (self.examples + named)[:_TOLD]
        )

    def __add__(self, other: "Count") -> "Count":
        examples = (self.examples + other.examples)[:_TOLD]
        return Count(self.films + other.films, self.refused + other.refused, self.parts + other.parts, examples)


@dataclass(frozen=True)
class Summary:
    """What was done, for people and programs."""

    out: str
    model: str
    engine: str
    workers: int
    found: Count
    """What an earlier call had left, and was right."""
    made: Count
    """What this call has read."""
    seconds: float
    """Of this call."""

    @property
    def all(self) -> Count:
        """What is there now."""
        return self.found + self.made

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        everything = self.all
        return {
            "out": self.out, "films": everything.films, "read": everything.films - everything.refused,
            "refused": everything.refused, "parts": everything.parts, "model": self.model, "engine": self.engine,
            "workers": self.workers, "films_found_done": self.found.films, "seconds": round(self.seconds, 2),
            "notice": NOTICE,
            "refused_films": [{"film": film, "reason": reason} for film, reason in everything.examples],
        }  # fmt: skip

    def write(self, out: Path) -> None:
        """Beside the parts."""
        with whole_file(out / SUMMARY) as draft:
            draft.write_text(json.dumps(self.to_json(), indent=1) + "\n", "utf-8")


@dataclass
class Parts:
    """The parts of a folder: those that are there, and those that are still to be read."""

    out: Path
    plan: Plan
    found: Count = Count()
    made: Count = Count()

    def missing(self) -> Iterator[Part]:
        """Parts to read; on the way, the right ones that are there are counted."""
        for part in self.plan.each(self.out):
            table = self._there(part)
            if table is None:
                yield part
            else:
                self.found = self.found.plus(table)

    def keep(self, part: Part, table: "pa.Table") -> None:
        """A part that was read, once its rows are known to be those of its films."""
        import pyarrow.parquet as pq

        if not self._fits(part, table):
            raise RuntimeError(f"rows of {part.name} are not those of its films")
        with whole_file(self.out / part.name) as draft:
            pq.write_table(table, draft, compression="zstd")
        self.made = self.made.plus(table)

    def _there(self, part: Part) -> "pa.Table | None":
        """What an earlier call left of a part; None where it is not there or not right."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.out / part.name
        if not path.is_file():
            return None
        try:
            table = pq.read_table(path, columns=["film", "status", "reason", "model"], partitioning=None)
        except (OSError, pa.ArrowException):
            return None
        return table if self._fits(part, table) else None

    def _fits(self, part: Part, table: "pa.Table") -> bool:
        names = [printable(film.name) for film in part.films]
        return table["film"].to_pylist() == names and set(table["model"].to_pylist()) <= {self.plan.model}


NEEDED = "Tables of films need: pip install 'medgrape[bulk]'."


@dataclass(frozen=True)
class Results:
    """Every part, in the plan's order."""

    parts: tuple[Path, ...]

    @property
    def schema(self) -> "pa.Schema":
        """The same for every part."""
        import pyarrow.parquet as pq

        return pq.read_schema(self.parts[0])

    def batches(self, track: Track = quietly) -> Iterator["pa.RecordBatch"]:
        """Some rows at a time, so that memory does not grow with the number of films."""
        import pyarrow.parquet as pq

        for part in track(self.parts, "reading parts", len(self.parts)):
            with pq.ParquetFile(part) as file:
                yield from file.iter_batches()


def results_in(folder: Path) -> Results:
    """What was read there, if all of it was."""
    if importlib.util.find_spec("pyarrow") is None:
        raise UserError(NEEDED)
    plan = plan_in(folder)
    if plan is None:
        raise UserError(f"{folder} holds no readings; make some with: medgrape predict --out {folder}.")
    parts = tuple(folder / Part(number, ()).name for number in range(plan.parts))
    missing = sum(not part.is_file() for part in parts)
    if missing or not parts:
        raise UserError(
            f"{folder} is not read to its end: {missing} of {len(parts)} parts are missing; give the same medgrape "
            "predict command again."
        )
    return Results(parts)
