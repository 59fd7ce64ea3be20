"""Readings in bulk for other programs: a row for each film as CSV, or where the model points as COCO keypoints.

A model points, it draws no boxes; so there are none in the file. Findings that it does not see are in the CSV alone.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medgrape.exchange import boxes
from medgrape.exchange.boxes import form_of
from medgrape.explain.words import NOTICE
from medgrape.files import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

_SEEN = ("clearly seen", "perhaps")
_VISIBLE = 2
"""COCO's word for a keypoint that can be seen."""
Rows = Callable[[], Iterator[Mapping[str, Any]]]


@dataclass(frozen=True)
class Written:
    """How much there is in a file."""

    films: int
    refused: int
    points: int


def write_readings(schema: "pa.Schema", batches: Callable[[], Iterable["pa.RecordBatch"]], out: Path) -> Written:
    """By its suffix: ``.json`` is COCO, ``.csv`` is CSV. Rows are looked at some at a time."""
    form = form_of(out)
    single = {field.name for field in schema if str(field.type) == "float"}

    def rows() -> Iterator[Mapping[str, Any]]:
        for batch in batches():
            yield from (_plain(row, single) for row in batch.to_pylist())

    concepts = [name.removeprefix("seen_") for name in schema.names if name.startswith("seen_")]
    lines = _csv(schema.names, rows) if form == "csv" else _coco(concepts, rows)
    with whole_file(out) as draft, draft.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    return _counted(concepts, batches())


def _plain(row: Mapping[str, Any], single: set[str]) -> dict[str, Any]:
    return {key: _short(value) if key in single else value for key, value in row.items()}


def _short(value: float | None) -> float | None:
    """A number of single precision with the digits that it has, not with those of its double; none where it is none."""
    if value is None or not math.isfinite(value):
        return None
    import numpy as np

    return float(str(np.float32(value)))


def _csv(names: Iterable[str], rows: Rows) -> Iterator[str]:
    header = list(names)
    return boxes.lines(header, ([_cell(row[name]) for name in header] for row in rows()))


def _cell(value: object) -> object:
    return " | ".join(map(str, value)) if isinstance(value, list) else value


def _coco(concepts: list[str], rows: Rows) -> Iterator[str]:
    """Piece by piece: the list of films and that of points may each be longer than memory."""
    categories = [
        {"id": number, "name": name, "supercategory": "finding", "keypoints": ["strongest"], "skeleton": []}
        for number, name in enumerate(concepts, 1)
    ]
    info = {"description": "medgrape readings", "note": NOTICE}
    yield f'{{"info": {_json(info)}, "licenses": [], "categories": {_json(categories)},\n"images": [\n'
    yield from _listed(_image(number, row) for number, row in _read(rows))
    yield '\n],\n"annotations": [\n'
    points = (point for number, row in _read(rows) for point in _points(number, row, concepts))
    yield from _listed({"id": number} | point for number, point in enumerate(points, 1))
    yield "\n]}\n"


def _listed(entries: Iterable[dict[str, Any]]) -> Iterator[str]:
    for number, entry in enumerate(entries):
        yield (",\n" if number else "") + _json(entry)


def _json(entry: object) -> str:
    return json.dumps(entry, allow_nan=False, ensure_ascii=False)


def _read(rows: Rows) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return enumerate((row for row in rows() if row["status"] == "read"), 1)


def _image(number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    told = {key: row[key] for key in ("predicted", "warnings", "model")}
    told |= {key: value for key, value in row.items() if key.startswith("probability_")}
    size = {"width": row["width"], "height": row["height"]}
    return {"id": number, "file_name": row["film"], **size, "attributes": told}


def _points(number: int, row: Mapping[str, Any], concepts: list[str]) -> Iterator[dict[str, Any]]:
    for category, name in enumerate(concepts, 1):
        if row[f"seen_{name}"] in _SEEN:
            yield {
                "image_id": number, "category_id": category, "iscrowd": 0, "num_keypoints": 1,
                "keypoints": [row[f"x_{name}"], row[f"y_{name}"], _VISIBLE], "score": row[f"score_{name}"],
                "attributes": {"seen": row[f"seen_{name}"]},
            }  # fmt: skip


def _counted(concepts: list[str], batches: Iterable["pa.RecordBatch"]) -> Written:
    films = refused = points = 0
    for batch in batches:
        films += batch.num_rows
        refused += sum(status != "read" for status in batch.column("status").to_pylist())
        points += sum(seen in _SEEN for name in concepts for seen in batch.column(f"seen_{name}").to_pylist())
    return Written(films, refused, points)
