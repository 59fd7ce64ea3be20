"""COCO files: boxes in JSON."""

import json
from pathlib import Path
from typing import Any

from medgrape.datasets.draft import Complaints
from medgrape.datasets.label_files import encodable, read_text
from medgrape.datasets.sources.marks import Mark, MarkedFilm, MarkedFilms, mark_around, source_errors
from medgrape.geometry import Box, FilmSize


def read_coco(path: Path) -> MarkedFilms:
    """Read a COCO file."""
    with source_errors(path, "COCO file of boxes"):
        return _parsed(json.loads(read_text(path)))


def _parsed(content: dict[str, Any]) -> MarkedFilms:
    categories = {entry["id"]: encodable(entry["name"]) for entry in content["categories"]}
    images = content["images"]
    marks: dict[Any, list[Mark]] = {entry["id"]: [] for entry in images}
    sizes = {entry["id"]: FilmSize(int(entry["width"]), int(entry["height"])) for entry in images}
    if len(marks) < len(images):
        raise ValueError("two images have the same id")
    complaints = Complaints()
    for entry in content["annotations"]:
        image, category = entry["image_id"], entry["category_id"]
        mark = _mark(entry, str(categories.get(category)), sizes.get(image, FilmSize(1, 1)))
        if image in marks and category in categories:
            marks[image].append(mark)
        else:
            kind = "boxes of an image or category that is not listed"
            complaints.add(kind, encodable(f"image {image}, category {category}"))
    # Our own files also hold rejected findings and marks without a name, which a data set cannot represent.
    others = content.get("other_annotations", ())
    left_out = {image for image in {entry["image_id"] for entry in others} if not marks.get(image)}
    films = tuple(
        MarkedFilm(encodable(image["file_name"]), tuple(marks[image["id"]]))
        for image in images
        if image["id"] not in left_out
    )
    notes = []
    if others:
        note = f"{len(others)} marks that deny a finding or name none are left out"
        notes.append(f"{note}, and {len(left_out)} films that have no others" if left_out else note)
    return MarkedFilms(tuple(categories.values()), films, complaints, tuple(notes))


def _mark(entry: dict[str, Any], label: str, size: FilmSize) -> Mark:
    """One annotation; CVAT stores beside a box the angle by which it was turned about its middle."""
    x, y, width, height = (float(value) for value in entry["bbox"])
    attributes = entry.get("attributes")
    angle = attributes.get("rotation") if isinstance(attributes, dict) else None
    corners = (x, y, x + width, y + height)
    if not isinstance(angle, int | float) or not angle:
        return Mark(label, corners, size)
    return mark_around(label, lambda: Box(*corners).turned(angle, x + width / 2, y + height / 2), size)
