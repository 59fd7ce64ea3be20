"""COCO files: any folder of films with a JSON file of boxes. TBX11K builds on this one."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from medgrape.concepts import Concept, ConceptError, ConceptSet
from medgrape.data.dataset import FilmRecord
from medgrape.data.draft import Draft, film_files, placed_box
from medgrape.data.label_files import SourceError, read_text
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
    orphans: tuple[str, ...]
    """Annotations of an image or category that the file does not have."""


def read_coco(path: Path) -> CocoFile:
    """A COCO file; what does not fit the format is an error that names it."""
    try:
        return _parsed(json.loads(read_text(path)))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"{path} is no COCO file of boxes ({type(error).__name__}: {error}).") from error


def _parsed(content: dict[str, Any]) -> CocoFile:
    categories = {entry["id"]: str(entry["name"]) for entry in content["categories"]}
    boxes: dict[Any, list[CocoBox]] = {entry["id"]: [] for entry in content["images"]}
    orphans = []
    for entry in content["annotations"]:
        x, y, width, height = (float(value) for value in entry["bbox"])
        if entry["image_id"] in boxes and entry["category_id"] in categories:
            boxes[entry["image_id"]].append(CocoBox(categories[entry["category_id"]], (x, y, width, height)))
        else:
            orphans.append(f"image {entry['image_id']}, category {entry['category_id']}")
    images = tuple(_image(entry, tuple(boxes[entry["id"]])) for entry in content["images"])
    return CocoFile(tuple(categories.values()), images, tuple(orphans))


def _image(entry: dict[str, Any], boxes: tuple[CocoBox, ...]) -> CocoImage:
    return CocoImage(str(entry["file_name"]), FilmSize(int(entry["width"]), int(entry["height"])), boxes)


def place_boxes(draft: Draft, image: CocoImage, film: FilmRecord) -> None:
    """Draw the image's boxes in the pixels of the film that is there, which may have been resized since."""
    for drawn in image.boxes:
        draft.draw(film, drawn.category, placed_box(Box.from_corner_and_size, drawn.bbox, image.size, film.size))


def read_folder(folder: Path, annotations: Path, *, vocabulary: str | None = None, track: Track = quietly) -> Draft:
    """A folder of films and a COCO file; a film without a box has no finding."""
    coco = read_coco(annotations)
    draft = Draft(folder.resolve().name, "coco", folder, CLASSES, _concepts(coco, vocabulary))
    draft.used(annotations)
    draft.notes.append("COCO files name no patients: every film counts as a patient of its own")
    for orphan in coco.orphans:
        draft.complaints.add("boxes of an image or category that is not listed", orphan)
    shelf = _Shelf(folder, coco)
    for image in track(coco.images, "reading films", len(coco.images)):
        _read_image(draft, image, shelf)
    draft.label_by_boxes()
    return draft


def _read_image(draft: Draft, image: CocoImage, shelf: "_Shelf") -> None:
    path = shelf.find(image.file_name)
    if path is None:
        draft.complaints.add("listed films missing", image.file_name)
        return
    size = draft.size_of(path)
    if size is None:
        return
    name = _bare(image.file_name)
    class_name = CLASSES[bool(image.boxes)]
    record = FilmRecord(name, path, class_name, name, size, dict.fromkeys(draft.concepts.names))
    draft.films.append(record)
    place_boxes(draft, image, record)


class _Shelf:
    """Finds films by path, by path without suffix, or by bare name where only one film and one entry have it."""

    def __init__(self, folder: Path, coco: CocoFile) -> None:
        files = [path.relative_to(folder).as_posix() for path in film_files([folder])]
        self._files = set(files)
        self._by_path = _unique({path: _bare(path) for path in files})
        self._by_name = _unique({path: Path(path).stem for path in files})
        self._named = Counter(Path(image.file_name).stem for image in coco.images)

    def find(self, listed: str) -> str | None:
        """The film's path below the folder, or None; a name that leads out of the folder leads nowhere."""
        if listed in self._files:
            return listed
        stem = Path(listed).stem
        by_name = self._by_name.get(stem) if self._named[stem] == 1 and ".." not in Path(listed).parts else None
        return self._by_path.get(_bare(listed)) or by_name


def _unique(keys: dict[str, str]) -> dict[str, str]:
    counted = Counter(keys.values())
    return {key: path for path, key in keys.items() if counted[key] == 1}


def _bare(path: str) -> str:
    pure = PurePosixPath(path)
    return pure.with_suffix("").as_posix() if pure.name else path


def _concepts(coco: CocoFile, vocabulary: str | None) -> ConceptSet:
    if vocabulary is not None:
        return ConceptSet.built_in(vocabulary)
    try:
        return ConceptSet(tuple(Concept.named(name) for name in coco.categories))
    except ConceptError as error:
        raise SourceError(f"The file's categories cannot be used as concepts: {error}") from error
