"""What tables have to know of a data set, kept beside the results, so that a report can be made where no film is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medgrape.concepts import ConceptSet
from medgrape.data.dataset import Dataset, checksum
from medgrape.data.labels import co_occurrence
from medgrape.errors import UserError


@dataclass(frozen=True)
class DataFacts:
    """Of one data set."""

    name: str
    checksum: str
    classes: tuple[str, ...]
    concepts: ConceptSet
    probability: tuple[tuple[float, ...], ...]
    """P(row given column), over films that may be learnt from."""
    films: dict[str, int]
    """In each split."""
    folder: Path | None = None
    """None where only results are at hand."""

    @classmethod
    def of(cls, folder: Path) -> "DataFacts":
        """Of a prepared data set."""
        dataset = Dataset.load(folder)
        together = co_occurrence(dataset).probability
        films = {split: len(dataset.in_split(split)) for split in ("train", "val", "test")}
        for split in (name for name, count in films.items() if not count):
            raise UserError(f"{dataset.name!r} has no {split} films, and every table needs some; prepare it again.")
        strange = next((film for film in dataset.in_split("test") if film.class_name not in dataset.classes), None)
        if strange is not None:
            raise UserError(f"Film {strange.id} is of the unknown class {strange.class_name!r}; mend films.csv.")
        rows = tuple(tuple(float(share) for share in row) for row in together)
        return cls(dataset.name, checksum(folder), dataset.classes, dataset.concepts, rows, films, folder)

    def to_json(self) -> dict[str, Any]:
        """Plain data; where it lies is nobody's business."""
        return {
            "name": self.name, "checksum": self.checksum, "classes": list(self.classes),
            "concepts": self.concepts.to_tables(), "probability": self.probability, "films": self.films,
        }  # fmt: skip

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> "DataFacts":
        """The inverse."""
        rows = tuple(tuple(row) for row in told["probability"])
        concepts = ConceptSet.from_tables(told["concepts"])
        return cls(told["name"], told["checksum"], tuple(told["classes"]), concepts, rows, told["films"])
