"""Boxes as COCO or CSV for other programs, without patients, sexes and ages."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from medgrape.datasets.dataset import Dataset
from medgrape.errors import UserError
from medgrape.explain.words import NOTICE
from medgrape.files import write_text
from medgrape.geometry import Box, FilmSize

ExportFormat = Literal["coco", "csv"]
SUFFIXES: dict[str, ExportFormat] = {".json": "coco", ".csv": "csv"}
MEDIA_TYPES: dict[ExportFormat, str] = {"coco": "application/json", "csv": "text/csv"}
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Starts of cells that spreadsheets compute; the last four are the full-width characters of East Asian keyboards."""


def csv_lines(header: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield the lines of a CSV file one by one."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in chain([header], rows):
        writer.writerow(map(_cell, row))
        yield text.getvalue()
        text.seek(0)
        text.truncate()


def _cell(value: object) -> object:
    """Return the value for a cell; text that a spreadsheet would compute gets an apostrophe in front."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.10g}"
    if not isinstance(value, str):
        return value  # the csv module writes None as an empty cell
    line = re.sub(r"[\x00-\x1f\x7f]", " ", value)  # some programs take a carriage return in a cell for a new row
    return f"'{line}" if line.lstrip(" ").startswith(_FORMULA) else line


@dataclass(frozen=True)
class ExportedFilm:
    """A film, and the path by which other programs find it."""

    id: str
    path: str
    size: FilmSize
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ExportedMark:
    """A statement about a film: the finding is inside the box, is not inside it, or is not on the film."""

    film: str  # the film's id
    kind: Literal["box", "not_box", "reject"]
    concept: str | None  # None: every concept
    box: Box | None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_finding(self) -> bool:
        """Whether the mark says where a named finding is; COCO has no other annotations."""
        return self.kind == "box" and self.concept is not None and self.box is not None


@dataclass(frozen=True)
class BoxExport:
    """The content of an exported file."""

    name: str
    concepts: tuple[str, ...]
    films: tuple[ExportedFilm, ...]
    marks: tuple[ExportedMark, ...]

    def to_text(self, form: ExportFormat) -> str:
        """Return the file's text."""
        if form == "csv":
            return "".join(self._csv())
        return json.dumps(self._coco(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    def write(self, out: Path) -> None:
        """Write the file atomically, as COCO or CSV by its suffix."""
        write_text(out, self.to_text(export_format(out)))

    def _coco(self) -> dict[str, Any]:
        images = {film.id: number for number, film in enumerate(self.films, 1)}
        categories = {name: number for number, name in enumerate(self.concepts, 1)}
        annotations, others = list[dict[str, Any]](), list[dict[str, Any]]()
        for number, mark in enumerate(self.marks, 1):
            entry: dict[str, Any] = {
                "id": number, "image_id": images[mark.film], "category_id": categories.get(mark.concept or ""),
                "bbox": None,
            }  # fmt: skip
            if mark.box is not None:
                corner_and_size = list(mark.box.corner_and_size)
                entry |= {"bbox": corner_and_size, "area": mark.box.area, "segmentation": [], "iscrowd": 0}
            entry["attributes"] = dict(mark.attributes)
            if mark.is_finding:
                annotations.append(entry)
            else:
                others.append(entry | {"kind": mark.kind})
        content: dict[str, Any] = {
            "info": {"description": self.name, "note": NOTICE},
            "licenses": [],
            "categories": [
                {"id": number, "name": name, "supercategory": "finding"} for name, number in categories.items()
            ],
            "images": [
                {"id": images[film.id], "file_name": film.path, "width": film.size.width, "height": film.size.height}
                | ({"attributes": dict(film.attributes)} if film.attributes else {})
                for film in self.films
            ],
            "annotations": annotations,
        }
        return content | ({"other_annotations": others} if others else {})

    def _csv(self) -> Iterator[str]:
        films = {film.id: film for film in self.films}
        of_films = list(dict.fromkeys(key for film in self.films for key in film.attributes))
        of_marks = list(dict.fromkeys(key for mark in self.marks for key in mark.attributes))
        header = (
            "film", "path", "width", "height", *of_films, "kind", "concept", "x1", "y1", "x2", "y2", *of_marks,
        )  # fmt: skip

        def row(mark: ExportedMark) -> tuple[object, ...]:
            film = films[mark.film]
            corners = ("",) * 4 if mark.box is None else mark.box.corners
            return (
                film.id, film.path, film.size.width, film.size.height, *map(film.attributes.get, of_films),
                mark.kind, mark.concept or "all", *corners, *map(mark.attributes.get, of_marks),
            )  # fmt: skip

        return csv_lines(header, map(row, self.marks))


def export_format(out: Path) -> ExportFormat:
    """Return the format that the file's suffix names."""
    if out.suffix.lower() not in SUFFIXES:
        raise UserError(f"--out takes a .json file for COCO or a .csv file, not {out}.")
    return SUFFIXES[out.suffix.lower()]


def export_boxes(data: Path, out: Path) -> BoxExport:
    """Write all films of a prepared data set that have a file, and their boxes."""
    export_format(out)  # report a wrong suffix before the data set is read
    export = boxes_of(Dataset.load(data))
    export.write(out)
    return export


def boxes_of(dataset: Dataset) -> BoxExport:
    """Return the films and boxes of a data set."""
    films = tuple(
        ExportedFilm(film.id, film.path, film.size, {"split": film.split, "class": film.class_name})
        for film in dataset.pictured
    )
    ids = {film.id for film in films}
    marks = (ExportedMark(box.film, "box", box.concept, box.box) for box in dataset.boxes if box.film in ids)
    return BoxExport(dataset.name, dataset.concepts.names, films, tuple(marks))
