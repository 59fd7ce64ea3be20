"""A CSV of any shape, by naming its columns."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from medgrape.concepts import Concept, ConceptSet, slug
from medgrape.data.dataset import SPLITS, DrawnBox, FilmRecord
from medgrape.data.draft import Draft, SourceError, placed_box
from medgrape.data.files import sha256
from medgrape.geometry import Box
from medgrape.progress import Track, quietly
from medgrape.spelling import nearest

_YES, _NO = {"1", "1.0", "true", "yes", "y", "positive"}, {"0", "0.0", "false", "no", "n", "negative"}
_UNKNOWN = {"", "-1", "-1.0", "nan", "na", "uncertain", "unknown"}
_TEST_NAMES = {"test", "testing", "holdout"}


@dataclass(frozen=True)
class FilmColumns:
    """Which column of the film table holds what; None where the table has no such column."""

    path: str
    concepts: tuple[str, ...] = ()
    """One column a concept, with yes or no in it."""
    labels: str | None = None
    """Or one column that lists the concepts present, parted by ``separator``."""
    separator: str = "|"
    id: str | None = None
    class_name: str | None = None
    patient: str | None = None
    sex: str | None = None
    age: str | None = None
    view: str | None = None
    split: str | None = None

    def all_named(self) -> tuple[str, ...]:
        """Every column that must be there."""
        single = (
            self.path,
            self.labels,
            self.id,
            self.class_name,
            self.patient,
            self.sex,
            self.age,
            self.view,
            self.split,
        )
        return (*(name for name in single if name is not None), *self.concepts)


@dataclass(frozen=True)
class BoxColumns:
    """Which column of the box table holds what."""

    film: str
    concept: str
    edges: tuple[str, str, str, str]
    """x1, y1, x2, y2, or, with ``sized``, x, y, width, height."""
    sized: bool = False


@dataclass(frozen=True)
class Row:
    """One row of the film table, by what its cells mean."""

    cells: dict[str, str]
    columns: FilmColumns

    def cell(self, column: str | None) -> str:
        """What a column says, or nothing where the table has no such column."""
        return "" if column is None else (self.cells[column] or "").strip()

    @property
    def id(self) -> str:
        """The film's name: its own column, else its path without suffix."""
        return self.cell(self.columns.id) or Path(self.cell(self.columns.path)).with_suffix("").as_posix()


def read_table(
    table: Path,
    columns: FilmColumns,
    *,
    films: Path | None = None,
    boxes: tuple[Path, BoxColumns] | None = None,
    vocabulary: str | None = None,
    track: Track = quietly,
) -> Draft:
    """The films that a CSV names; paths in it are relative to ``films``, or to the CSV's own folder."""
    rows = [Row(cells, columns) for cells in _rows(table, columns.all_named())]
    concepts = _concepts(rows, columns, vocabulary)
    classes = _classes(rows, columns)
    draft = Draft(table.stem, "table", films or table.parent, classes, concepts)
    draft.checksums[table.name] = sha256(table)
    if columns.patient is None:
        draft.notes.append("no column for patients was named: every film counts as a patient of its own")
    seen: set[str] = set()
    for row in track(rows, "reading films", len(rows)):
        if row.id in seen:
            draft.complaints.add("films listed twice", row.id)
            continue
        seen.add(row.id)
        _add_film(draft, row)
    if boxes is not None:
        _add_boxes(draft, *boxes)
    return draft


def _rows(path: Path, wanted: tuple[str, ...]) -> Iterator[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            names = rows.fieldnames or ()
            missing = [column for column in wanted if column not in names]
            if missing:
                raise SourceError(f"{path} has no column {missing[0]!r}{nearest(missing[0], names)}.")
            yield from rows
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{path} is no CSV file in UTF-8: {error}.") from error


def _concepts(rows: list[Row], columns: FilmColumns, vocabulary: str | None) -> ConceptSet:
    if vocabulary is not None:
        return ConceptSet.built_in(vocabulary)
    listed = {label for row in rows for label in _listed(row)}
    names = columns.concepts or tuple(sorted(listed))
    if not names:
        raise SourceError("The table tells no concept: name --concepts, or --labels, or a --vocabulary.")
    return ConceptSet(tuple(Concept.named(name) for name in names))


def _listed(row: Row) -> list[str]:
    labels = (label.strip() for label in row.cell(row.columns.labels).split(row.columns.separator))
    return [label for label in labels if label and slug(label) not in ("no_finding", "normal", "none")]


def _classes(rows: list[Row], columns: FilmColumns) -> tuple[str, ...]:
    if columns.class_name is None:
        return "no_finding", "finding"
    classes = sorted({slug(row.cell(columns.class_name)) for row in rows if row.cell(columns.class_name)})
    if len(classes) < 2:
        raise SourceError(f"Column {columns.class_name!r} names {len(classes)} class; it takes at least two.")
    return tuple(classes)


def _labels(draft: Draft, row: Row) -> dict[str, bool | None]:
    if not row.columns.concepts:
        present = {draft.concepts.published(label) for label in _listed(row)}
        if None in present:
            draft.complaints.add("films with an unknown label", f"{row.id} ({row.cell(row.columns.labels)})")
        return {name: name in present for name in draft.concepts.names}
    labels: dict[str, bool | None] = dict.fromkeys(draft.concepts.names)
    for column in row.columns.concepts:
        concept, mark = draft.concepts.published(column), row.cell(column).lower()
        if concept is None or mark not in _YES | _NO | _UNKNOWN:
            draft.complaints.add("marks that are neither yes, no nor unknown", f"{column}={mark!r} on {row.id}")
        else:
            labels[concept] = None if mark in _UNKNOWN else mark in _YES
    return labels


def _add_film(draft: Draft, row: Row) -> None:
    columns, path = row.columns, row.cell(row.columns.path)
    if not (draft.folder / path).is_file():
        draft.complaints.add("listed films missing", path)
        return
    size = draft.size_of(path)
    if size is None:
        return
    labels = _labels(draft, row)
    class_name = slug(row.cell(columns.class_name)) if columns.class_name else draft.classes[any(labels.values())]
    if class_name not in draft.classes:
        draft.complaints.add("films without a class", row.id)
        return
    split = "test" if row.cell(columns.split).lower() in _TEST_NAMES | {SPLITS[2]} else "train"
    age = row.cell(columns.age).removesuffix(".0")
    draft.films.append(
        FilmRecord(
            row.id,
            path,
            class_name,
            row.cell(columns.patient) or row.id,
            size,
            labels,
            split,
            row.cell(columns.sex)[:1].upper(),
            int(age) if age.isdigit() else None,
            row.cell(columns.view).upper(),
        )
    )


def _add_boxes(draft: Draft, path: Path, columns: BoxColumns) -> None:
    films = {film.id: film for film in draft.films}
    draft.checksums[path.name] = sha256(path)
    make = Box.from_corner_and_size if columns.sized else Box
    for row in _rows(path, (columns.film, columns.concept, *columns.edges)):
        film = films.get(row[columns.film]) or films.get(Path(row[columns.film]).with_suffix("").as_posix())
        concept = draft.concepts.published(row[columns.concept])
        if film is None or concept is None:
            draft.complaints.add(
                "boxes of an unknown film or finding", f"{row[columns.concept]} on {row[columns.film]}"
            )
            continue
        try:
            first, second, third, fourth = (float(row[edge]) for edge in columns.edges)
        except ValueError:
            draft.complaints.add("boxes whose edges are no numbers", film.id)
            continue
        box = placed_box(make, (first, second, third, fourth), film.size, film.size)
        if box is None:
            draft.complaints.add("boxes without area or beyond their film", film.id)
        elif film.labels[concept] is False:
            draft.complaints.add("boxes of a finding that the labels deny", f"{concept} on {film.id}")
        else:
            draft.boxes.append(DrawnBox(film.id, concept, box))
