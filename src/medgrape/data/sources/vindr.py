"""VinDr-CXR: Nguyen et al., in the layout of its full release.

``train/`` and ``test/`` hold DICOM films named by their id. ``annotations/annotations_{train,test}.csv`` have a row for
each box (class_name, x_min, y_min, x_max, y_max in film pixels, and who drew it), and
``annotations/image_labels_{train,test}.csv`` a row for each film and reader with a column for each finding. Training
films were read by three radiologists each, test films by five in consensus.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from medgrape.concepts import ConceptSet
from medgrape.data.dataset import DrawnBox, FilmRecord
from medgrape.data.draft import Draft, SourceError, films_by_stem, placed_box, required
from medgrape.data.files import sha256
from medgrape.geometry import Box
from medgrape.progress import Track, quietly

CLASSES = ("no_finding", "finding")
_NO_FINDING = "No finding"
_CORNERS = ("x_min", "y_min", "x_max", "y_max")


def read_vindr(folder: Path, *, votes: int = 2, track: Track = quietly) -> Draft:
    """Everything in the folder; a training label counts when at least ``votes`` of its readers gave it."""
    draft = Draft("VinDr-CXR", "vindr", folder, CLASSES, ConceptSet.built_in("vindr"))
    draft.notes.append(f"a training label counts when at least {votes} of the film's readers gave it")
    draft.notes.append("the published files name no patients: every film counts as a patient of its own")
    for split in ("train", "test"):
        labels = _votes(draft, split)
        films = films_by_stem([folder / split], folder)
        for stem, given in track(sorted(labels.items()), f"reading {split} films", len(labels)):
            _add_film(draft, stem, films.get(stem), split, given, votes if split == "train" else 1)
        for stem in sorted(films.keys() - labels.keys()):
            draft.complaints.add("films without a label", films[stem])
        _add_boxes(draft, split)
    return draft


def _rows(draft: Draft, name: str, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    path = required(draft.folder / "annotations" / name, draft.name)
    draft.checksums[f"annotations/{name}"] = sha256(path)
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        missing = [column for column in columns if column not in (rows.fieldnames or ())]
        if missing:
            raise SourceError(f"{path} has no column {missing[0]!r}.")
        yield from rows


def _votes(draft: Draft, split: str) -> dict[str, dict[str, int]]:
    """For each film, how many readers gave each concept."""
    votes: dict[str, dict[str, int]] = {}
    for row in _rows(draft, f"image_labels_{split}.csv", ("image_id", _NO_FINDING)):
        given = votes.setdefault(row["image_id"], defaultdict(int))
        for column, mark in row.items():
            concept = draft.concepts.published(column) if mark in ("1", "1.0") else None
            if concept is not None:
                given[concept] += 1
    return votes


def _add_film(draft: Draft, stem: str, path: str | None, split: str, given: dict[str, int], votes: int) -> None:
    if path is None:
        draft.complaints.add("listed films missing", f"{split}/{stem}")
        return
    size = draft.size_of(path)
    if size is None:
        return
    labels: dict[str, bool | None] = {name: given.get(name, 0) >= votes for name in draft.concepts.names}
    sex, age, view = _person(draft.folder / path)
    class_name = CLASSES[any(labels.values())]
    draft.films.append(FilmRecord(stem, path, class_name, stem, size, labels, split, sex, age, view))


def _person(path: Path) -> tuple[str, int | None, str]:
    """Sex, age and view from the film's header, where it has them."""
    if path.suffix.lower() not in (".dcm", ".dicom"):
        return "", None, ""
    from medgrape.data.dicom.header import read_person

    return read_person(path)


def _add_boxes(draft: Draft, split: str) -> None:
    """All readers' boxes of a concept that the film is labelled with; a box that was outvoted is left out."""
    films = {film.id: film for film in draft.films}
    outvoted = 0
    for row in _rows(draft, f"annotations_{split}.csv", ("image_id", "class_name", *_CORNERS)):
        film = films.get(row["image_id"])
        if film is None or row["class_name"] == _NO_FINDING:
            continue
        concept = draft.concepts.published(row["class_name"])
        x1, y1, x2, y2 = (float(row[corner] or "nan") for corner in _CORNERS)
        box = placed_box(Box, (x1, y1, x2, y2), film.size, film.size)
        if concept is None or box is None:
            draft.complaints.add(
                "boxes of an unknown finding or beyond their film", f"{row['class_name']} on {film.id}"
            )
        elif not film.labels[concept]:
            outvoted += 1
        else:
            draft.boxes.append(DrawnBox(film.id, concept, box))
    if outvoted:
        draft.notes.append(f"{outvoted} boxes of {split} films left out, whose finding too few readers gave")
