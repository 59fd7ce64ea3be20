"""Results on disk: a Parquet file for each part, whole or not there, and what they add up to."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medgrape.data.files import whole_file
from medgrape.engine.plan import Part, Plan
from medgrape.engine.table import REFUSED, printable
from medgrape.explain.words import NOTICE

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
