"""What a source holds, before it is known whether that is good enough: films, boxes and everything that is wrong."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from medgrape.concepts import ConceptSet
from medgrape.datasets.dataset import FILM_COLUMNS, Dataset, DrawnBox, FilmRecord, Source
from medgrape.datasets.label_files import SourceError
from medgrape.datasets.splits import SplitRule, split_films
from medgrape.files import sha256, whole_folder
from medgrape.films.film import FilmError
from medgrape.films.reading import upright_size
from medgrape.geometry import Box, FilmSize, GeometryError

_EXAMPLES = 3


@dataclass
class Complaints:
    """What is missing or contradictory, gathered by kind with the first few examples."""

    found: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, example: str) -> None:
        """One more of a kind."""
        self.found.setdefault(kind, []).append(example)

    def join(self, others: "Complaints") -> None:
        """All of somebody else's, too."""
        for kind, examples in others.found.items():
            self.found.setdefault(kind, []).extend(examples)

    def __bool__(self) -> bool:
        return bool(self.found)

    def lines(self) -> tuple[str, ...]:
        """A line for each kind: how many, and which first."""
        return tuple(_line(kind, examples) for kind, examples in self.found.items())


def _line(kind: str, examples: Sequence[str]) -> str:
    more = f" and {len(examples) - _EXAMPLES:,} more" if len(examples) > _EXAMPLES else ""
    return f"{len(examples):,} {kind}: {', '.join(examples[:_EXAMPLES])}{more}"


FILM_SUFFIXES = (".png", ".jpg", ".jpeg", ".dcm", ".dicom")
OTHER_SHAPE = "boxes for which the tool saw a film of another shape"
SLACK = 1.0
"""Pixels by which a published box may reach past its film before that counts as a contradiction."""


class IncompleteSourceError(SourceError):
    """A source with something missing or contradictory, which nobody has allowed yet."""


@dataclass
class Draft:
    """A data set on its way from a published layout to our own."""

    name: str
    kind: str
    folder: Path
    classes: tuple[str, ...]
    concepts: ConceptSet
    films: list[FilmRecord] = field(default_factory=list)
    boxes: list[DrawnBox] = field(default_factory=list)
    checksums: dict[str, str] = field(default_factory=dict)
    complaints: Complaints = field(default_factory=Complaints)
    notes: list[str] = field(default_factory=list)
    """What is worth telling though nothing is wrong with it."""
    turned: set[str] = field(default_factory=set)
    """Paths of films that are turned upright when they are read."""
    doubtful: set[tuple[str, str]] = field(default_factory=set)
    """Film and concept of boxes that were refused: the finding is there or not, nobody knows."""

    def used(self, path: Path) -> Path:
        """A label file that is read, noted with its checksum."""
        inside = path.is_relative_to(self.folder)
        self.checksums[path.relative_to(self.folder).as_posix() if inside else path.name] = sha256(path)
        return path

    def size_of(self, path: str) -> FilmSize | None:
        """How large a film of the folder is; one that cannot be read becomes a complaint and None."""
        try:
            found = upright_size(self.folder / path)
        except FilmError as refusal:
            self.complaints.add("films unreadable", str(refusal))
            return None
        if found.turned:
            self.turned.add(path)
        return found.size

    def draw(self, film: FilmRecord, label: str, box: Box | None, seen: FilmSize | None = None) -> bool:
        """Add a box that somebody published, or complain about it; whether it was added.

        ``seen`` is how large the film was where it was drawn, if that was told: one of another shape is another film,
        or was cut.
        """
        concept = self.concepts.published(label)
        refusal = self._refusal(film, concept, box)
        if refusal is None and seen is not None and not seen.is_shaped_like(film.size):
            refusal = OTHER_SHAPE
        if refusal is not None:
            self.doubt(film, label, refusal)
        elif concept is not None and box is not None:
            self.boxes.append(DrawnBox(film.id, concept, box))
        return refusal is None

    def doubt(self, film: FilmRecord, label: str, complaint: str) -> None:
        """Somebody marked a finding, but not so that it could be taken: it is neither present nor absent."""
        self.complaints.add(complaint, f"{label} on {film.id}")
        self.doubtful.add((film.id, self.concepts.published(label) or ""))

    def _refusal(self, film: FilmRecord, concept: str | None, box: Box | None) -> str | None:
        if concept is None:
            return "boxes of an unknown finding"
        if box is None:
            return "boxes without area or beyond their film"
        if film.path in self.turned:
            return "boxes on films that are stored on their side, of which nobody knows whether they were turned too"
        return "boxes of a finding that the labels deny" if film.labels[concept] is False else None

    def label_by_boxes(self) -> None:
        """A film shows what it has boxes of and nothing else; what a refused box was around is not known."""
        drawn = {(box.film, box.concept) for box in self.boxes}
        self.films = [replace(film, labels=self._labels_by_boxes(film, drawn)) for film in self.films]

    def _labels_by_boxes(self, film: FilmRecord, drawn: set[tuple[str, str]]) -> dict[str, bool | None]:
        labels: dict[str, bool | None] = {}
        for name in self.concepts.names:
            known = (film.id, name) in drawn
            labels[name] = None if not known and (film.id, name) in self.doubtful else known
        return labels


def finish(draft: Draft, out: Path, rule: SplitRule, *, allow_missing: bool) -> Dataset:
    """Check, split and write a draft; the data set appears whole in ``out`` or not at all."""
    _refuse_unusable(draft)
    _drop_doubles(draft)
    films = split_films(draft.films, rule)
    moved = Counter((old.split, new.split) for old, new in zip(draft.films, films, strict=True))["train", "test"]
    if moved and any(film.split == "test" for film in draft.films):
        draft.complaints.add("films moved to test, where their patient is", str(moved))
    if draft.complaints and not allow_missing:
        told = "; ".join(draft.complaints.lines())
        raise IncompleteSourceError(f"{draft.folder}: {told}. To go on without these, add --allow-missing.")
    if not films:
        raise SourceError(f"{draft.folder} holds no film of {draft.name}; is it the right folder?")
    notes = (*draft.complaints.lines(), *draft.notes, str(rule))
    source = Source(draft.kind, str(draft.folder.resolve()), draft.checksums, notes)
    kept = {film.id for film in films}
    boxes = tuple(box for box in draft.boxes if box.film in kept)
    with whole_folder(out) as folder:
        dataset = Dataset(draft.name, draft.classes, draft.concepts, draft.folder, films, boxes, source)
        dataset.save(folder)
    return dataset


def _refuse_unusable(draft: Draft) -> None:
    if len(draft.concepts) == 0:
        raise SourceError(f"{draft.folder} names no finding, so there is nothing to learn to point at.")
    clash = sorted(set(draft.concepts.names) & set(FILM_COLUMNS))
    if clash:
        raise SourceError(f"A concept cannot be called {clash[0]!r}, like a column of films.csv; rename it.")


def _drop_doubles(draft: Draft) -> None:
    """A name that several films have stands for none of them: nobody knows whose the boxes are."""
    counted = Counter(film.id for film in draft.films)
    for name, count in counted.items():
        if count > 1:
            draft.complaints.add("films listed twice", name)
    draft.films = [film for film in draft.films if counted[film.id] == 1]


def placed_box(
    make: Callable[[float, float, float, float], Box],
    numbers: tuple[float, float, float, float],
    published: FilmSize,
    film: FilmSize,
) -> Box | None:
    """A published box in the frame of the film at hand, cut at its edges; None where it makes no sense.

    ``make`` is ``Box`` for corners and ``Box.from_corner_and_size`` for a corner and a size.
    """
    try:
        box = make(*numbers)
    except GeometryError:
        return None
    if not box.within(published, slack=SLACK):
        return None
    return box.moved(published, film).clipped(film)


def films_by_stem(folders: Iterable[Path], root: Path, complaints: Complaints) -> dict[str, str]:
    """Film files below some folders, by name without suffix: mirrors re-encode films but keep their names.

    A name that several files have stands for none of them.
    """
    found: dict[str, str] = {}
    doubled: set[str] = set()
    for path in film_files(folders):
        relative = path.relative_to(root).as_posix()
        if path.stem in found:
            complaints.add("film files of one name", f"{found[path.stem]} and {relative}")
            doubled.add(path.stem)
        found.setdefault(path.stem, relative)
    return {stem: path for stem, path in found.items() if stem not in doubled}


def film_files(folders: Iterable[Path]) -> list[Path]:
    """Every file below some folders whose suffix is that of a film, in order."""
    found = (path for folder in folders for path in sorted(folder.rglob("*")))
    return [path for path in found if path.suffix.lower() in FILM_SUFFIXES and path.is_file()]
