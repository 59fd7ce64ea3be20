"""VinDr-CXR: Nguyen et al., in the layout of its full release.

``train/`` and ``test/`` hold DICOM films named by their id. ``annotations/annotations_{train,test}.csv`` have a row for
each box (class_name, x_min, y_min, x_max, y_max in film pixels, and who drew it), and
``annotations/image_labels_{train,test}.csv`` a row for each film and reader with a column for each finding. Training
films were read by three radiologists each, test films by five in consensus.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from medgrape.concepts import ConceptSet
from medgrape.datasets.dataset import FilmRecord
from medgrape.datasets.draft import Draft, box_on_film, films_by_stem, named_rows, number, required
from medgrape.datasets.sources import Option, source
from medgrape.geometry import Box
from medgrape.progress import Track, quietly

CLASSES = ("no_finding", "finding")
_NO_FINDING = "No finding"
_CORNERS = ("x_min", "y_min", "x_max", "y_max")


@dataclass
class Votes:
    """The labels that the readers of one film gave, by column."""

    needed: int
    given: Counter[str] = field(default_factory=Counter)

    def agreed(self, column: str) -> bool:
        """Return whether enough readers gave a label."""
        return self.given[column] >= self.needed

    def label(self, columns: list[str]) -> bool | None:
        """Return present when enough gave it, absent when nobody did, and None when they disagree."""
        if any(self.agreed(column) for column in columns):
            return True
        return None if any(self.given[column] for column in columns) else False


@source("vindr", help="VinDr-CXR in the layout of its full release.", example="vindr vindr-cxr --out data/vindr")
def read_vindr(
    folder: Path,
    *,
    votes: Annotated[int, Option("Readers who must agree on a training label.", min=1, max=3)] = 2,
    track: Track = quietly,
) -> Draft:
    """Read everything in the folder; a training label counts when at least ``votes`` of its readers gave it."""
    draft = Draft("VinDr-CXR", "vindr", folder, CLASSES, ConceptSet.built_in("vindr"))
    draft.notes.append(f"a training label counts when at least {votes} of the film's readers gave it")
    draft.notes.append("the published files name no patients: every film counts as a patient of its own")
    for split in ("train", "test"):
        readings = _votes(draft, split, votes if split == "train" else 1)
        films = films_by_stem([folder / split], folder, draft.complaints)
        for stem, reading in track(sorted(readings.items()), f"reading {split} films", len(readings)):
            _add_film(draft, stem, films.get(stem), split, reading)
        for stem in sorted(films.keys() - readings.keys()):
            draft.complaints.add("films without a label", films[stem])
        _add_boxes(draft, split)
    return draft


def _votes(draft: Draft, split: str, needed: int) -> dict[str, Votes]:
    """The votes on each film, by its id."""
    path = draft.used(required(draft.folder / f"annotations/image_labels_{split}.csv", draft.name))
    readings: dict[str, Votes] = {}
    for row in named_rows(path, ("image_id", _NO_FINDING)):
        reading = readings.setdefault(row["image_id"], Votes(needed))
        reading.given.update(column for column, mark in row.items() if mark in ("1", "1.0"))
    columns = {column for reading in readings.values() for column in reading.given}
    others = sorted(name for name in columns if draft.concepts.published(name) is None and name != _NO_FINDING)
    if others:
        draft.notes.append(
            f"{split} labels that are no concepts but make a film one with findings: {', '.join(others)}"
        )
    return readings


def _add_film(draft: Draft, stem: str, path: str | None, split: str, votes: Votes) -> None:
    if path is None:
        draft.complaints.add("listed films missing", f"{split}/{stem}")
        return
    size = draft.size_of(path)
    if size is None:
        return
    columns: dict[str, list[str]] = {name: [] for name in draft.concepts.names}
    for column in votes.given:
        concept = draft.concepts.published(column)
        if concept is not None:
            columns[concept].append(column)
    labels = {name: votes.label(columns[name]) for name in draft.concepts.names}
    person: tuple[str, int | None, str] = ("", None, "")
    if path.lower().endswith((".dcm", ".dicom")):
        from medgrape.films.dicom.reader import read_person  # pydicom is an extra, and slow to import

        person = read_person(draft.folder / path)
    class_name = CLASSES[not votes.agreed(_NO_FINDING)]
    draft.films.append(FilmRecord(stem, path, class_name, stem, size, labels, split, *person))


def _add_boxes(draft: Draft, split: str) -> None:
    """Add all readers' boxes of a concept that the film is labelled with; boxes that were outvoted are left out."""
    path = draft.used(required(draft.folder / f"annotations/annotations_{split}.csv", draft.name))
    films = {film.id: film for film in draft.films}
    outvoted = 0
    for row in named_rows(path, ("image_id", "class_name", *_CORNERS)):
        film = films.get(row["image_id"])
        if film is None or row["class_name"] == _NO_FINDING:
            continue
        concept = draft.concepts.published(row["class_name"])
        if concept is not None and not film.labels[concept]:
            outvoted += 1
            continue
        x1, y1, x2, y2 = (number(row[corner]) for corner in _CORNERS)
        draft.draw(film, row["class_name"], box_on_film(Box, (x1, y1, x2, y2), film.size, film.size))
    if outvoted:
        draft.notes.append(f"{outvoted} boxes of {split} films left out, whose finding too few readers gave")
