"""COCO files: boxes in JSON. TBX11K builds on this one."""

import json
from pathlib import Path
from typing import Any

from medgrape.datasets.draft import Complaints
from medgrape.datasets.label_files import read_text, written
from medgrape.datasets.sources.marks import RESHAPED, Mark, MarkedFilm, MarkedFilms, shaped, told_as
from medgrape.geometry import Box, FilmSize


def read_coco(path: Path) -> MarkedFilms:
    """A COCO file; what does not fit the format is an error that names it."""
    with told_as(path, "COCO file of boxes"):
        return _parsed(json.loads(read_text(path)))


def _parsed(content: dict[str, Any]) -> MarkedFilms:
    categories = {entry["id"]: written(entry["name"]) for entry in content["categories"]}
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
            complaints.add(
                "boxes of an image or category that is not listed", written(f"image {image}, category {category}")
            )
    others = {entry["image_id"] for entry in content.get("other_annotations", ())}
    silent = {image for image in others if not marks.get(image)}
    films = [
        MarkedFilm(written(one["file_name"]), tuple(marks[one["id"]])) for one in images if one["id"] not in silent
    ]
    return MarkedFilms(tuple(categories.values()), tuple(films), complaints, _left_out(content, silent))


def _mark(entry: dict[str, Any], label: str, size: FilmSize) -> Mark:
    """CVAT keeps the angle of a box that was turned about its middle beside it."""
    x, y, width, height = (float(value) for value in entry["bbox"])
    more = entry.get("attributes")
    angle = more.get("rotation") if isinstance(more, dict) else None
    if not isinstance(angle, int | float) or not angle:
        return Mark(label, (x, y, x + width, y + height), size)
    upright = (x, y, x + width, y + height)
    middle = (x + width / 2, y + height / 2)
    return shaped(label, lambda: Box(*upright).turned(angle, *middle), size, RESHAPED)


def _left_out(content: dict[str, Any], silent: set[Any]) -> tuple[str, ...]:
    """Our own files also tell what people deny, or point at without a name; a data set has no place for that."""
    others = len(content.get("other_annotations", ()))
    if not others:
        return ()
    told = f"{others} marks that deny a finding or name none are left out"
    return (f"{told}, and {len(silent)} films that have no others" if silent else told,)
