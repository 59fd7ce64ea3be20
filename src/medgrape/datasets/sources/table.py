"""Any CSV file; options name its columns."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from medgrape.concepts import Concept, ConceptSet, slug
from medgrape.datasets.dataset import FilmRecord
from medgrape.datasets.draft import Draft, SourceError, age_in_years, box_on_film, named_rows, number, without_suffix
from medgrape.datasets.sources import Option, source
from medgrape.errors import UserError
from medgrape.geometry import Box
from medgrape.progress import Track, quietly

_YES, _NO = {"1", "1.0", "true", "yes", "y", "positive"}, {"0", "0.0", "false", "no", "n", "negative"}
_UNKNOWN = {"", "-1", "-1.0", "nan", "na", "uncertain", "unknown"}
# Values of a split column; validation is cut from training anew, so a published validation split is training here
_SPLITS = {
    "test": "test", "testing": "test", "holdout": "test",
    "train": "train", "training": "train", "val": "train", "valid": "train", "validation": "train", "dev": "train",
}  # fmt: skip
_SEXES = {"m": "M", "male": "M", "f": "F", "female": "F", "o": "O", "other": "O"}
_NO_FINDING = {"no_finding", "no_findings", "normal", "none"}


@dataclass(frozen=True)
class Row:
    """One row of the film table."""

    cells: dict[str, str]  # text by what it means (``path``, ``id``, ``sex`` ...), for the columns that the table has
    marks: dict[str, str]  # text in the column of each finding
    words: list[str]  # the words in the column of labels

    @property
    def id(self) -> str:
        """The film's name: its own column, else its path without suffix."""
        return self.cells.get("id") or without_suffix(self.cells["path"])

    @property
    def findings(self) -> list[str]:
        """The findings in the column of labels, without the words for no finding."""
        return [word for word in self.words if slug(word) not in _NO_FINDING]


@source(
    "table",
    help="Any CSV file; options name its columns.",
    example="table films.csv --path file --labels findings --patient pid --out data/mine",
    test=0.2,
    file="CSV file with one row per film.",
)
def read_table(
    table: Path,
    *,
    path: Annotated[str, Option("Column with the film's path.")],
    concepts: Annotated[str, Option("Columns with one finding each, yes or no; separated by commas.")] = "",
    labels: Annotated[str | None, Option("Instead: the column that lists the findings of a film.")] = None,
    separator: Annotated[str, Option("Separator of the findings in --labels.")] = "|",
    id_column: Annotated[str | None, Option("Column with the film's name.", "--id")] = None,
    class_column: Annotated[str | None, Option("Column with the class.", "--class")] = None,
    patient: Annotated[str | None, Option("Column with the patient's ID.")] = None,
    sex: Annotated[str | None, Option("Column with the sex.")] = None,
    age: Annotated[str | None, Option("Column with the age in years.")] = None,
    view: Annotated[str | None, Option("Column with the view, PA or AP.")] = None,
    split: Annotated[str | None, Option("Column with train, val or test; val counts as train.")] = None,
    films: Annotated[Path | None, Option("Folder that the paths are relative to. (default: that of the CSV)")] = None,
    boxes: Annotated[Path | None, Option("CSV file with one row per box.", file=True)] = None,
    box_film: Annotated[str, Option("Column of --boxes with the name or path of the film.")] = "film",
    box_concept: Annotated[str, Option("Column of --boxes with the finding.")] = "concept",
    box_edges: Annotated[str, Option("Four columns of --boxes with the edges, in film pixels.")] = "x1,y1,x2,y2",
    box_sized: Annotated[bool, Option("The columns of --box-edges are x, y, width, height.", "--box-sized")] = False,
    vocabulary: Annotated[str | None, Option("Use the concepts of tbx11k, nih or vindr.")] = None,
    track: Track = quietly,
) -> Draft:
    """Read the films that a CSV names; paths in it are relative to ``films``, or to the CSV's folder."""
    finding_columns, edges = _names(concepts), _names(box_edges)
    if bool(finding_columns) == (labels is not None):
        raise SourceError("Name either --concepts (a column each) or --labels (one column that lists them).")
    if not separator:
        raise SourceError("--separator cannot be empty.")
    if boxes is not None and len(edges) != 4:
        raise UserError(f"--box-edges takes four column names parted by commas; got {box_edges!r}.")
    columns = {
        "path": path, "labels": labels, "id": id_column, "class": class_column, "patient": patient, "sex": sex,
        "age": age, "view": view, "split": split,
    }  # fmt: skip
    rows = []
    for cells in named_rows(table, [*filter(None, columns.values()), *finding_columns]):
        known = {meaning: cells[column].strip() for meaning, column in columns.items() if column is not None}
        marks = {column: cells[column].strip().lower() for column in finding_columns}
        words = [word.strip() for word in known.get("labels", "").split(separator)]
        rows.append(Row(known, marks, [word for word in words if word]))
    vocabulary_of_table = _concepts(rows, finding_columns, vocabulary)
    draft = Draft(table.stem, "table", films or table.parent, _classes(rows, class_column), vocabulary_of_table)
    draft.used(table)
    if patient is None:
        draft.notes.append("no column for patients was named: every film counts as a patient of its own")
    for row in track(rows, "reading films", len(rows)):
        _add_film(draft, row)
    if boxes is not None:
        make = Box.from_corner_and_size if box_sized else Box
        _add_boxes(draft, boxes, (box_film, box_concept, *edges), make)
    return draft


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _concepts(rows: list[Row], columns: tuple[str, ...], vocabulary: str | None) -> ConceptSet:
    names = columns or tuple(sorted({finding for row in rows for finding in row.findings}))
    if vocabulary is None:
        by_slug = {slug(name): name for name in reversed(names)}  # spellings that differ by case are one finding
        return ConceptSet(tuple(Concept.named(by_slug[key]) for key in dict.fromkeys(map(slug, names))))
    concepts = ConceptSet.built_in(vocabulary)
    for name in columns:
        if concepts.published(name) is None:
            raise SourceError(f"Column {name!r} is no concept of the vocabulary {vocabulary!r}.")
    return concepts


def _classes(rows: list[Row], column: str | None) -> tuple[str, ...]:
    if column is None:
        return "no_finding", "finding"
    classes = sorted({slug(row.cells["class"]) for row in rows if row.cells["class"]})
    if len(classes) < 2:
        raise SourceError(f"Column {column!r} names {len(classes)} class; it takes at least two.")
    return tuple(classes)


def _add_film(draft: Draft, row: Row) -> None:
    path = row.cells["path"]
    if not path or not (draft.folder / path).is_file():
        draft.complaints.add("listed films missing", path or f"(no path) {row.id}")
        return
    size, labels = draft.size_of(path), _labels(draft, row)
    class_name = None if labels is None else _class(draft, row, labels)
    split = _SPLITS.get(row.cells["split"].lower()) if "split" in row.cells else "train"
    if split is None:
        draft.complaints.add("films in an unknown split", f"{row.id} ({row.cells['split'].lower()!r})")
    if size is None or labels is None or class_name is None or split is None:
        return
    sex = row.cells.get("sex", "").lower()
    if sex and sex not in _SEXES:
        draft.complaints.add("films with an unknown sex", f"{row.id} ({sex!r})")
    person = (_SEXES.get(sex, ""), age_in_years(row.cells.get("age", "")), row.cells.get("view", "").upper())
    draft.films.append(
        FilmRecord(row.id, path, class_name, row.cells.get("patient") or row.id, size, labels, split, *person)
    )


def _labels(draft: Draft, row: Row) -> dict[str, bool | None] | None:
    """The labels of a film; None where they make no sense."""
    labels: dict[str, bool | None] = dict.fromkeys(draft.concepts.names)
    for column, mark in row.marks.items():
        concept = draft.concepts.published(column)
        if concept is None or mark not in _YES | _NO | _UNKNOWN:
            draft.complaints.add("marks that are neither yes, no nor unknown", f"{column}={mark!r} on {row.id}")
            return None
        labels[concept] = None if mark in _UNKNOWN else mark in _YES
    if row.marks or not row.cells["labels"]:
        return labels  # an empty cell is not known, rather than no finding
    present = {draft.concepts.published(finding) for finding in row.findings}
    if None in present or (present and len(row.findings) < len(row.words)):
        draft.complaints.add("films with an unknown or contradictory label", f"{row.id} ({row.cells['labels']})")
        return None
    return {name: name in present for name in labels}


def _class(draft: Draft, row: Row, labels: dict[str, bool | None]) -> str | None:
    if "class" in row.cells:
        class_name = slug(row.cells["class"]) if row.cells["class"] else None
    elif any(labels.values()):
        class_name = "finding"
    else:
        class_name = "no_finding" if any(label is False for label in labels.values()) else None
    if class_name is None:
        draft.complaints.add(
            "films of which neither class nor findings are known (write 'none' for no finding)", row.id
        )
    return class_name


def _add_boxes(draft: Draft, path: Path, columns: tuple[str, ...], make: Callable[..., Box]) -> None:
    """Add the boxes; a finding that was not known is present where there is a box of it."""
    films = {key: film for film in draft.films for key in (film.id, film.path, without_suffix(film.path))}
    for row in named_rows(draft.used(path), columns):
        name, finding, *edges = (row[column] for column in columns)
        film = films.get(name) or films.get(without_suffix(name))
        if film is None:
            draft.complaints.add("boxes of an unknown film", name)
            continue
        x1, y1, x2, y2 = map(number, edges)
        draft.draw(film, finding, box_on_film(make, (x1, y1, x2, y2), film.size, film.size))
    drawn = {(box.film, box.concept) for box in draft.boxes}
    draft.films = [
        replace(film, labels={name: (film.id, name) in drawn or label for name, label in film.labels.items()})
        for film in draft.films
    ]
