"""Label Studio's JSON export: a task for each film, with an annotation by each person, with a result for each mark.

Numbers are percent of the film's width and height. A turned rectangle is stored by its upper left corner, about which
it was turned clockwise.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from medgrape.datasets.draft import FILM_SUFFIXES, Complaints
from medgrape.datasets.label_files import SourceError, encodable, read_text
from medgrape.datasets.sources.marks import NO_BOX, PERCENT, Mark, MarkedFilm, MarkedFilms, mark_around, source_errors
from medgrape.geometry import Box, FilmSize

TURNED_FILM = "marks on films that were turned in the tool, left out"
SEVERAL_FILMS = "tasks with several films, left out, for the export does not tell on which one a mark lies"
UNNAMED = "marks without a label, left out"
_DRAWN = frozenset({"x", "points", "rle"})
"""Keys of marks that lie on a picture, unlike those of text or of the whole task."""
_UPLOAD_PREFIX = re.compile(r"[0-9a-f]{8}-(?=.)")


@dataclass
class _Counts:
    """What is reported about a file although it is no box."""

    complaints: Complaints = field(default_factory=Complaints)
    not_annotated: int = 0
    several_people: int = 0
    predictions: int = 0

    def notes(self) -> tuple[str, ...]:
        notes = (
            (self.not_annotated, "films that nobody annotated, or that were skipped, are left out"),
            (self.several_people, "films were annotated by several people: all their boxes count"),
            (self.predictions, "predictions of models are left out: nobody accepted them"),
        )
        return tuple(f"{count} {what}" for count, what in notes if count)


def read_label_studio(path: Path) -> MarkedFilms:
    """Read an export in the format that Label Studio calls JSON."""
    with source_errors(path, "JSON export of Label Studio"):
        tasks = json.loads(read_text(path))
        if not isinstance(tasks, list):
            raise TypeError("it is no list of tasks")
        if any("data" not in task and "annotation_id" in task for task in tasks):
            raise SourceError(f"{path} is Label Studio's JSON-MIN, which lacks who skipped what; export it as JSON.")
        counts = _Counts()
        films = tuple(film for task in tasks for film in _films(task, counts))
        labels = {mark.label for film in films for mark in film.marks if mark.corners is not None}
        return MarkedFilms(tuple(sorted(labels)), films, counts.complaints, counts.notes())


def _films(task: dict[str, Any], counts: _Counts) -> Iterator[MarkedFilm]:
    """The film of a task, if it has one that somebody annotated."""
    paths = _film_paths(task["data"])
    if not paths:
        counts.complaints.add("tasks without a film", encodable(f"task {task.get('id')}"))
        return
    annotations = task.get("annotations") or task.get("completions") or ()
    finished = [annotation.get("result") or [] for annotation in annotations if not annotation.get("was_cancelled")]
    if len(paths) > 1 or _on_several_pictures([result for results in finished for result in results]):
        counts.complaints.add(SEVERAL_FILMS, encodable(f"task {task.get('id')}"))
        return
    counts.predictions += len(task.get("predictions") or ())
    counts.several_people += len(finished) > 1
    counts.not_annotated += not finished
    if finished:
        yield MarkedFilm(encodable(paths[0]), tuple(mark for results in finished for mark in _marks(results)))


def _film_paths(data: dict[str, Any]) -> list[str]:
    """Paths of a task's films: every value that ends like one, each once, also in a list of pages."""
    values = (item for value in data.values() for item in (value if isinstance(value, list) else [value]))
    paths = dict.fromkeys(_path(value) for value in values if isinstance(value, str) and value)
    return [path for path in paths if PurePosixPath(path).suffix.lower() in FILM_SUFFIXES]


def _path(address: str) -> str:
    """The path of a film in the address by which the tool shows it."""
    parts = urlsplit(address)
    if "/local-files/" in parts.path:
        return parse_qs(parts.query).get("d", [""])[0]
    path = unquote(parts.path) if parts.scheme or parts.path.startswith("/data/") else address
    if not path.startswith("/data/upload/"):
        return path
    return _UPLOAD_PREFIX.sub("", PurePosixPath(path).name, count=1)


def _on_several_pictures(results: list[dict[str, Any]]) -> bool:
    """Whether marks lie on several pictures or pages: only the labelling setup tells which is which."""
    drawn = [item for item in results if "original_width" in item or _DRAWN & (item.get("value") or {}).keys()]
    pictures = {item.get("to_name") for item in drawn}
    return len(pictures) > 1 or any(item.get("item_index") is not None for item in results)


def _marks(results: list[dict[str, Any]]) -> Iterator[Mark]:
    """The marks of one person.

    A result with the id of a labelled mark only describes that mark: its bare shape, or choices. Other choices are
    about the film; the finding of a shape without label and choices is not known.
    """
    named = {result.get("id") for result in results if _labels(result)} - {None}
    for result in results:
        labels = _labels(result)
        if labels:
            yield from (_mark(result, encodable(label)) for label in labels)
        elif result.get("id") not in named:
            choices = _words(result)
            yield from (Mark(encodable(choice), None, PERCENT, NO_BOX) for choice in choices)
            if "original_width" in result and not choices:
                yield Mark("a mark", None, PERCENT, UNNAMED)


def _labels(result: dict[str, Any]) -> list[Any]:
    """The labels of a mark: rectanglelabels, polygonlabels, labels; unlike choices and taxonomy."""
    return _words(result) if str(result.get("type")).endswith("labels") else []


def _words(result: dict[str, Any]) -> list[Any]:
    """The list under the key that the result's type names; arrows have none."""
    words = (result.get("value") or {}).get(result.get("type"))
    return words if isinstance(words, list) else []


def _mark(result: dict[str, Any], label: str) -> Mark:
    width, height = result.get("original_width"), result.get("original_height")
    size = PERCENT if width is None or height is None else FilmSize(int(width), int(height))
    value = result["value"]
    if result.get("image_rotation"):
        return Mark(label, None, size, TURNED_FILM)
    angle = float(value.get("rotation") or 0)
    if angle and size is PERCENT:  # percent across and down are of different lengths
        return Mark(label, None, size, NO_BOX)
    return _shape(label, value, size, angle)


def _shape(label: str, value: dict[str, Any], size: FilmSize, angle: float) -> Mark:
    def pixels(x: object, y: object) -> tuple[float, float]:
        return float(x) * size.width / 100, float(y) * size.height / 100  # type: ignore[arg-type]

    if {"x", "y", "width", "height"} <= value.keys():
        x, y = pixels(value["x"], value["y"])
        width, height = pixels(value["width"], value["height"])
        if not angle:
            return Mark(label, (x, y, x + width, y + height), size)
        return mark_around(label, lambda: Box(x, y, x + width, y + height).turned(angle, x, y), size)
    if {"x", "y", "radiusX", "radiusY"} <= value.keys():
        x, y = pixels(value["x"], value["y"])
        rx, ry = pixels(value["radiusX"], value["radiusY"])
        return mark_around(label, lambda: Box(x - rx, y - ry, x + rx, y + ry).turned(angle, x, y), size)
    if len(value.get("points") or ()) > 2 and value.get("closed", True):
        points = [pixels(*point) for point in value["points"]]
        return mark_around(label, lambda: Box.holding(points), size)
    return Mark(label, None, size, NO_BOX)
