"""NIH ChestX-ray14: Wang et al., "ChestX-ray8", in its official layout.

``Data_Entry_2017*.csv``, ``BBox_List_2017.csv``, ``train_val_list.txt``, ``test_list.txt`` (each perhaps gzipped) and
films below ``images/`` or ``images_001/`` to ``images_012/``. The films were published as 1024 x 1024 PNG. The
published boxes are in those pixels, not in those of the scanner that the label file also names.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from medgrape.concepts import ConceptSet
from medgrape.datasets.dataset import FilmRecord
from medgrape.datasets.draft import (
    Draft,
    SourceError,
    age_in_years,
    box_on_film,
    films_by_stem,
    first_present,
    number,
    plain_rows,
)
from medgrape.datasets.sources import Option, source
from medgrape.geometry import Box, FilmSize
from medgrape.progress import Track, quietly

CLASSES = ("no_finding", "finding")
PUBLISHED = FilmSize(1024, 1024)
_NO_FINDING = "No Finding"
_COLUMNS = ("Image Index", "Finding Labels", "Patient ID", "Patient Age", "Patient Gender", "View Position")


@dataclass(frozen=True)
class Entry:
    """One row of the label file."""

    stem: str
    findings: tuple[str, ...]
    patient: str
    age: int | None
    sex: str
    view: str


@source(
    "nih",
    help="NIH ChestX-ray14 in its official layout: the films that are there, with the official test list.",
    example="nih ChestX-ray14 --out data/nih",
)
def read_nih(
    folder: Path,
    *,
    all_rows: Annotated[bool, Option("Keep rows without a film, for label statistics.", "--all-rows")] = False,
    track: Track = quietly,
) -> Draft:
    """Read the films that are there, or, with ``all_rows``, every row of the label file."""
    draft = Draft("NIH ChestX-ray14", "nih", folder, CLASSES, ConceptSet.built_in("nih"))
    entries = list(_entries(draft))
    splits = _splits(draft)
    films = films_by_stem([path for path in sorted(folder.glob("images*")) if path.is_dir()], folder, draft.complaints)
    for entry in track(entries, "reading films", len(entries)):
        path = films.get(entry.stem, "")
        if path or all_rows:
            _add_film(draft, entry, path, splits.get(entry.stem))
    _add_boxes(draft)
    absent = sum(entry.stem not in films for entry in entries)
    if absent:
        kept = "kept with labels alone" if all_rows else "left out"
        draft.notes.append(f"{absent:,} of {len(entries):,} labelled films are not in the folder: {kept}")
    for stem in sorted(films.keys() - {entry.stem for entry in entries}):
        draft.complaints.add("films without a label", films[stem])
    return draft


def _rows(draft: Draft, *names: str) -> Iterator[list[str]]:
    """The rows of the first of several files that is there, perhaps gzipped."""
    spellings = [spelled for name in names for spelled in (name, f"{name}.gz")]
    yield from plain_rows(draft.used(first_present(draft.folder, spellings, draft.name)))


def _entries(draft: Draft) -> Iterator[Entry]:
    rows = _rows(draft, "Data_Entry_2017_v2020.csv", "Data_Entry_2017.csv")
    places = {name: place for place, name in enumerate(next(rows, []))}
    missing = [name for name in _COLUMNS if name not in places]
    if missing:
        raise SourceError(f"The NIH label file has no column {missing[0]!r}.")
    for row in rows:
        if len(row) <= max(places[name] for name in _COLUMNS):
            draft.complaints.add("label rows cut short", ",".join(row)[:40])
            continue
        image, findings, patient, age, sex, view = (row[places[name]] for name in _COLUMNS)
        if age_in_years(age) is None:
            draft.notes.append(f"{image}: age {age!r} left out")
        yield Entry(Path(image).stem, tuple(findings.split("|")), patient, age_in_years(age), sex, view)


def _splits(draft: Draft) -> dict[str, str]:
    splits: dict[str, str] = {}
    for name, split in (("train_val_list.txt", "train"), ("test_list.txt", "test")):
        for row in _rows(draft, name):
            stem = Path(row[0].strip()).stem
            if stem in splits:
                draft.complaints.add("films in both official lists", stem)
            splits[stem] = split
    return splits


def _add_film(draft: Draft, entry: Entry, path: str, split: str | None) -> None:
    if split is None:
        draft.complaints.add("films in neither official list", entry.stem)
        return
    present = {draft.concepts.published(finding) for finding in entry.findings if finding != _NO_FINDING}
    if None in present or (present and _NO_FINDING in entry.findings):
        draft.complaints.add("films with contradictory or unknown labels", f"{entry.stem} ({'|'.join(entry.findings)})")
        return
    size = draft.size_of(path) if path else PUBLISHED
    if size is None:
        return
    labels: dict[str, bool | None] = {name: name in present for name in draft.concepts.names}
    person = (entry.sex, entry.age, entry.view)
    class_name = CLASSES[bool(present)]
    draft.films.append(FilmRecord(entry.stem, path, class_name, entry.patient, size, labels, split, *person))


def _add_boxes(draft: Draft) -> None:
    """Add the published boxes; their header row is broken, so the columns are taken by their order."""
    films = {film.id: film for film in draft.films}
    rows = _rows(draft, "BBox_List_2017.csv")
    next(rows, None)
    for row in rows:
        film = films.get(Path(row[0]).stem)
        if film is not None:
            x, y, width, height = (number(text) for text in (row[2:6] + [""] * 4)[:4])
            box = box_on_film(Box.from_corner_and_size, (x, y, width, height), PUBLISHED, film.size)
            draft.draw(film, row[1] if len(row) > 1 else "", box)
