"""VinDr-CXR: Nguyen et al., in the layout of its full release.

``train/`` and ``test/`` hold DICOM films named by their id. ``annotations/annotations_{train,test}.csv`` have a row for
each box (class_name, x_min, y_min, x_max, y_max in film pixels, and who drew it), and
``annotations/image_labels_{train,test}.csv`` a row for each film and reader with a column for each finding. Training
films were read by three radiologists each, test films by five in consensus.
"""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Annotated

from medgrape.concepts import ConceptSet
from medgrape.datasets.dataset import FilmRecord
from medgrape.datasets.draft import NO_PATIENTS, Draft, box_on_film, films_by_stem, named_rows, number, required
from medgrape.datasets.sources import Option, source
from medgrape.geometry import Box, FilmSize
from medgrape.progress import Track, quietly

CLASSES = ("no_finding", "finding")
_NO_FINDING = "No finding"
_CORNERS = ("x_min", "y_min", "x_max", "y_max")


@source("vindr", help="VinDr-CXR in the layout of its full release.", example="vindr vindr-cxr --out data/vindr")
def read_vindr(
    folder: Path,
    *,
    votes: Annotated[int, Option("Number of readers who must agree on a training label.", min=1, max=3)] = 2,
    track: Track = quietly,
) -> Draft:
    """Read everything in the folder; a training label counts when at least ``votes`` of its readers gave it."""
    draft = Draft("VinDr-CXR", "vindr", folder, CLASSES, ConceptSet.built_in("vindr"))
    draft.notes += [f"a training label counts when at least {votes} of the film's readers gave it", NO_PATIENTS]
    for split in ("train", "test"):
        readings, needed = _votes(draft, split), votes if split == "train" else 1
        films = films_by_stem([folder / split], folder, draft.complaints)
        for stem, votes_by_label in track(sorted(readings.items()), f"reading {split} films", len(readings)):
            path = films.get(stem, "")
            size = draft.size_of_listed(path, f"{split}/{stem}")
            if size is not None:
                draft.films.append(_film(draft, stem, path, size, split, votes_by_label, needed))
        for stem in sorted(films.keys() - readings.keys()):
            draft.complaints.add("films without a label", films[stem])
        _add_boxes(draft, split)
    return draft


def _votes(draft: Draft, split: str) -> dict[str, Counter[str]]:
    """How many readers of each film, by its id, gave each label."""
    path = draft.used(required(draft.folder, draft.name, f"annotations/image_labels_{split}.csv"))
    readings = defaultdict[str, Counter[str]](Counter)
    for row in named_rows(path, ("image_id", _NO_FINDING)):
        readings[row["image_id"]].update(column for column, mark in row.items() if mark in ("1", "1.0"))
    columns = {column for counts in readings.values() for column in counts}
    others = sorted(name for name in columns if draft.concepts.published(name) is None and name != _NO_FINDING)
    if others:
        draft.notes.append(
            f"{split} labels that are no concepts but make a film one with findings: {', '.join(others)}"
        )
    return readings


def _film(
    draft: Draft, stem: str, path: str, size: FilmSize, split: str, votes_by_label: Counter[str], needed: int
) -> FilmRecord:
    """One film; a finding is present when enough readers gave it, absent when nobody did, and else not known."""
    labels: dict[str, bool | None] = dict.fromkeys(draft.concepts.names, False)
    for column, count in votes_by_label.items():
        concept = draft.concepts.published(column)
        if concept is not None:
            labels[concept] = True if count >= needed else labels[concept] or None
    person: tuple[str, int | None, str] = ("", None, "")
    if path.lower().endswith((".dcm", ".dicom")):
        from medgrape.films.dicom.reader import read_person  # pydicom is an extra, and slow to import

        person = read_person(draft.folder / path)
    class_name = CLASSES[votes_by_label[_NO_FINDING] < needed]
    return FilmRecord(stem, path, class_name, stem, size, labels, split, *person)


def _add_boxes(draft: Draft, split: str) -> None:
    """Add all readers' boxes of a concept that the film is labelled with; boxes that were outvoted are left out."""
    path = draft.used(required(draft.folder, draft.name, f"annotations/annotations_{split}.csv"))
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
