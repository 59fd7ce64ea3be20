"""A prepared data set: three text files that list its films, boxes and labels; and the split of films by patient.

``dataset.toml`` has its name, classes, concepts and source; ``films.csv`` has a row for each film, ``boxes.csv`` a row
for each box. The films themselves stay where they are.
"""

import csv
import hashlib
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from jaxtyping import Float

from medgrape.concepts import ConceptSet
from medgrape.errors import UserError, nearest
from medgrape.files import sha256, whole_file, write_text
from medgrape.geometry import Box, FilmSize, GeometryError

SPLITS = ("train", "val", "test")
FILM_COLUMNS = ("id", "path", "split", "class", "patient", "sex", "age", "view", "width", "height")
_BOX_COLUMNS = ("film", "concept", "x1", "y1", "x2", "y2")
_LABELS = {"1": True, "0": False, "": None}
UNTESTED = "untested"  # in place of a split: a film to train or validate on, but never to test on


class DatasetError(UserError):
    """A data set that cannot be read or written."""


class VocabularyError(UserError):
    """A data set with concepts that the model does not have."""


@dataclass(frozen=True)
class FilmRecord:
    """One film and its labels."""

    id: str
    path: str  # relative to the data set's root; empty where only labels are known
    class_name: str
    patient: str
    size: FilmSize  # size of the upright film: the frame of its boxes
    labels: Mapping[str, bool | None]  # concept to present (True), absent (False) or not known (None)
    split: str = "train"
    sex: str = ""
    age: int | None = None
    view: str = ""


@dataclass(frozen=True)
class DrawnBox:
    """A box that somebody drew around a finding, in pixels of the original film."""

    film: str
    concept: str
    box: Box


@dataclass(frozen=True)
class Source:
    """Where a data set came from."""

    kind: str
    folder: str
    checksums: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of every label file that was read
    notes: tuple[str, ...] = ()  # what was missing or contradictory when it was prepared, and how the splits were made


@dataclass(frozen=True)
class Dataset:
    """Films with labels and boxes."""

    name: str
    classes: tuple[str, ...]
    concepts: ConceptSet
    root: Path
    films: tuple[FilmRecord, ...]
    boxes: tuple[DrawnBox, ...]
    source: Source

    def film_path(self, film: FilmRecord) -> Path:
        """Return the path of the film's file."""
        return self.root / film.path

    @cached_property
    def pictured(self) -> tuple[FilmRecord, ...]:
        """The films that have a file, not only labels; caches of this data set keep their order."""
        return tuple(film for film in self.films if film.path)

    @cached_property
    def boxes_by_film(self) -> dict[str, tuple[DrawnBox, ...]]:
        """All boxes of each film that has any."""
        by_film = defaultdict[str, list[DrawnBox]](list)
        for box in self.boxes:
            by_film[box.film].append(box)
        return {film: tuple(boxes) for film, boxes in by_film.items()}

    def in_split(self, *splits: str) -> tuple[FilmRecord, ...]:
        """Return the films of one or more splits."""
        return tuple(film for film in self.films if film.split in splits)

    def label_matrix(self, films: Iterable[FilmRecord]) -> Float[np.ndarray, "films concepts"]:
        """Return the labels as 1 for present, 0 for absent and NaN for not known."""
        rows = [[film.labels[name] for name in self.concepts.names] for film in films]
        return np.array(rows, dtype=np.float64).reshape(-1, len(self.concepts))  # None becomes NaN

    def save(self, folder: Path) -> None:
        """Write the three files into ``folder``, each completely or not at all."""
        root = self.root.resolve()
        inside = root.is_relative_to(folder.resolve())
        header = {
            "name": self.name,
            "root": root.relative_to(folder.resolve()).as_posix() if inside else str(root),
            "classes": list(self.classes),
            "source": asdict(self.source),
            "concepts": self.concepts.to_tables(),
        }
        marks = {True: 1, False: 0, None: ""}
        films = (
            (
                film.id, film.path, film.split, film.class_name, film.patient, film.sex,
                "" if film.age is None else film.age, film.view, film.size.width, film.size.height,
                *(marks[film.labels[name]] for name in self.concepts.names),
            )
            for film in self.films
        )  # fmt: skip
        boxes = ((box.film, box.concept, *(f"{edge:.10g}" for edge in box.box.corners)) for box in self.boxes)
        _write_csv(folder / "films.csv", (*FILM_COLUMNS, *self.concepts.names), films)
        _write_csv(folder / "boxes.csv", _BOX_COLUMNS, boxes)
        write_text(folder / "dataset.toml", tomli_w.dumps(header))

    @classmethod
    def load(cls, folder: Path) -> "Dataset":
        """Load the data set in ``folder``; an error names the file and line."""
        header = _header(folder)
        try:
            concepts = ConceptSet.from_tables(header["concepts"])
            table = header["source"]
            root, classes = folder / header["root"], tuple(header["classes"])
            source = Source(table["kind"], table["folder"], table["checksums"], tuple(table["notes"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise DatasetError(
                f"{folder / 'dataset.toml'} lacks something, or has it in another form: {error}."
            ) from None
        films = tuple(_read_films(folder / "films.csv", concepts))
        boxes = tuple(_read_boxes(folder / "boxes.csv"))
        return cls(str(header["name"]), classes, concepts, root, films, boxes, source)


def checksum(folder: Path) -> str:
    """Return one SHA-256 for the three files of a data set, which runs record."""
    parts = [sha256(folder / name) for name in ("dataset.toml", "films.csv", "boxes.csv")]
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def film_paths(folder: Path) -> Iterator[Path]:
    """Yield the paths of the films of the data set in ``folder``, without reading labels or holding rows in memory."""
    root = folder / str(_header(folder).get("root", "."))
    yield from (root / row["path"] for _, row in _rows(folder / "films.csv", ("path",)) if row["path"])


def _header(folder: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((folder / "dataset.toml").read_text("utf-8"))
    except FileNotFoundError:
        raise DatasetError(f"{folder} is no prepared data set; make one with: medgrape data prepare.") from None
    except (OSError, ValueError) as error:
        raise DatasetError(f"{folder / 'dataset.toml'} cannot be read: {error}.") from error


def _write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    with whole_file(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def _rows(path: Path, required: Iterable[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each row with its file and line, for error messages."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            for column in required:
                if column not in (reader.fieldnames or ()):
                    raise DatasetError(f"{path} has no column {column!r}{nearest(column, reader.fieldnames or ())}.")
            for row in reader:
                yield f"{path}, line {reader.line_num}", row
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{path} is no CSV file in UTF-8: {error}.") from error


def _read_films(path: Path, concepts: ConceptSet) -> Iterator[FilmRecord]:
    ids: set[str] = set()
    for where, row in _rows(path, (*FILM_COLUMNS, *concepts.names)):
        if row["id"] in ids:
            raise DatasetError(f"{where}: film {row['id']!r} is there twice.")
        ids.add(row["id"])
        if row["split"] not in SPLITS:
            raise DatasetError(f"{where}: split is one of {', '.join(SPLITS)}, not {row['split']!r}.")
        try:
            yield FilmRecord(
                row["id"], row["path"], row["class"], row["patient"],
                FilmSize(int(row["width"]), int(row["height"])),
                {name: _LABELS[row[name]] for name in concepts.names},
                row["split"], row["sex"], int(row["age"]) if row["age"] else None, row["view"],
            )  # fmt: skip
        except (KeyError, ValueError, TypeError) as error:
            raise DatasetError(f"{where}: a value does not fit its column ({error}).") from error


def _read_boxes(path: Path) -> Iterator[DrawnBox]:
    for where, row in _rows(path, _BOX_COLUMNS):
        try:
            corners = (float(row[edge]) for edge in ("x1", "y1", "x2", "y2"))
            yield DrawnBox(row["film"], row["concept"], Box(*corners))
        except (GeometryError, TypeError, ValueError) as error:
            raise DatasetError(f"{where}: {error}") from error


def check_split(split: str, error: type[UserError] = UserError) -> None:
    """Raise the error unless the split is known."""
    if split not in SPLITS:
        raise error(f"A split is one of {', '.join(SPLITS)}, not {split!r}.")


def check_classes(classes: Sequence[str], dataset: Dataset, error: type[UserError] = UserError) -> None:
    """Raise the error unless the data set has the classes of the model, in the same order."""
    if dataset.classes != classes:
        raise error(
            f"The model's classes ({', '.join(classes)}) differ from the data set's ({', '.join(dataset.classes)}). "
            "Use a data set with the same classes in the same order."
        )


def check_concepts(known: ConceptSet, dataset: Dataset) -> None:
    """Raise a ``VocabularyError`` if the data set has concepts that the model lacks; it may have fewer."""
    unknown = [name for name in dataset.concepts.names if name not in known]
    if unknown:
        raise VocabularyError(
            f"The model knows {', '.join(known.names)}; the data set also has {', '.join(unknown)}: "
            "use one whose concepts the model has learnt."
        )


@dataclass(frozen=True)
class SplitRule:
    """How films are split. A published test list is always kept; validation is always cut from training."""

    validation: float = 0.15  # share of the patients who are not in the test split
    test: float = 0.0  # share of patients to test on where no published test film is there
    seed: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.validation < 1 and 0 <= self.test < 1):
            raise UserError("The shares for validation and test must be between 0 and 1 and leave some for training.")

    def __str__(self) -> str:
        cut = f"{self.test:g} to test, of the rest " if self.test else ""
        return f"patients split with seed {self.seed}: {cut}{self.validation:g} to validation"


def split_films(films: Sequence[FilmRecord], rule: SplitRule) -> tuple[FilmRecord, ...]:
    """Return the films with their split: published test films stay test, the rest is split by patient and stratum.

    Patients with an ``UNTESTED`` film are never cut into the test split, but may be used for validation.
    """
    published = {film.patient for film in films if film.split == "test"}

    def rank(patient: str) -> bytes:  # depends on seed and patient alone, not on the other patients or their order
        return hashlib.sha256(f"{rule.seed}/{patient}".encode()).digest()

    strata = _strata(film for film in films if film.patient not in published)
    queue = [patient for stratum in strata for patient in sorted(stratum, key=rank)]
    untested = {film.patient for film in films if film.split == UNTESTED}
    testable = [patient for patient in queue if patient not in untested]
    test = published | _evenly_spaced(testable, 0.0 if published else rule.test)
    validation = _evenly_spaced([patient for patient in queue if patient not in test], rule.validation)
    splits = dict.fromkeys(test, "test") | dict.fromkeys(validation, "val")
    return tuple(replace(film, split=splits.get(film.patient, "train")) for film in films)


def _evenly_spaced(queue: Sequence[str], share: float) -> set[str]:
    """A share of the patients at even distances, so that every stratum contributes, however small it is."""
    return {
        patient
        for place, patient in enumerate(queue)
        if int((place + 1) * share + 0.5) > int(place * share + 0.5)
    }  # fmt: skip


def _strata(films: Iterable[FilmRecord]) -> list[list[str]]:
    """Groups of patients with the same class on most of their films and the same rarest finding."""
    classes: dict[str, Counter[str]] = defaultdict(Counter)
    findings: dict[str, set[str]] = defaultdict(set)
    for film in films:
        classes[film.patient][film.class_name] += 1
        findings[film.patient] |= {name for name, present in film.labels.items() if present}
    frequency = Counter(name for names in findings.values() for name in names)
    strata: dict[tuple[str, str], list[str]] = defaultdict(list)
    for patient, counts in classes.items():
        most = min(counts, key=lambda name: (-counts[name], name))
        rarest = min(findings[patient], key=lambda name: (frequency[name], name), default="")
        strata[most, rarest].append(patient)
    return [strata[key] for key in sorted(strata)]
