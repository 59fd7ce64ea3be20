"""One row for each film: what a model says of it, or why it could not be read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from medgrape.engine.listing import ListedFilm

if TYPE_CHECKING:
    from medgrape.geometry import FilmSize

READ, REFUSED = "read", "refused"


@dataclass(frozen=True)
class Finding:
    """One concept on one film."""

    score: float
    x: float
    y: float
    seen: str


@dataclass(frozen=True)
class Sight:
    """What a model says of one film."""

    size: "FilmSize"
    probabilities: tuple[float, ...]
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Columns:
    """Whose columns: a model's classes and concepts."""

    classes: tuple[str, ...]
    concepts: tuple[str, ...]
    model: str
    """Its version."""

    @property
    def schema(self) -> pa.Schema:
        """The same for every part, also for one in which every film was refused."""
        fields = [
            pa.field("film", pa.string(), nullable=False), pa.field("status", pa.string(), nullable=False),
            pa.field("reason", pa.string()), pa.field("width", pa.int32()), pa.field("height", pa.int32()),
            pa.field("predicted", pa.string()),
            *(pa.field(f"probability_{name}", pa.float32()) for name in self.classes),
        ]  # fmt: skip
        for name in self.concepts:
            fields += [pa.field(f"{what}_{name}", pa.float32()) for what in ("score", "x", "y")]
            fields.append(pa.field(f"seen_{name}", pa.string()))
        return pa.schema(
            [*fields, pa.field("warnings", pa.list_(pa.string())), pa.field("model", pa.string(), nullable=False)]
        )

    def read(self, film: ListedFilm, sight: Sight) -> dict[str, Any]:
        """The row of a film that was read."""
        row: dict[str, Any] = {"film": printable(film.name), "status": READ, "model": self.model}
        row |= {"width": sight.size.width, "height": sight.size.height, "warnings": list(sight.warnings)}
        likeliest = max(range(len(self.classes)), key=sight.probabilities.__getitem__)
        row["predicted"] = self.classes[likeliest]
        row |= {f"probability_{name}": one for name, one in zip(self.classes, sight.probabilities, strict=True)}
        for name, found in zip(self.concepts, sight.findings, strict=True):
            row |= {f"{what}_{name}": getattr(found, what) for what in ("score", "x", "y", "seen")}
        return row

    def refused(self, film: ListedFilm, reason: str) -> dict[str, Any]:
        """The row of a film that could not be read."""
        told = {"film": printable(film.name), "status": REFUSED, "reason": printable(reason)}
        return told | {"warnings": [], "model": self.model}

    def table(self, rows: Sequence[dict[str, Any]]) -> pa.Table:
        """All rows of a part."""
        return pa.Table.from_pylist(list(rows), schema=self.schema)


def printable(text: str) -> str:
    """A file's name may hold bytes that are no text; they are shown as codes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
