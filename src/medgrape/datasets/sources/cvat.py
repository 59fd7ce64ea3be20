"""CVAT's own export, "CVAT for images 1.1": XML with an element for each film and one for each shape on it.

Corners are pixels of the film. A shape that was turned is told as it was before, with the angle by which it was turned
clockwise about its middle.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from medgrape.datasets.label_files import SourceError, read_text
from medgrape.datasets.sources.marks import NO_BOX, RESHAPED, Mark, MarkedFilm, MarkedFilms, shaped, told_as
from medgrape.geometry import Box, FilmSize

DEEPEST = 100
"""Elements in elements; a file that goes deeper is no list of films."""


def read_xml(path: Path) -> Element:
    """The file's root; one that declares a document type is refused, and with it every entity that could grow."""
    builder, parser, depth = TreeBuilder(), expat.ParserCreate("utf-8"), 0

    def refuse(*_: object) -> None:
        raise SourceError(f"{path} declares a document type, which no annotation tool writes; it is not read.")

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise SourceError(f"{path} nests elements more than {DEEPEST} deep, which no annotation tool does.")
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


_ABOUT = ("attribute",)
_OF_NO_BOX = ("tag", "skeleton", "points", "polyline", "cuboid")


def read_cvat(path: Path) -> MarkedFilms:
    """An export of images; one of a video, or what does not fit, is an error that names it."""
    with told_as(path, "file of CVAT for images"):
        root = read_xml(path)
        if root.tag != "annotations":
            raise ValueError(f"it begins with {root.tag[:40]!r}, not with annotations")
        if root.find("track") is not None:
            raise SourceError(f"{path} is CVAT's export of a video; export it as: CVAT for images 1.1.")
        films = tuple(_film(image) for image in root.iterfind("image"))
        drawn = (mark.label for film in films for mark in film.marks if mark.corners is not None)
        return MarkedFilms(tuple(dict.fromkeys([*_labels(root), *drawn])), films)


def _labels(root: Element) -> Iterator[str]:
    """Labels that boxes can have; those of a skeleton's joints name their parent."""
    for label in root.iterfind("./meta/*/labels/label"):
        if label.find("parent") is None and label.findtext("type", "any") not in _OF_NO_BOX:
            yield label.findtext("name", "").strip()


def _film(image: Element) -> MarkedFilm:
    size = FilmSize(int(image.attrib["width"]), int(image.attrib["height"]))
    shapes = (shape for shape in image if shape.tag not in _ABOUT)
    return MarkedFilm(image.attrib["name"], tuple(_mark(shape.tag, shape.attrib, size) for shape in shapes))


def _mark(shape: str, told: Mapping[str, str], size: FilmSize) -> Mark:
    label = told["label"]
    if shape == "box" and not float(told.get("rotation", 0)):
        x1, y1, x2, y2 = _numbers(told, "xtl", "ytl", "xbr", "ybr")
        return Mark(label, (x1, y1, x2, y2), size)
    if shape in ("box", "ellipse", "polygon", "mask"):
        return shaped(label, lambda: _around(shape, told), size, RESHAPED)
    return Mark(label, None, size, NO_BOX)


def _around(shape: str, told: Mapping[str, str]) -> Box:
    """The box around a shape that is none itself."""
    if shape == "polygon":
        return Box.holding(_point(point) for point in told["points"].split(";"))
    if shape == "mask":
        left, top, width, height = _numbers(told, "left", "top", "width", "height")
        return Box.from_corner_and_size(left, top, width, height)
    if shape == "box":
        x1, y1, x2, y2 = _numbers(told, "xtl", "ytl", "xbr", "ybr")
    else:
        x, y, across, down = _numbers(told, "cx", "cy", "rx", "ry")
        x1, y1, x2, y2 = x - across, y - down, x + across, y + down
    return Box(x1, y1, x2, y2).turned(float(told.get("rotation", 0)), (x1 + x2) / 2, (y1 + y2) / 2)


def _numbers(told: Mapping[str, str], *names: str) -> tuple[float, ...]:
    return tuple(float(told[name]) for name in names)


def _point(text: str) -> tuple[float, float]:
    x, y = text.split(",")
    return float(x), float(y)
