"""Annotation files of COCO, Label Studio and CVAT, read into one form: films by their listed names, and marks.

COCO is JSON with boxes in film pixels. Label Studio's JSON export has a task for each film, with an annotation by each
person and a result for each mark; numbers are percent of width and height, and a turned rectangle is stored by its
upper left corner, about which it was turned clockwise. "CVAT for images 1.1" is XML with corners in film pixels; a
turned shape is stored as it was before, with the angle by which it was turned clockwise about its middle.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from medgrape.datasets.dataset import FilmRecord
from medgrape.datasets.draft import FILM_SUFFIXES, Complaints, Draft, SourceError, box_on_film, encodable, read_text
from medgrape.geometry import Box, FilmSize

RESHAPED = "shapes that are no upright box, taken as the box around them"
NO_BOX = "marks that are no box, left out"
PERCENT = FilmSize(100, 100)  # frame of boxes in percent, where the film's size is not in the file
MAX_DEPTH = 100  # nesting of elements above which a file is refused
_WITHOUT_BOX = ("tag", "skeleton", "points", "polyline", "cuboid")  # types of labels that no box can have
TURNED_FILM = "marks on films that were turned in the tool, left out"
SEVERAL_FILMS = "tasks with several films, left out, for the export does not tell on which one a mark lies"
UNNAMED = "marks without a label, left out"
NOT_ANNOTATED = "films that nobody annotated, or that were skipped, are left out"
SEVERAL_PEOPLE = "films were annotated by several people: all their boxes count"
PREDICTIONS = "predictions of models are left out: nobody accepted them"
_DRAWN = frozenset({"x", "points", "rle"})  # keys of marks on a picture, unlike those of text or of the whole task
_UPLOAD_PREFIX = re.compile(r"[0-9a-f]{8}-(?=.)")


@dataclass(frozen=True)
class Mark:
    """A finding that somebody marked on a film."""

    label: str  # the label in the tool
    corners: tuple[float, float, float, float] | None  # x1, y1, x2, y2; None if the mark is no box
    size: FilmSize  # size of the film in the tool: the frame of the corners
    complaint: str | None = None  # the complaint to record, where it was no upright box


@dataclass(frozen=True)
class MarkedFilm:
    """A film that somebody annotated, with all marks on it."""

    listed: str  # path or name of the film in the tool
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class MarkedFilms:
    """The content of an annotation file."""

    labels: tuple[str, ...]  # findings that could be marked, in the file's order
    films: tuple[MarkedFilm, ...]
    complaints: Complaints = field(default_factory=Complaints)
    notes: tuple[str, ...] = ()  # what was left out although nothing is wrong with it


def mark_around(label: str, make: Callable[[], Box], size: FilmSize) -> Mark:
    """Return a mark with the box around some shape; a shape that makes no sense has an empty box."""
    try:
        return Mark(label, make().corners, size, RESHAPED)
    except (ValueError, OverflowError):
        return Mark(label, (0.0, 0.0, 0.0, 0.0), size, RESHAPED)


def place_marks(draft: Draft, marked: MarkedFilm, film: FilmRecord) -> None:
    """Add the marks in pixels of the film at hand, which may have been resized since."""
    for mark in marked.marks:
        if mark.corners is None:
            draft.doubt(film, mark.label, mark.complaint or NO_BOX)
            continue
        published = None if mark.size is PERCENT else mark.size
        added = draft.draw(film, mark.label, box_on_film(Box, mark.corners, mark.size, film.size), published)
        if added and mark.complaint is not None:
            draft.complaints.add(mark.complaint, f"{mark.label} on {film.id}")


@contextmanager
def source_errors(path: Path, what: str) -> Iterator[None]:
    """Turn whatever is raised on a file of another format into a ``SourceError`` that names the file."""
    try:
        yield
    except SourceError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise SourceError(f"{path} is no {what} ({type(error).__name__}: {error}).") from error


def read_coco(path: Path) -> MarkedFilms:
    """Read a COCO file."""
    with source_errors(path, "COCO file of boxes"):
        return _coco_films(json.loads(read_text(path)))


def _coco_films(content: dict[str, Any]) -> MarkedFilms:
    categories = {entry["id"]: encodable(entry["name"]) for entry in content["categories"]}
    images = content["images"]
    marks: dict[Any, list[Mark]] = {entry["id"]: [] for entry in images}
    sizes = {entry["id"]: FilmSize(int(entry["width"]), int(entry["height"])) for entry in images}
    if len(marks) < len(images):
        raise ValueError("two images have the same id")
    complaints = Complaints()
    for entry in content["annotations"]:
        image, category = entry["image_id"], entry["category_id"]
        mark = _coco_mark(entry, str(categories.get(category)), sizes.get(image, FilmSize(1, 1)))
        if image in marks and category in categories:
            marks[image].append(mark)
        else:
            kind = "boxes of an image or category that is not listed"
            complaints.add(kind, encodable(f"image {image}, category {category}"))
    # Our own files also hold rejected findings and marks without a name, which a data set cannot represent.
    others = content.get("other_annotations", ())
    left_out = {entry["image_id"] for entry in others if not marks.get(entry["image_id"])}
    films = tuple(
        MarkedFilm(encodable(image["file_name"]), tuple(marks[image["id"]]))
        for image in images
        if image["id"] not in left_out
    )
    note = f"{len(others)} marks that deny a finding or name none are left out"
    note += f", and {len(left_out)} films that have no others" if left_out else ""
    return MarkedFilms(tuple(categories.values()), films, complaints, (note,) if others else ())


def _coco_mark(entry: dict[str, Any], label: str, size: FilmSize) -> Mark:
    """One annotation; CVAT stores beside a box the angle by which it was turned about its middle."""
    x, y, width, height = (float(value) for value in entry["bbox"])
    attributes = entry.get("attributes")
    angle = attributes.get("rotation") if isinstance(attributes, dict) else None
    corners = (x, y, x + width, y + height)
    if not isinstance(angle, int | float) or not angle:
        return Mark(label, corners, size)
    return mark_around(label, lambda: Box(*corners).turned(angle, x + width / 2, y + height / 2), size)


def read_label_studio(path: Path) -> MarkedFilms:
    """Read an export in the format that Label Studio calls JSON."""
    with source_errors(path, "JSON export of Label Studio"):
        tasks = json.loads(read_text(path))
        if not isinstance(tasks, list):
            raise TypeError("it is no list of tasks")
        if any("data" not in task and "annotation_id" in task for task in tasks):
            raise SourceError(f"{path} is Label Studio's JSON-MIN, which lacks who skipped what; export it as JSON.")
        counts, complaints = dict.fromkeys((NOT_ANNOTATED, SEVERAL_PEOPLE, PREDICTIONS), 0), Complaints()
        films = tuple(film for task in tasks for film in _task_films(task, counts, complaints))
        labels = {mark.label for film in films for mark in film.marks if mark.corners is not None}
        notes = tuple(f"{count} {what}" for what, count in counts.items() if count)
        return MarkedFilms(tuple(sorted(labels)), films, complaints, notes)


def _task_films(task: dict[str, Any], counts: dict[str, int], complaints: Complaints) -> Iterator[MarkedFilm]:
    """The film of a task, if it has one that somebody annotated."""
    values = (item for value in task["data"].values() for item in (value if isinstance(value, list) else [value]))
    addresses = dict.fromkeys(_path(value) for value in values if isinstance(value, str) and value)
    paths = [path for path in addresses if PurePosixPath(path).suffix.lower() in FILM_SUFFIXES]
    if not paths:
        complaints.add("tasks without a film", encodable(f"task {task.get('id')}"))
        return
    annotations = task.get("annotations") or task.get("completions") or ()
    finished = [annotation.get("result") or [] for annotation in annotations if not annotation.get("was_cancelled")]
    items = [item for results in finished for item in results]
    drawn = [item for item in items if "original_width" in item or _DRAWN & (item.get("value") or {}).keys()]
    # only the labelling setup tells which picture or page a mark lies on
    several_pages = any(item.get("item_index") is not None for item in items)
    if len(paths) > 1 or several_pages or len({item.get("to_name") for item in drawn}) > 1:
        complaints.add(SEVERAL_FILMS, encodable(f"task {task.get('id')}"))
        return
    counts[PREDICTIONS] += len(task.get("predictions") or ())
    counts[SEVERAL_PEOPLE] += len(finished) > 1
    counts[NOT_ANNOTATED] += not finished
    if finished:
        yield MarkedFilm(encodable(paths[0]), tuple(mark for results in finished for mark in _task_marks(results)))


def _path(address: str) -> str:
    """The path of a film in the address by which the tool shows it."""
    parts = urlsplit(address)
    if "/local-files/" in parts.path:
        return parse_qs(parts.query).get("d", [""])[0]
    path = unquote(parts.path) if parts.scheme or parts.path.startswith("/data/") else address
    if not path.startswith("/data/upload/"):
        return path
    return _UPLOAD_PREFIX.sub("", PurePosixPath(path).name, count=1)


def _task_marks(results: list[dict[str, Any]]) -> Iterator[Mark]:
    """The marks of one person.

    A result with the id of a labelled mark only describes that mark: its bare shape, or choices. Other choices are
    about the film; the finding of a shape without label and choices is not known.
    """
    named = {result.get("id") for result in results if _labels(result)} - {None}
    for result in results:
        labels = _labels(result)
        if labels:
            yield from (_task_mark(result, encodable(label)) for label in labels)
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


def _task_mark(result: dict[str, Any], label: str) -> Mark:
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


def read_xml(path: Path) -> Element:
    """Return a file's root; refuse a document type declaration, since its entities could expand without end."""
    builder, parser, depth = TreeBuilder(), expat.ParserCreate("utf-8"), 0

    def refuse(*_: object) -> None:
        raise SourceError(f"{path} declares a document type, which no annotation tool writes; it is not read.")

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise SourceError(f"{path} nests elements more than {MAX_DEPTH} deep, which no annotation tool does.")
        builder.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name)

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, builder.data
    try:
        parser.Parse(read_text(path).encode(), True)
    except expat.ExpatError as error:
        raise SourceError(f"{path} is no XML: {error}.") from error
    return builder.close()


def read_cvat(path: Path) -> MarkedFilms:
    """Read an export of images; refuse one of a video."""
    with source_errors(path, "file of CVAT for images"):
        root = read_xml(path)
        if root.tag != "annotations":
            raise ValueError(f"it begins with {root.tag[:40]!r}, not with annotations")
        if root.find("track") is not None:
            raise SourceError(f"{path} is CVAT's export of a video; export it as: CVAT for images 1.1.")
        films = []
        for image in root.iterfind("image"):
            size = FilmSize(int(image.attrib["width"]), int(image.attrib["height"]))
            marks = (_cvat_mark(shape.tag, shape.attrib, size) for shape in image if shape.tag != "attribute")
            films.append(MarkedFilm(image.attrib["name"], tuple(marks)))
        defined = [
            label.findtext("name", "").strip()
            for label in root.iterfind("./meta/*/labels/label")  # a skeleton's joints name their parent
            if label.find("parent") is None and label.findtext("type", "any") not in _WITHOUT_BOX
        ]
        drawn = [mark.label for film in films for mark in film.marks if mark.corners is not None]
        return MarkedFilms(tuple(dict.fromkeys(defined + drawn)), tuple(films))


def _cvat_mark(shape: str, attributes: Mapping[str, str], size: FilmSize) -> Mark:
    label = attributes["label"]
    if shape == "box" and not float(attributes.get("rotation", 0)):
        x1, y1, x2, y2 = _numbers(attributes, "xtl", "ytl", "xbr", "ybr")
        return Mark(label, (x1, y1, x2, y2), size)
    if shape in ("box", "ellipse", "polygon", "mask"):
        return mark_around(label, lambda: _box_around(shape, attributes), size)
    return Mark(label, None, size, NO_BOX)


def _box_around(shape: str, attributes: Mapping[str, str]) -> Box:
    if shape == "polygon":
        points = (point.split(",") for point in attributes["points"].split(";"))
        return Box.holding((float(x), float(y)) for x, y in points)
    if shape == "mask":
        left, top, width, height = _numbers(attributes, "left", "top", "width", "height")
        return Box.from_corner_and_size(left, top, width, height)
    if shape == "box":
        x1, y1, x2, y2 = _numbers(attributes, "xtl", "ytl", "xbr", "ybr")
    else:
        x, y, across, down = _numbers(attributes, "cx", "cy", "rx", "ry")
        x1, y1, x2, y2 = x - across, y - down, x + across, y + down
    return Box(x1, y1, x2, y2).turned(float(attributes.get("rotation", 0)), (x1 + x2) / 2, (y1 + y2) / 2)


def _numbers(attributes: Mapping[str, str], *names: str) -> tuple[float, ...]:
    return tuple(float(attributes[name]) for name in names)
