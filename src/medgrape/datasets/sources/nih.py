"""NIH ChestX-ray14: Wang et al., "ChestX-ray8", in its official layout.

``Data_Entry_2017*.csv``, ``BBox_List_2017.csv``, ``train_val_list.txt``, ``test_list.txt`` (each perhaps gzipped) and
films below ``images/`` or ``images_001/`` to ``images_012/``. The films were published as 1024 x 1024 PNG. The
published boxes are in those pixels, not in those of the scanner that the label file also names.
"""

from pathlib import Path
from typing import Annotated

from medgrape.concepts import ConceptSet
from medgrape.datasets.dataset import FilmRecord
from medgrape.datasets.draft import (
    Draft,
    age_in_years,
    box_on_film,
    films_by_stem,
    named_rows,
    number,
    plain_rows,
    required,
)
from medgrape.datasets.sources import Option, source
from medgrape.geometry import Box, FilmSize
from medgrape.progress import Track, quietly

CLASSES = ("no_finding", "finding")
PUBLISHED = FilmSize(1024, 1024)
_NO_FINDING = "No Finding"
_COLUMNS = ("Image Index", "Finding Labels", "Patient ID", "Patient Age", "Patient Gender", "View Position")


@source(
    "nih",
    help="NIH ChestX-ray14, or a part of its films, in its official layout, with the official test list.",
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
    rows = _label_rows(draft)
    splits = _splits(draft)
    films = films_by_stem([path for path in sorted(folder.glob("images*")) if path.is_dir()], folder, draft.complaints)
    for stem, row in track(rows, "reading films", len(rows)):
        path = films.get(stem, "")
        if path or all_rows:
            _add_film(draft, stem, row, path, splits.get(stem))
    _add_boxes(draft)
    absent = sum(stem not in films for stem, _ in rows)
    if absent:
        kept = "kept with labels alone" if all_rows else "left out"
        draft.notes.append(f"{absent:,} of {len(rows):,} labelled films are not in the folder: {kept}")
    for stem in sorted(films.keys() - {stem for stem, _ in rows}):
        draft.complaints.add("films without a label", films[stem])
    return draft


def _file(draft: Draft, *names: str) -> Path:
    """The first of several files that is there, perhaps gzipped."""
    spellings = [spelled for name in names for spelled in (name, f"{name}.gz")]
    return draft.used(required(draft.folder, draft.name, *spellings))


def _label_rows(draft: Draft) -> list[tuple[str, dict[str, str]]]:
    """Each film's name without suffix, with its row of the label file."""
    rows = []
    for row in named_rows(_file(draft, "Data_Entry_2017_v2020.csv", "Data_Entry_2017.csv"), _COLUMNS):
        image, age = row["Image Index"], row["Patient Age"]
        if not row["View Position"]:
            draft.complaints.add("label rows cut short", ",".join(filter(None, row.values()))[:40])
            continue
        if age_in_years(age) is None:
            draft.notes.append(f"{image}: age {age!r} left out")
        rows.append((Path(image).stem, row))
    return rows


def _splits(draft: Draft) -> dict[str, str]:
    splits: dict[str, str] = {}
    for name, split in (("train_val_list.txt", "train"), ("test_list.txt", "test")):
        for row in plain_rows(_file(draft, name)):
            stem = Path(row[0].strip()).stem
            if stem in splits:
                draft.complaints.add("films in both official lists", stem)
            splits[stem] = split
    return splits


def _add_film(draft: Draft, stem: str, row: dict[str, str], path: str, split: str | None) -> None:
    if split is None:
        draft.complaints.add("films in neither official list", stem)
        return
    findings = row["Finding Labels"].split("|")
    present = {draft.concepts.published(finding) for finding in findings if finding != _NO_FINDING}
    if None in present or (present and _NO_FINDING in findings):
        draft.complaints.add("films with contradictory or unknown labels", f"{stem} ({'|'.join(findings)})")
        return
    size = draft.size_of(path) if path else PUBLISHED
    if size is not None:
        labels: dict[str, bool | None] = {name: name in present for name in draft.concepts.names}
        person = (row["Patient Gender"], age_in_years(row["Patient Age"]), row["View Position"])
        class_name = CLASSES[bool(present)]
        draft.films.append(FilmRecord(stem, path, class_name, row["Patient ID"], size, labels, split, *person))


def _add_boxes(draft: Draft) -> None:
    """Add the published boxes; their header row is broken, so the columns are taken by their order."""
    films = {film.id: film for film in draft.films}
    rows = plain_rows(_file(draft, "BBox_List_2017.csv"))
    next(rows, None)
    for row in rows:
        film = films.get(Path(row[0]).stem)
        if film is not None:
            x, y, width, height = (number(text) for text in (row[2:6] + [""] * 4)[:4])
            box = box_on_film(Box.from_corner_and_size, (x, y, width, height), PUBLISHED, film.size)
            draft.draw(film, row[1] if len(row) > 1 else "", box)
