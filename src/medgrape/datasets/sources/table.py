"""A CSV of any shape, by naming its columns."""

from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from medgrape.concepts import Concept, ConceptSet, slug
from medgrape.datasets.dataset import FilmRecord
from medgrape.datasets.draft import Draft, placed_box
from medgrape.datasets.label_files import SourceError, age_in_years, named_rows, number
from medgrape.geometry import Box
from medgrape.progress import Track, quietly

_YES, _NO = {"1", "1.0", "true", "yes", "y", "positive"}, {"0", "0.0", "false", "no", "n", "negative"}
_UNKNOWN = {"", "-1", "-1.0", "nan", "na", "uncertain", "unknown"}
_SPLITS = {
    "test": "test", "testing": "test", "holdout": "test",
    "train": "train", "training": "train", "val": "train", "valid": "train", "validation": "train", "dev": "train",
}  # fmt: skip
"""What a split column may say; validation is cut from training anew, so a published one is training here."""
_SEXES = {"m": "M", "male": "M", "f": "F", "female": "F", "o": "O", "other": "O"}
_NOTHING = {"no_finding", "no_findings", "normal", "none"}


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

    def __post_init__(self) -> None:
        if bool(self.concepts) == (self.labels is not None):
            raise SourceError("Name either --concepts (a column each) or --labels (one column that lists them).")
        if not self.separator:
            raise SourceError("--separator cannot be empty.")

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
        return "" if column is None else self.cells[column].strip()

    @property
    def path(self) -> str:
        """Where the film is."""
        return self.cell(self.columns.path)

    @property
    def id(self) -> str:
        """The film's name: its own column, else its path without suffix."""
        return self.cell(self.columns.id) or _bare(self.path)

    @property
    def _words(self) -> list[str]:
        words = (word.strip() for word in self.cell(self.columns.labels).split(self.columns.separator))
        return [word for word in words if word]

    @property
    def listed(self) -> list[str]:
        """The findings that a labels column lists, without the words for none."""
        return [word for word in self._words if slug(word) not in _NOTHING]

    @property
    def says_nothing_found(self) -> bool:
        """Whether a word for none is among them."""
        return len(self.listed) < len(self._words)


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
    rows = [Row(cells, columns) for cells in named_rows(table, columns.all_named())]
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


def _concepts(rows: list[Row], columns: FilmColumns, vocabulary: str | None) -> ConceptSet:
    names = columns.concepts or tuple(sorted({label for row in rows for label in row.listed}))
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
    columns = row.columns
    draft.films.append(
        FilmRecord(
            row.id,
            row.path,
            class_name,
            row.cell(columns.patient) or row.id,
            size,
            labels,
            split,
            _sex(draft, row),
            age_in_years(row.cell(columns.age)),
            row.cell(columns.view).upper(),
        )
    )


def _labels(draft: Draft, row: Row) -> dict[str, bool | None] | None:
    if row.columns.concepts:
        return _marked(draft, row)
    if not row.cell(row.columns.labels):
        return dict.fromkeys(draft.concepts.names)  # an empty cell says nothing, not "nothing found"
    present = {draft.concepts.published(label) for label in row.listed}
    if None in present or (present and row.says_nothing_found):
        draft.complaints.add(
            "films with an unknown or contradictory label", f"{row.id} ({row.cell(row.columns.labels)})"
        )
        return None
    return {name: name in present for name in draft.concepts.names}


def _marked(draft: Draft, row: Row) -> dict[str, bool | None] | None:
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
    if row.columns.class_name is None:
        if any(labels.values()):
            return "finding"
        told = "no_finding" if any(label is False for label in labels.values()) else ""
    else:
        told = slug(row.cell(row.columns.class_name)) if row.cell(row.columns.class_name) else ""
    if not told:
        draft.complaints.add(
            "films of which neither class nor findings are known (write 'none' for no finding)", row.id
        )
    return told or None


def _sex(draft: Draft, row: Row) -> str:
    told = row.cell(row.columns.sex).lower()
    if told and told not in _SEXES:
        draft.complaints.add("films with an unknown sex", f"{row.id} ({told!r})")
    return _SEXES.get(told, "")


def _split(draft: Draft, row: Row) -> str | None:
    if row.columns.split is None:
        return "train"
    told = row.cell(row.columns.split).lower()
    if told not in _SPLITS:
        draft.complaints.add("films in an unknown split", f"{row.id} ({told!r})")
    return _SPLITS.get(told)


def _add_boxes(draft: Draft, path: Path, columns: BoxColumns) -> None:
    films = {key: film for film in draft.films for key in (film.id, film.path, _bare(film.path))}
    make = Box.from_corner_and_size if columns.sized else Box
    for row in named_rows(draft.used(path), (columns.film, columns.concept, *columns.edges)):
        film = films.get(row[columns.film]) or films.get(_bare(row[columns.film]))
        if film is None:
            draft.complaints.add("boxes of an unknown film", row[columns.film])
            continue
        first, second, third, fourth = (number(row[edge]) for edge in columns.edges)
        draft.draw(film, row[columns.concept], placed_box(make, (first, second, third, fourth), film.size, film.size))
    _learn_from_boxes(draft)


def _learn_from_boxes(draft: Draft) -> None:
    """A finding that was not known is known to be there once somebody drew a box around it."""
    drawn = {(box.film, box.concept) for box in draft.boxes}
    draft.films = [
        replace(film, labels={name: True if (film.id, name) in drawn else told for name, told in film.labels.items()})
        for film in draft.films
    ]


def _bare(path: str) -> str:
    """A path without its suffix."""
    pure = PurePath(path)
    return pure.with_suffix("").as_posix() if pure.name else path
