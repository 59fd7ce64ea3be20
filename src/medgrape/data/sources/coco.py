"""COCO files: any folder of films with a JSON file of boxes. TBX11K builds on this one."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medgrape.concepts import Concept, ConceptError, ConceptSet
from medgrape.data.complaints import Complaints
from medgrape.data.dataset import DrawnBox, FilmRecord
from medgrape.data.draft import (
    Draft,
    SourceError,
    films_by_stem,
    placed_box,
    read_text,
    with_boxes_as_labels,
)
from medgrape.data.files import sha256
from medgrape.geometry import Box, FilmSize
from medgrape.progress import Track, quietly

CLASSES = ("no_finding", "finding")


@dataclass(frozen=True)
class CocoBox:
    """One annotation: its category as published and ``x y width height``."""

    category: str
    bbox: tuple[float, float, float, float]


@dataclass(frozen=True)
class CocoImage:
    """One image entry with all its annotations."""

    file_name: str
    size: FilmSize
    boxes: tuple[CocoBox, ...]


@dataclass(frozen=True)
class CocoFile:
    """The part of a COCO file that matters for boxes."""

    categories: tuple[str, ...]
    images: tuple[CocoImage, ...]


def read_coco(path: Path) -> CocoFile:
    """A COCO file; what does not fit the format is an error that names it."""
    try:
        content = json.loads(read_text(path))
        categories = {entry["id"]: str(entry["name"]) for entry in content["categories"]}
        boxes: dict[Any, list[CocoBox]] = {entry["id"]: [] for entry in content["images"]}
        for entry in content["annotations"]:
            x, y, width, height = (float(value) for value in entry["bbox"])
            boxes[entry["image_id"]].append(CocoBox(categories[entry["category_id"]], (x, y, width, height)))
        images = tuple(_image(entry, tuple(boxes[entry["id"]])) for entry in content["images"])
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{path} is no COCO file of boxes ({type(error).__name__}: {error}).") from error
    return CocoFile(tuple(categories.values()), images)


def _image(entry: dict[str, Any], boxes: tuple[CocoBox, ...]) -> CocoImage:
    return CocoImage(str(entry["file_name"]), FilmSize(int(entry["width"]), int(entry["height"])), boxes)


def place_boxes(image: CocoImage, film: FilmRecord, concepts: ConceptSet, complaints: Complaints) -> list[DrawnBox]:
    """The image's boxes in the pixels of the film that is there, which may have been resized since."""
    placed = []
    for drawn in image.boxes:
        concept = concepts.published(drawn.category)
        box = placed_box(Box.from_corner_and_size, drawn.bbox, image.size, film.size)
        if concept is None:
            complaints.add("boxes of an unknown finding", f"{drawn.category} on {film.id}")
        elif box is None:
            complaints.add("boxes without area or beyond their film", f"{drawn.bbox} on {film.id}")
        else:
            placed.append(DrawnBox(film.id, concept, box))
    return placed


def read_folder(folder: Path, annotations: Path, *, vocabulary: str | None = None, track: Track = quietly) -> Draft:
    """A folder of films and a COCO file; a film without a box has no finding."""
    coco = read_coco(annotations)
    concepts = _concepts(coco, vocabulary)
    draft = Draft(folder.name, "coco", folder, CLASSES, concepts)
    draft.checksums[annotations.name] = sha256(annotations)
    draft.notes.append("COCO files name no patients: every film counts as a patient of its own")
    by_stem = films_by_stem([folder], folder)
    for image in track(coco.images, "reading films", len(coco.images)):
        _read_image(draft, image, by_stem)
    draft.films = list(with_boxes_as_labels(draft.films, draft.boxes))
    return draft


def _read_image(draft: Draft, image: CocoImage, by_stem: dict[str, str]) -> None:
    exact = draft.folder / image.file_name
    inside = exact.is_file() and exact.resolve().is_relative_to(draft.folder.resolve())
    path = image.file_name if inside else by_stem.get(Path(image.file_name).stem)
    if path is None:
        draft.complaints.add("listed films missing", image.file_name)
        return
    size = draft.size_of(path)
    if size is None:
        return
    name = Path(image.file_name).with_suffix("").as_posix()
    class_name = CLASSES[bool(image.boxes)]
    record = FilmRecord(name, path, class_name, name, size, dict.fromkeys(draft.concepts.names))
    draft.films.append(record)
    draft.boxes += place_boxes(image, record, draft.concepts, draft.complaints)


def _concepts(coco: CocoFile, vocabulary: str | None) -> ConceptSet:
    if vocabulary is not None:
        return ConceptSet.built_in(vocabulary)
    try:
        return ConceptSet(tuple(Concept.named(name) for name in coco.categories))
    except ConceptError as error:
        raise SourceError(f"The file's categories cannot be used as concepts: {error}") from error
