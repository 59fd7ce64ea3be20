"""The boxes of a prepared data set for other programs. Patients, sexes and ages stay behind."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from medgrape.datasets.dataset import Dataset
from medgrape.errors import UserError
from medgrape.explain.words import NOTICE
from medgrape.files import whole_file
from medgrape.geometry import Box, FilmSize

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a cell may begin with that spreadsheets compute; the last four are the wide ones of East Asian keyboards."""


def lines(header: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Line after line, each with its end."""
    yield _line(header)
    yield from (_line(row) for row in rows)


def _line(row: Iterable[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([_cell(value) for value in row])
    return text.getvalue()


def _cell(value: object) -> object:
    """Numbers as they are; text that would be computed gets an apostrophe before it, as one types it there."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.10g}"
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> str:
    """In one line: some programs take a lone return within a cell for the next row."""
    line = re.sub(r"[\x00-\x1f\x7f]", " ", value)
    return f"'{line}" if line.lstrip(" ").startswith(_FORMULA) else line


Form = Literal["coco", "csv"]
SUFFIXES: dict[str, Form] = {".json": "coco", ".csv": "csv"}
MEDIA: dict[Form, str] = {"coco": "application/json", "csv": "text/csv"}


@dataclass(frozen=True)
class FilmOut:
    """A film that is told of."""

    id: str
    path: str
    """By which other programs find it."""
    size: FilmSize
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MarkOut:
    """What somebody said of it."""

    film: str
    """Its id."""
    kind: Literal["box", "not_box", "reject"]
    """The finding is inside; it is not inside; it is not on the film."""
    concept: str | None
    """None: every one."""
    box: Box | None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_finding(self) -> bool:
        """Whether it says of a named finding that it is there."""
        return self.kind == "box" and self.concept is not None and self.box is not None


@dataclass(frozen=True)
class Marks:
    """All that goes into a file."""

    name: str
    concepts: tuple[str, ...]
    films: tuple[FilmOut, ...]
    marks: tuple[MarkOut, ...]

    def written(self, form: Form) -> str:
        """The file's text."""
        if form == "csv":
            return "".join(lines(_header(self), _rows(self)))
        return json.dumps(_coco(self), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    def write(self, out: Path) -> None:
        """By its suffix: ``.json`` is COCO, ``.csv`` is CSV; whole or not there."""
        text = self.written(form_of(out))
        with whole_file(out) as draft:
            draft.write_text(text, "utf-8")


def form_of(out: Path) -> Form:
    """Which format a file's name asks for."""
    if out.suffix.lower() not in SUFFIXES:
        raise UserError(f"--out takes a .json file for COCO or a .csv file, not {out}.")
    return SUFFIXES[out.suffix.lower()]


def _coco(told: Marks) -> dict[str, Any]:
    images = {film.id: number for number, film in enumerate(told.films, 1)}
    categories = {name: number for number, name in enumerate(told.concepts, 1)}
    entries = [
        (mark, _annotation(number, mark, images[mark.film], categories.get(mark.concept or "")))
        for number, mark in enumerate(told.marks, 1)
    ]
    others = [entry | {"kind": mark.kind} for mark, entry in entries if not mark.is_finding]
    content: dict[str, Any] = {
        "info": {"description": told.name, "note": NOTICE},
        "licenses": [],
        "categories": [{"id": number, "name": name, "supercategory": "finding"} for name, number in categories.items()],
        "images": [_image(film, images[film.id]) for film in told.films],
        "annotations": [entry for mark, entry in entries if mark.is_finding],
    }
    return content | ({"other_annotations": others} if others else {})


def _image(film: FilmOut, number: int) -> dict[str, Any]:
    size = {"width": film.size.width, "height": film.size.height}
    return {"id": number, "file_name": film.path, **size, **({"attributes": dict(film.more)} if film.more else {})}


def _annotation(number: int, mark: MarkOut, image: int, category: int | None) -> dict[str, Any]:
    place: dict[str, Any] = {"bbox": None}
    if mark.box is not None:
        place = {"bbox": list(mark.box.corner_and_size), "area": mark.box.area, "segmentation": [], "iscrowd": 0}
    return {"id": number, "image_id": image, "category_id": category, **place, "attributes": dict(mark.more)}


def _header(told: Marks) -> Iterator[str]:
    yield from ("film", "path", "width", "height", *_keys(film.more for film in told.films))
    yield from ("kind", "concept", "x1", "y1", "x2", "y2", *_keys(mark.more for mark in told.marks))


def _rows(told: Marks) -> Iterator[tuple[object, ...]]:
    films = {film.id: film for film in told.films}
    of_films, of_marks = _keys(film.more for film in told.films), _keys(mark.more for mark in told.marks)
    for mark in told.marks:
        film = films[mark.film]
        corners = ("",) * 4 if mark.box is None else mark.box.corners
        yield (
            film.id, film.path, film.size.width, film.size.height, *(film.more.get(key) for key in of_films),
            mark.kind, mark.concept or "all", *corners, *(mark.more.get(key) for key in of_marks),
        )  # fmt: skip


def _keys(found: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for one in found for key in one))


def export_boxes(data: Path, out: Path) -> Marks:
    """Write every film that has a file, and every box on these."""
    form_of(out)
    told = boxes_of(Dataset.load(data))
    told.write(out)
    return told


def boxes_of(dataset: Dataset) -> Marks:
    """What of a set goes into a file."""
    films = tuple(
        FilmOut(film.id, film.path, film.size, {"split": film.split, "class": film.class_name})
        for film in dataset.pictured
    )
    known = {film.id for film in films}
    marks = (MarkOut(drawn.film, "box", drawn.concept, drawn.box) for drawn in dataset.boxes if drawn.film in known)
    return Marks(dataset.name, dataset.concepts.names, films, tuple(marks))
