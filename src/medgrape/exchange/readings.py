"""Bulk readings for other programs: CSV with a row per film, or COCO keypoints where the model sees a finding.

A model draws no boxes, so COCO has keypoints only. Findings that are not seen are in the CSV only.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medgrape.exchange.boxes import csv_lines, export_format
from medgrape.explain.words import NOTICE
from medgrape.files import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

_SEEN = ("clearly seen", "perhaps")
_VISIBLE = 2  # COCO's value for a visible keypoint
Row = Mapping[str, Any]
Rows = Callable[[], Iterator[Row]]


@dataclass(frozen=True)
class ReadingsExport:
    """Number of films, refused films and keypoints in the readings."""

    films: int
    refused: int
    points: int


def write_readings(schema: "pa.Schema", batches: Callable[[], Iterable["pa.RecordBatch"]], out: Path) -> ReadingsExport:
    """Write the readings as COCO or CSV by the file's suffix, one batch in memory at a time."""
    form = export_format(out)
    single_precision = {field.name for field in schema if str(field.type) == "float"}

    def rows() -> Iterator[Row]:
        for batch in batches():
            for row in batch.to_pylist():
                yield row | {key: _short(row[key]) for key in single_precision}

    concepts = [name.removeprefix("seen_") for name in schema.names if name.startswith("seen_")]
    lines = _csv(schema.names, rows) if form == "csv" else _coco(concepts, rows)
    with whole_file(out) as draft, draft.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    return _count(concepts, batches())


def _short(value: float | None) -> float | None:
    """Return the shortest decimal that means the same float32; None if it is not finite."""
    if value is None or not math.isfinite(value):
        return None
    import numpy as np

    return float(str(np.float32(value)))


def _csv(names: list[str], rows: Rows) -> Iterator[str]:
    def cell(value: object) -> object:
        return " | ".join(map(str, value)) if isinstance(value, list) else value

    return csv_lines(names, ((cell(row[name]) for name in names) for row in rows()))


def _coco(concepts: list[str], rows: Rows) -> Iterator[str]:
    """Yield the file in pieces, because neither the films nor the points may fit into memory."""
    categories = [
        {"id": number, "name": name, "supercategory": "finding", "keypoints": ["strongest"], "skeleton": []}
        for number, name in enumerate(concepts, 1)
    ]
    info = {"description": "medgrape readings", "note": NOTICE}
    yield f'{{"info": {_json(info)}, "licenses": [], "categories": {_json(categories)},\n"images": [\n'
    yield from _join(_image(number, row) for number, row in _number_read(rows))
    yield '\n],\n"annotations": [\n'
    points = (point for number, row in _number_read(rows) for point in _points(number, row, concepts))
    yield from _join({"id": number} | point for number, point in enumerate(points, 1))
    yield "\n]}\n"


def _join(entries: Iterable[dict[str, Any]]) -> Iterator[str]:
    for number, entry in enumerate(entries):
        yield (",\n" if number else "") + _json(entry)


def _json(entry: object) -> str:
    return json.dumps(entry, allow_nan=False, ensure_ascii=False)


def _number_read(rows: Rows) -> Iterator[tuple[int, Row]]:
    """Number the films that were read, from 1."""
    return enumerate((row for row in rows() if row["status"] == "read"), 1)


def _image(number: int, row: Row) -> dict[str, Any]:
    attributes = {key: row[key] for key in ("predicted", "warnings", "model")}
    attributes |= {key: value for key, value in row.items() if key.startswith("probability_")}
    size = {"width": row["width"], "height": row["height"]}
    return {"id": number, "file_name": row["film"], **size, "attributes": attributes}


def _points(number: int, row: Row, concepts: list[str]) -> Iterator[dict[str, Any]]:
    for category, name in enumerate(concepts, 1):
        if row[f"seen_{name}"] in _SEEN:
            yield {
                "image_id": number, "category_id": category, "iscrowd": 0, "num_keypoints": 1,
                "keypoints": [row[f"x_{name}"], row[f"y_{name}"], _VISIBLE], "score": row[f"score_{name}"],
                "attributes": {"seen": row[f"seen_{name}"]},
            }  # fmt: skip


def _count(concepts: list[str], batches: Iterable["pa.RecordBatch"]) -> ReadingsExport:
    films = refused = points = 0
    for batch in batches:
        films += batch.num_rows
        refused += sum(status != "read" for status in batch.column("status").to_pylist())
        points += sum(seen in _SEEN for name in concepts for seen in batch.column(f"seen_{name}").to_pylist())
    return ReadingsExport(films, refused, points)
