"""A CSV of any shape, by naming its columns."""

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
_SPLITS = {
    "test": "test", "testing": "test", "holdout": "test",
    "train": "train", "training": "train", "val": "train", "valid": "train", "validation": "train", "dev": "train",
}  # fmt: skip
"""Values of a split column; validation is cut from training anew, so a published validation split is training here."""
_SEXES = {"m": "M", "male": "M", "f": "F", "female": "F", "o": "O", "other": "O"}
_NO_FINDING = {"no_finding", "no_findings", "normal", "none"}


@dataclass(frozen=True)
class FilmColumns:
    """The column of the film table for each property; None where the table has no such column."""

    path: str
    concepts: tuple[str, ...] = ()
    """One column for each concept, with yes or no in it."""
    labels: str | None = None
    """Or one column that lists the concepts present, separated by ``separator``."""
    separator: str = "|"
    id: str | None = None
    class_name: str | None = None
    patient: str | None = None
    sex: str | None = None
    age: str | None = None
    view: str | None = None
    split: str | None = None

    def __post_init__(self) -> None:
        if bool(self.concepts) == (self.labels is not None):
            raise SourceError("Name either --concepts (a column each) or --labels (one column that lists them).")
        if not self.separator:
            raise SourceError("--separator cannot be empty.")

    @property
    def required(self) -> tuple[str, ...]:
        """Every column that must be there."""
        optional = (
            self.labels, self.id, self.class_name, self.patient, self.sex, self.age, self.view, self.split
        )  # fmt: skip
        return (self.path, *(name for name in optional if name is not None), *self.concepts)


@dataclass(frozen=True)
class BoxColumns:
    """The columns of the box table."""

    film: str
    concept: str
    edges: tuple[str, str, str, str]
    """x1, y1, x2, y2, or, with ``sized``, x, y, width, height."""
    sized: bool = False


@dataclass(frozen=True)
class Row:
    """One row of the film table."""

    cells: dict[str, str]
    columns: FilmColumns

    def cell(self, column: str | None) -> str:
        """Return the text in a column; empty where the table has no such column."""
        return "" if column is None else self.cells[column].strip()

    @property
    def path(self) -> str:
        """Path of the film."""
        return self.cell(self.columns.path)

    @property
    def id(self) -> str:
        """The film's name: its own column, else its path without suffix."""
        return self.cell(self.columns.id) or without_suffix(self.path)

    @property
    def _words(self) -> list[str]:
        words = (word.strip() for word in self.cell(self.columns.labels).split(self.columns.separator))
        return [word for word in words if word]

    @property
    def findings(self) -> list[str]:
        """The findings in the labels column, without the words for no finding."""
        return [word for word in self._words if slug(word) not in _NO_FINDING]

    @property
    def says_no_finding(self) -> bool:
        """Whether a word for no finding is in the labels column."""
        return len(self.findings) < len(self._words)


def read_table(
    table: Path,
    columns: FilmColumns,
    *,
    films: Path | None = None,
    boxes: tuple[Path, BoxColumns] | None = None,
    vocabulary: str | None = None,
    track: Track = quietly,
) -> Draft:
    """Read the films that a CSV names; paths in it are relative to ``films``, or to the CSV's folder."""
    rows = [Row(cells, columns) for cells in named_rows(table, columns.required)]
    concepts = _concepts(rows, columns, vocabulary)
    draft = Draft(table.stem, "table", films or table.parent, _classes(rows, columns), concepts)
    draft.used(table)
    if columns.patient is None:
        draft.notes.append("no column for patients was named: every film counts as a patient of its own")
    for row in track(rows, "reading films", len(rows)):
        _add_film(draft, row)
    if boxes is not None:
        _add_boxes(draft, *boxes)
    return draft


@source(
    "table",
    help="A CSV of any shape, by naming its columns.",
    example="table films.csv --path file --labels findings --patient pid --out data/mine",
    test=0.2,
    file="A CSV with a row for each film.",
)
def _read_named_columns(
    table: Path,
    *,
    path: Annotated[str, Option("Column with the film's path.")],
    concepts: Annotated[str, Option("Columns with one finding each, yes or no, parted by commas.")] = "",
    labels: Annotated[str | None, Option("Or: the column that lists the findings present.")] = None,
    separator: Annotated[str, Option("What parts the findings in --labels.")] = "|",
    id_column: Annotated[str | None, Option("Column with the film's name.", "--id")] = None,
    class_column: Annotated[str | None, Option("Column with the class.", "--class")] = None,
    patient: Annotated[str | None, Option("Column with the patient.")] = None,
    sex: Annotated[str | None, Option("Column with the sex.")] = None,
    age: Annotated[str | None, Option("Column with the age in years.")] = None,
    view: Annotated[str | None, Option("Column with the view, PA or AP.")] = None,
    split: Annotated[str | None, Option("Column that says 'test' for test films.")] = None,
    films: Annotated[Path | None, Option("Folder that paths start from. [default: the CSV's]")] = None,
    boxes: Annotated[Path | None, Option("A CSV with a row for each box.", file=True)] = None,
    box_film: Annotated[str, Option("Its column with the film's name or path.")] = "film",
    box_concept: Annotated[str, Option("Its column with the finding.")] = "concept",
    box_edges: Annotated[str, Option("Its four columns with the edges, in film pixels.")] = "x1,y1,x2,y2",
    box_sized: Annotated[bool, Option("The edges are x, y, width, height.", "--box-sized")] = False,
    vocabulary: Annotated[str | None, Option("Take concepts from tbx11k, nih or vindr.")] = None,
    track: Track = quietly,
) -> Draft:
    """``read_table`` with the options of the command line."""
    columns = FilmColumns(
        path, _names(concepts), labels, separator, id_column, class_column, patient, sex, age, view, split
    )
    drawn = None
    if boxes is not None:
        edges = _names(box_edges)
        if len(edges) != 4:
            raise UserError(f"--box-edges takes four column names parted by commas; got {box_edges!r}.")
        drawn = boxes, BoxColumns(box_film, box_concept, (edges[0], edges[1], edges[2], edges[3]), box_sized)
    return read_table(table, columns, films=films, boxes=drawn, vocabulary=vocabulary, track=track)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _concepts(rows: list[Row], columns: FilmColumns, vocabulary: str | None) -> ConceptSet:
    names = columns.concepts or tuple(sorted({finding for row in rows for finding in row.findings}))
    if vocabulary is None:
        by_slug = {slug(name): name for name in reversed(names)}  # spellings that differ by case are one finding
        return ConceptSet(tuple(Concept.named(by_slug[key]) for key in dict.fromkeys(map(slug, names))))
    concepts = ConceptSet.built_in(vocabulary)
    for name in columns.concepts:
        if concepts.published(name) is None:
            raise SourceError(f"Column {name!r} is no concept of the vocabulary {vocabulary!r}.")
    return concepts


def _classes(rows: list[Row], columns: FilmColumns) -> tuple[str, ...]:
    if columns.class_name is None:
        return "no_finding", "finding"
    classes = sorted({slug(row.cell(columns.class_name)) for row in rows if row.cell(columns.class_name)})
    if len(classes) < 2:
        raise SourceError(f"Column {columns.class_name!r} names {len(classes)} class; it takes at least two.")
    return tuple(classes)


def _add_film(draft: Draft, row: Row) -> None:
    if not row.path or not (draft.folder / row.path).is_file():
        draft.complaints.add("listed films missing", row.path or f"(no path) {row.id}")
        return
    size, labels = draft.size_of(row.path), _labels(draft, row)
    class_name, split = _class(draft, row, labels), _split(draft, row)
    if size is None or labels is None or class_name is None or split is None:
        return
    sex = row.cell(row.columns.sex).lower()
    if sex and sex not in _SEXES:
        draft.complaints.add("films with an unknown sex", f"{row.id} ({sex!r})")
    patient, age = row.cell(row.columns.patient) or row.id, age_in_years(row.cell(row.columns.age))
    view = row.cell(row.columns.view).upper()
    draft.films.append(
        FilmRecord(row.id, row.path, class_name, patient, size, labels, split, _SEXES.get(sex, ""), age, view)
    )


def _labels(draft: Draft, row: Row) -> dict[str, bool | None] | None:
    """The labels of a film; None where they make no sense."""
    if row.columns.concepts:
        return _labels_by_column(draft, row)
    if not row.cell(row.columns.labels):
        return dict.fromkeys(draft.concepts.names)  # an empty cell is not known, rather than no finding
    present = {draft.concepts.published(finding) for finding in row.findings}
    if None in present or (present and row.says_no_finding):
        draft.complaints.add(
            "films with an unknown or contradictory label", f"{row.id} ({row.cell(row.columns.labels)})"
        )
        return None
    return {name: name in present for name in draft.concepts.names}


def _labels_by_column(draft: Draft, row: Row) -> dict[str, bool | None] | None:
    labels: dict[str, bool | None] = dict.fromkeys(draft.concepts.names)
    for column in row.columns.concepts:
        concept, mark = draft.concepts.published(column), row.cell(column).lower()
        if concept is None or mark not in _YES | _NO | _UNKNOWN:
            draft.complaints.add("marks that are neither yes, no nor unknown", f"{column}={mark!r} on {row.id}")
            return None
        labels[concept] = None if mark in _UNKNOWN else mark in _YES
    return labels


def _class(draft: Draft, row: Row, labels: dict[str, bool | None] | None) -> str | None:
    if labels is None:
        return None
    if row.columns.class_name is not None:
        cell = row.cell(row.columns.class_name)
        class_name = slug(cell) if cell else None
    elif any(labels.values()):
        class_name = "finding"
    else:
        class_name = "no_finding" if any(label is False for label in labels.values()) else None
    if class_name is None:
        draft.complaints.add(
            "films of which neither class nor findings are known (write 'none' for no finding)", row.id
        )
    return class_name


def _split(draft: Draft, row: Row) -> str | None:
    if row.columns.split is None:
        return "train"
    split = row.cell(row.columns.split).lower()
    if split not in _SPLITS:
        draft.complaints.add("films in an unknown split", f"{row.id} ({split!r})")
    return _SPLITS.get(split)


def _add_boxes(draft: Draft, path: Path, columns: BoxColumns) -> None:
    """Add the boxes; a finding that was not known is present where there is a box of it."""
    films = {key: film for film in draft.films for key in (film.id, film.path, without_suffix(film.path))}
    make = Box.from_corner_and_size if columns.sized else Box
    for row in named_rows(draft.used(path), (columns.film, columns.concept, *columns.edges)):
        film = films.get(row[columns.film]) or films.get(without_suffix(row[columns.film]))
        if film is None:
            draft.complaints.add("boxes of an unknown film", row[columns.film])
            continue
        first, second, third, fourth = (number(row[edge]) for edge in columns.edges)
        draft.draw(film, row[columns.concept], box_on_film(make, (first, second, third, fourth), film.size, film.size))
    drawn = {(box.film, box.concept) for box in draft.boxes}
    draft.films = [
        replace(film, labels={name: (film.id, name) in drawn or label for name, label in film.labels.items()})
        for film in draft.films
    ]
