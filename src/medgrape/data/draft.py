"""What a source holds, before it is known whether that is good enough: films, boxes and everything that is wrong."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from medgrape.concepts import ConceptSet
from medgrape.data.complaints import Complaints
from medgrape.data.dataset import Dataset, DatasetError, DrawnBox, FilmRecord, Source
from medgrape.data.files import whole_folder
from medgrape.data.film import FilmError
from medgrape.data.reading import upright_size
from medgrape.data.splits import SplitRule, split_films
from medgrape.errors import UserError
from medgrape.geometry import Box, FilmSize, GeometryError

FILM_SUFFIXES = (".png", ".jpg", ".jpeg", ".dcm", ".dicom")
SLACK = 1.0
"""Pixels by which a published box may reach past its film before that counts as a contradiction."""


class SourceError(UserError):
    """A folder that is not the data set it is said to be."""


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

    def size_of(self, path: str) -> FilmSize | None:
        """How large a film of the folder is; one that cannot be read becomes a complaint and None."""
        try:
            return upright_size(self.folder / path)
        except FilmError as refusal:
            self.complaints.add("films unreadable", str(refusal))
            return None


def finish(draft: Draft, out: Path, rule: SplitRule, *, allow_missing: bool) -> Dataset:
    """Check, split and write a draft; the data set appears whole in ``out`` or not at all."""
    _refuse_incomplete(draft, allow_missing)
    if not draft.films:
        raise SourceError(f"{draft.folder} holds no film of {draft.name}; is it the right folder?")
    films = split_films(draft.films, rule)
    moved = Counter((old.split, new.split) for old, new in zip(draft.films, films, strict=True))["train", "test"]
    if moved and any(film.split == "test" for film in draft.films):
        draft.complaints.add("films moved to test, where their patient is", str(moved))
        _refuse_incomplete(draft, allow_missing)
    notes = (*draft.complaints.lines(), *draft.notes, str(rule))
    source = Source(draft.kind, str(draft.folder.resolve()), draft.checksums, notes)
    kept = {film.id for film in films}
    boxes = tuple(box for box in draft.boxes if box.film in kept)
    with whole_folder(out) as folder:
        dataset = Dataset(draft.name, draft.classes, draft.concepts, draft.folder, films, boxes, source)
        dataset.save(folder)
    return dataset


def _refuse_incomplete(draft: Draft, allow_missing: bool) -> None:
    if draft.complaints and not allow_missing:
        told = "; ".join(draft.complaints.lines())
        raise IncompleteSourceError(f"{draft.folder}: {told}. To go on without these, add --allow-missing.")


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


def films_by_stem(folders: Iterable[Path], root: Path) -> dict[str, str]:
    """Film files below some folders, by name without suffix: mirrors re-encode films but keep their names."""
    found: dict[str, str] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() in FILM_SUFFIXES and path.is_file():
                found.setdefault(path.stem, path.relative_to(root).as_posix())
    return found


def required(path: Path, what: str) -> Path:
    """``path``, which a source must have."""
    if not path.is_file():
        raise SourceError(f"{what} needs {path}, which is not there; is this the right folder?")
    return path


def first_present(folder: Path, names: Iterable[str], what: str) -> Path:
    """The first of several spellings of a file that is there."""
    choices = list(names)
    for name in choices:
        if (folder / name).is_file():
            return folder / name
    raise SourceError(f"{what} needs {folder / choices[0]}, which is not there; is this the right folder?")


def with_boxes_as_labels(films: Iterable[FilmRecord], boxes: Iterable[DrawnBox]) -> Iterator[FilmRecord]:
    """Films labelled with the concepts that they have boxes of, and with none other."""
    present: dict[str, set[str]] = {}
    for box in boxes:
        present.setdefault(box.film, set()).add(box.concept)
    for film in films:
        yield replace(film, labels=_present(film.labels, present.get(film.id, set())))


def _present(names: Iterable[str], present: set[str]) -> Mapping[str, bool | None]:
    return {name: name in present for name in names}


def read_text(path: Path) -> str:
    """A label file's text."""
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} cannot be read: {error}.") from error
