"""A data set while it is being prepared: reading label files, films, boxes, and everything that is wrong with them."""

import csv
import gzip
import io
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from medgrape.concepts import ConceptSet
from medgrape.datasets.dataset import FILM_COLUMNS, Dataset, DrawnBox, FilmRecord, Source, SplitRule, split_films
from medgrape.errors import UserError, nearest
from medgrape.files import sha256, whole_folder
from medgrape.films.film import FilmError
from medgrape.films.reading import upright_size
from medgrape.geometry import Box, FilmSize, GeometryError

FILM_SUFFIXES = (".png", ".jpg", ".jpeg", ".dcm", ".dicom")
NO_PATIENTS = "the published files name no patients: every film counts as a patient of its own"
SLACK = 1.0  # pixels by which a published box may reach past its film before that counts as a contradiction
_EXAMPLES = 3


class SourceError(UserError):
    """A folder or file that is not what it should be."""


def required(folder: Path, what: str, *names: str) -> Path:
    """Return the first of several spellings of a file that exists; the data set ``what`` needs one of them."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise SourceError(f"{what} needs {folder / names[0]}, which is not there; is this the right folder?")


def read_text(path: Path) -> str:
    """Return a label file's text, gzipped or not."""
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise SourceError(f"{path} cannot be read: {error}.") from error


def plain_rows(path: Path) -> Iterator[list[str]]:
    """Yield the rows of a CSV file that are not empty."""
    try:
        yield from (row for row in csv.reader(io.StringIO(read_text(path), newline="")) if row)
    except csv.Error as error:
        raise SourceError(f"{path} is no CSV file: {error}.") from error


def named_rows(path: Path, required: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield a CSV file's rows by column; a cell that a short row lacks is empty."""
    rows = plain_rows(path)
    names = next(rows, [])
    repeated = [name for name, count in Counter(names).items() if count > 1 and name]
    if repeated:
        raise SourceError(f"{path} has two columns {repeated[0]!r}; rename one.")
    for column in required:
        if column not in names:
            raise SourceError(f"{path} has no column {column!r}{nearest(column, names)}.")
    for row in rows:
        yield dict.fromkeys(names, "") | dict(zip(names, row, strict=False))


def encodable(value: object) -> str:
    """Return a value as text that UTF-8 can encode: half a surrogate pair, which JSON allows, becomes its code."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def without_suffix(path: str) -> str:
    """Return a path without its suffix: tools and mirrors re-encode films but keep their names."""
    pure = PurePosixPath(path)
    return pure.with_suffix("").as_posix() if pure.name else path


def number(text: str) -> float:
    """Return the number in a cell; NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def age_in_years(text: str, oldest: int = 120) -> int | None:
    """Return ``58``, ``058Y`` or ``58.0`` as years; None for months, days and impossible ages."""
    digits = text.strip().removesuffix("Y").removesuffix(".0")
    return int(digits) if digits.isdecimal() and int(digits) <= oldest else None


class IncompleteSourceError(SourceError):
    """A source with something missing or contradictory, without ``--allow-missing``."""


class Complaints(defaultdict[str, list[str]]):
    """What is missing or contradictory: a list of examples for each kind."""

    def __init__(self) -> None:
        super().__init__(list)

    def add(self, kind: str, example: str) -> None:
        """Add an example of a kind."""
        self[kind].append(example)

    def join(self, others: "Complaints") -> None:
        """Add all complaints of another list."""
        for kind, examples in others.items():
            self[kind] += examples

    def lines(self) -> tuple[str, ...]:
        """Return one line for each kind, with their number and the first examples."""
        lines = []
        for kind, examples in self.items():
            more = f" and {len(examples) - _EXAMPLES:,} more" if len(examples) > _EXAMPLES else ""
            lines.append(f"{len(examples):,} {kind}: {', '.join(examples[:_EXAMPLES])}{more}")
        return tuple(lines)

    def refuse(self, origin: Path, *, allow_missing: bool) -> None:
        """Raise all complaints about ``origin`` as one error, unless the user goes on without what is missing."""
        if self and not allow_missing:
            complaints = "; ".join(self.lines())
            raise IncompleteSourceError(f"{origin}: {complaints}. To go on without these, add --allow-missing.")


@dataclass
class Draft:
    """Films and boxes as a source reads them, before they are checked, split and written."""

    name: str
    kind: str
    folder: Path
    classes: tuple[str, ...]
    concepts: ConceptSet
    films: list[FilmRecord] = field(default_factory=list)
    boxes: list[DrawnBox] = field(default_factory=list)
    checksums: dict[str, str] = field(default_factory=dict)
    complaints: Complaints = field(default_factory=Complaints)
    notes: list[str] = field(default_factory=list)  # what users should know although nothing is wrong
    turned: set[str] = field(default_factory=set)  # paths of films that are turned upright when they are read
    doubtful: set[tuple[str, str]] = field(default_factory=set)  # film and concept of refused boxes: label not known

    def used(self, path: Path) -> Path:
        """Record the checksum of a label file, and return its path."""
        inside = path.is_relative_to(self.folder)
        self.checksums[path.relative_to(self.folder).as_posix() if inside else path.name] = sha256(path)
        return path

    def size_of_listed(self, path: str | None, listed: str) -> FilmSize | None:
        """Like ``size_of`` for a film that a label file names ``listed``; complain also if it is missing."""
        if not path or not (self.folder / path).is_file():
            self.complaints.add("listed films missing", listed)
            return None
        return self.size_of(path)

    def size_of(self, path: str) -> FilmSize | None:
        """Return the upright size of a film of the folder; complain and return None if it cannot be read."""
        try:
            upright = upright_size(self.folder / path)
        except FilmError as refusal:
            self.complaints.add("films unreadable", str(refusal))
            return None
        if upright.turned:
            self.turned.add(path)
        return upright.size

    def draw(self, film: FilmRecord, label: str, box: Box | None, size_in_tool: FilmSize | None = None) -> bool:
        """Add a published box, or complain about it; return whether it was added.

        ``size_in_tool`` is the film's size where the box was drawn, if it is known: a film of another shape is another
        film, or was cropped.
        """
        concept = self.concepts.published(label)
        if concept is None:
            complaint = "boxes of an unknown finding"
        elif box is None:
            complaint = "boxes without area or beyond their film"
        elif film.path in self.turned:
            complaint = "boxes on films that are stored on their side; whether the boxes were turned is not known"
        elif film.labels[concept] is False:
            complaint = "boxes of a finding that the labels deny"
        elif size_in_tool is not None and not size_in_tool.is_shaped_like(film.size):
            complaint = "boxes for which the tool saw a film of another shape"
        else:
            self.boxes.append(DrawnBox(film.id, concept, box))
            return True
        self.doubt(film, label, complaint)
        return False

    def doubt(self, film: FilmRecord, label: str, complaint: str) -> None:
        """Complain about a mark that cannot be used; its finding is then neither present nor absent."""
        self.complaints.add(complaint, f"{label} on {film.id}")
        self.doubtful.add((film.id, self.concepts.published(label) or ""))

    def label_by_boxes(self) -> None:
        """Label each film with the findings that it has boxes of; findings of refused boxes are not known."""
        present: dict[tuple[str, str], bool | None] = dict.fromkeys(self.doubtful)
        present |= dict.fromkeys(((box.film, box.concept) for box in self.boxes), True)
        self.films = [
            replace(film, labels={name: present.get((film.id, name), False) for name in self.concepts.names})
            for film in self.films
        ]


def finish(draft: Draft, out: Path, rule: SplitRule, *, allow_missing: bool) -> Dataset:
    """Check, split and write a draft; the data set appears complete in ``out`` or not at all."""
    if len(draft.concepts) == 0:
        raise SourceError(f"{draft.folder} names no finding, so there is nothing to learn to point at.")
    clash = sorted(set(draft.concepts.names) & set(FILM_COLUMNS))
    if clash:
        raise SourceError(f"A concept cannot be called {clash[0]!r}, like a column of films.csv; rename it.")
    counts = Counter(film.id for film in draft.films)
    for name in (name for name, count in counts.items() if count > 1):  # their boxes may belong to either
        draft.complaints.add("films listed twice", name)
    draft.films = [film for film in draft.films if counts[film.id] == 1]
    films = split_films(draft.films, rule)
    moved = Counter((old.split, new.split) for old, new in zip(draft.films, films, strict=True))["train", "test"]
    if moved and any(film.split == "test" for film in draft.films):
        draft.complaints.add("films moved to test, where their patient is", str(moved))
    draft.complaints.refuse(draft.folder, allow_missing=allow_missing)
    if not films:
        raise SourceError(f"{draft.folder} holds no film of {draft.name}; is it the right folder?")
    notes = (*draft.complaints.lines(), *draft.notes, str(rule))
    source = Source(draft.kind, str(draft.folder.resolve()), draft.checksums, notes)
    ids = {film.id for film in films}
    boxes = tuple(box for box in draft.boxes if box.film in ids)
    with whole_folder(out) as folder:
        dataset = Dataset(draft.name, draft.classes, draft.concepts, draft.folder, films, boxes, source)
        dataset.save(folder)
    return dataset


def box_on_film(
    make: Callable[[float, float, float, float], Box],
    numbers: tuple[float, float, float, float],
    published: FilmSize,
    film: FilmSize,
) -> Box | None:
    """Return a published box in pixels of the film at hand, clipped to it; None where it makes no sense.

    ``make`` is ``Box`` for two corners and ``Box.from_corner_and_size`` for a corner and a size.
    """
    try:
        box = make(*numbers)
    except GeometryError:
        return None
    return box.moved(published, film).clipped(film) if box.within(published, slack=SLACK) else None


def films_by_stem(folders: Iterable[Path], root: Path, complaints: Complaints) -> dict[str, str]:
    """Return the film files below some folders by name without suffix: mirrors re-encode films but keep their names.

    A name that several files have is left out.
    """
    paths = defaultdict[str, list[str]](list)
    for path in film_files(folders):
        paths[path.stem].append(path.relative_to(root).as_posix())
    for first, *others in paths.values():
        for other in others:
            complaints.add("film files of one name", f"{first} and {other}")
    return {stem: same_name[0] for stem, same_name in paths.items() if len(same_name) == 1}


def film_files(folders: Iterable[Path]) -> list[Path]:
    """Return every file below some folders that has the suffix of a film, in order."""
    files = (path for folder in folders for path in sorted(folder.rglob("*")))
    return [path for path in files if path.suffix.lower() in FILM_SUFFIXES and path.is_file()]
