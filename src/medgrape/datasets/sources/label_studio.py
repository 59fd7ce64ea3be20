"""Label Studio's JSON export: a task for each film, with an annotation by each person, with a result for each mark.

Numbers are percent of the film's width and height. A rectangle that was turned is told by its upper left corner, about
which it was turned clockwise.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from medgrape.datasets.draft import FILM_SUFFIXES, Complaints
from medgrape.datasets.label_files import SourceError, read_text, written
from medgrape.datasets.sources.marks import NO_BOX, PERCENT, RESHAPED, Mark, MarkedFilm, MarkedFilms, shaped, told_as
from medgrape.geometry import Box, FilmSize

TURNED_FILM = "marks on films that were turned in the tool, left out"
SEVERAL_FILMS = "tasks with several films, left out, for the export does not tell on which one a mark lies"
UNNAMED = "marks without a label, left out"
_DRAWN = frozenset({"x", "points", "rle"})
"""Keys of marks that lie somewhere on a picture, unlike those of text or of the whole task."""
_UPLOADED = re.compile(r"[0-9a-f]{8}-(?=.)")


@dataclass
class _Count:
    """What is told of a file though it gives no box."""

    complaints: Complaints = field(default_factory=Complaints)
    nobody: int = 0
    several: int = 0
    predictions: int = 0

    def notes(self) -> tuple[str, ...]:
        told = (
            (self.nobody, "films that nobody annotated, or that were skipped, are left out"),
            (self.several, "films were annotated by several people: all their boxes count"),
            (self.predictions, "predictions of models are left out: nobody accepted them"),
        )
        return tuple(f"{count} {what}" for count, what in told if count)


def read_label_studio(path: Path) -> MarkedFilms:
    """An export in the format that Label Studio calls JSON; what does not fit is an error that names it."""
    with told_as(path, "JSON export of Label Studio"):
        tasks = json.loads(read_text(path))
        if not isinstance(tasks, list):
            raise TypeError("it is no list of tasks")
        if any("data" not in task and "annotation_id" in task for task in tasks):
            raise SourceError(f"{path} is Label Studio's JSON-MIN, which lacks who skipped what; export it as JSON.")
        count = _Count()
        films = tuple(film for task in tasks for film in _film(task, count))
        labels = dict.fromkeys(mark.label for film in films for mark in film.marks if mark.corners is not None)
        return MarkedFilms(tuple(sorted(labels)), films, count.complaints, count.notes())


def _film(task: dict[str, Any], count: _Count) -> Iterator[MarkedFilm]:
    listed = _listed(task["data"])
    if not listed:
        count.complaints.add("tasks without a film", written(f"task {task.get('id')}"))
        return
    done = [one for one in task.get("annotations") or task.get("completions") or () if not one.get("was_cancelled")]
    if len(listed) > 1 or _on_several([result for one in done for result in one.get("result") or ()]):
        count.complaints.add(SEVERAL_FILMS, written(f"task {task.get('id')}"))
        return
    count.predictions += len(task.get("predictions") or ())
    count.several += len(done) > 1
    count.nobody += not done
    if done:
        yield MarkedFilm(written(listed[0]), tuple(mark for one in done for mark in _marks(one.get("result") or [])))


def _listed(data: dict[str, Any]) -> list[str]:
    """Paths of the task's films: every value that ends like one, each once, also out of a list of pages."""
    values = (one for value in data.values() for one in (value if isinstance(value, list) else [value]))
    paths = dict.fromkeys(_path(value) for value in values if isinstance(value, str) and value)
    return [path for path in paths if PurePosixPath(path).suffix.lower() in FILM_SUFFIXES]


def _on_several(results: list[dict[str, Any]]) -> bool:
    """Whether marks lie on several pictures, or on a page of several: only the labelling setup tells which is which."""
    drawn = [one for one in results if "original_width" in one or _DRAWN & (one.get("value") or {}).keys()]
    pictures = {one.get("to_name") for one in drawn}
    return len(pictures) > 1 or any(one.get("item_index") is not None for one in results)


def _path(address: str) -> str:
    """Where a film is, out of the address by which the tool shows it."""
    parts = urlsplit(address)
    if "/local-files/" in parts.path:
        return parse_qs(parts.query).get("d", [""])[0]
    path = unquote(parts.path) if parts.scheme or parts.path.startswith("/data/") else address
    if not path.startswith("/data/upload/"):
        return path
    return _UPLOADED.sub("", PurePosixPath(path).name, count=1)


def _marks(results: list[dict[str, Any]]) -> Iterator[Mark]:
    """Marks of one person. What else has the id of a mark with a label tells about it: its bare shape, or choices."""
    named = {one.get("id") for one in results if _labels(one)} - {None}
    for result in results:
        labels = _labels(result)
        if labels:
            yield from (_mark(result, written(label)) for label in labels)
        elif result.get("id") not in named:
            yield from _without_label(result)


def _without_label(result: dict[str, Any]) -> Iterator[Mark]:
    """Choices are said of the film, wherever they stand; of a shape without any nobody knows what it is."""
    chosen = _words(result)
    yield from (Mark(written(choice), None, PERCENT, NO_BOX) for choice in chosen)
    if "original_width" in result and not chosen:
        yield Mark("a mark", None, PERCENT, UNNAMED)


def _labels(result: dict[str, Any]) -> list[Any]:
    """What a mark is called: rectanglelabels, polygonlabels, labels; unlike choices and taxonomy."""
    return _words(result) if str(result.get("type")).endswith("labels") else []


def _words(result: dict[str, Any]) -> list[Any]:
    """Under the key that the result's type names; arrows have none."""
    found = (result.get("value") or {}).get(result.get("type"))
    return found if isinstance(found, list) else []


def _mark(result: dict[str, Any], label: str) -> Mark:
    across, down = result.get("original_width"), result.get("original_height")
    size = PERCENT if across is None or down is None else FilmSize(int(across), int(down))
    value = result["value"]
    if result.get("image_rotation"):
        return Mark(label, None, size, TURNED_FILM)
    turned = float(value.get("rotation") or 0)
    if turned and size is PERCENT:  # percent across and down are of different lengths
        return Mark(label, None, size, NO_BOX)
    return _shape(label, value, size, turned)


def _shape(label: str, value: dict[str, Any], size: FilmSize, turned: float) -> Mark:
    def pixels(x: object, y: object) -> tuple[float, float]:
        return float(x) * size.width / 100, float(y) * size.height / 100  # type: ignore[arg-type]

    if {"x", "y", "width", "height"} <= value.keys():
        x, y = pixels(value["x"], value["y"])
        width, height = pixels(value["width"], value["height"])
        if not turned:
            return Mark(label, (x, y, x + width, y + height), size)
        return shaped(label, lambda: Box(x, y, x + width, y + height).turned(turned, x, y), size, RESHAPED)
    if {"x", "y", "radiusX", "radiusY"} <= value.keys():
        x, y = pixels(value["x"], value["y"])
        across, down = pixels(value["radiusX"], value["radiusY"])
        return shaped(
            label, lambda: Box(x - across, y - down, x + across, y + down).turned(turned, x, y), size, RESHAPED
        )
    if len(value.get("points") or ()) > 2 and value.get("closed", True):
        points = [pixels(*point) for point in value["points"]]
        return shaped(label, lambda: Box.holding(points), size, RESHAPED)
    return Mark(label, None, size, NO_BOX)
