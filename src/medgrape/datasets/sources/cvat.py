"""CVAT's own export, "CVAT for images 1.1": XML with an element for each film and one for each shape on it.

Corners are pixels of the film. A turned shape is stored as it was before, with the angle by which it was turned
clockwise about its middle.
"""

from collections.abc import Mapping
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from medgrape.datasets.label_files import SourceError, read_text
from medgrape.datasets.sources.marks import NO_BOX, Mark, MarkedFilm, MarkedFilms, mark_around, source_errors
from medgrape.geometry import Box, FilmSize

MAX_DEPTH = 100
"""Nesting of elements above which a file is refused."""
_WITHOUT_BOX = ("tag", "skeleton", "points", "polyline", "cuboid")
"""Types of labels that no box can have."""


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
        films = tuple(_film(image) for image in root.iterfind("image"))
        defined = [
            label.findtext("name", "").strip()
            for label in root.iterfind("./meta/*/labels/label")  # a skeleton's joints name their parent
            if label.find("parent") is None and label.findtext("type", "any") not in _WITHOUT_BOX
        ]
        drawn = [mark.label for film in films for mark in film.marks if mark.corners is not None]
        return MarkedFilms(tuple(dict.fromkeys(defined + drawn)), films)


def _film(image: Element) -> MarkedFilm:
    size = FilmSize(int(image.attrib["width"]), int(image.attrib["height"]))
    shapes = (shape for shape in image if shape.tag != "attribute")
    return MarkedFilm(image.attrib["name"], tuple(_mark(shape.tag, shape.attrib, size) for shape in shapes))


def _mark(shape: str, attributes: Mapping[str, str], size: FilmSize) -> Mark:
    label = attributes["label"]
    if shape == "box" and not float(attributes.get("rotation", 0)):
        x1, y1, x2, y2 = _numbers(attributes, "xtl", "ytl", "xbr", "ybr")
        return Mark(label, (x1, y1, x2, y2), size)
    if shape in ("box", "ellipse", "polygon", "mask"):
        return mark_around(label, lambda: _box_around(shape, attributes), size)
    return Mark(label, None, size, NO_BOX)


def _box_around(shape: str, attributes: Mapping[str, str]) -> Box:
    if shape == "polygon":
        points = [tuple(map(float, point.split(","))) for point in attributes["points"].split(";")]
        return Box.holding((x, y) for x, y in points)
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
