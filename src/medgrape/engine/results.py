"""A folder that ``medgrape predict`` filled, opened again."""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from medgrape.engine.plan import Part, plan_in
from medgrape.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

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

    def batches(self) -> Iterator["pa.RecordBatch"]:
        """Some rows at a time, so that memory does not grow with the number of films."""
        import pyarrow.parquet as pq

        for part in self.parts:
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
