"""Boxes that somebody drew elsewhere, brought onto the films of a prepared data set."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from medgrape.datasets.dataset import Dataset, DrawnBox, FilmRecord
from medgrape.datasets.draft import Draft, IncompleteSourceError
from medgrape.datasets.sources.annotated import CLASSES, TOOLS, Shelf, read_marks, tool_of
from medgrape.datasets.sources.marks import MarkedFilms, place_marks
from medgrape.files import whole_folder
from medgrape.progress import Track, quietly

SAME = 0.01
"""Pixels by which two boxes may differ and be the same: CVAT writes two digits after the point."""
Pair = tuple[str, str]
"""A film and a concept."""


@dataclass(frozen=True)
class Import:
    """What is brought in, and how."""

    data: Path
    annotations: Path
    out: Path
    anew: bool = False
    """Whether the set's own boxes go first, from the films that the file names."""
    allow_missing: bool = False


def import_boxes(order: Import, track: Track = quietly) -> Dataset:
    """Write a new data set with the boxes; the old one stays as it is."""
    dataset, tool = Dataset.load(order.data), tool_of(order.annotations)
    marked = read_marks(order.annotations, tool)
    draft = Draft(dataset.name, dataset.source.kind, dataset.root, dataset.classes, dataset.concepts)
    draft.used(order.annotations)
    draft.complaints.join(marked.complaints)
    named = _named(draft, dataset, marked, track)
    if draft.complaints and not order.allow_missing:
        told = "; ".join(draft.complaints.lines())
        raise IncompleteSourceError(f"{order.annotations}: {told}. To go on without these, add --allow-missing.")
    counted: Counter[str] = Counter()
    joined = _joined(dataset, draft, named if order.anew else frozenset(), counted)
    sums = (f"boxes of {TOOLS[tool][0]}: {count} {what}" for what, count in counted.items() if count)
    notes = (*dataset.source.notes, *draft.complaints.lines(), *marked.notes, *draft.notes, *sums)
    checksums = {**dataset.source.checksums, **draft.checksums}
    made = replace(joined, source=replace(dataset.source, checksums=checksums, notes=notes))
    with whole_folder(order.out) as folder:
        made.save(folder)
    return made


def _named(draft: Draft, dataset: Dataset, marked: MarkedFilms, track: Track) -> frozenset[str]:
    """The films that the file names, once its boxes are drawn; labels that deny a box do not stand in its way."""
    films = {film.path: film for film in dataset.pictured}
    shelf = Shelf(films, (film.listed for film in marked.films))
    found = set()
    for one in track(marked.films, "looking at films", len(marked.films)):
        film = films.get(shelf.find(one.listed) or "")
        if film is None:
            draft.complaints.add("films that the data set does not have", one.listed)
        elif not one.marks or draft.size_of(film.path) is not None:
            found.add(film.id)
            place_marks(draft, one, replace(film, labels=dict.fromkeys(film.labels)))
    draft.notes.extend(shelf.notes())
    return frozenset(found)


def _joined(dataset: Dataset, draft: Draft, emptied: frozenset[str], counted: Counter[str]) -> Dataset:
    """The set with its old boxes but those of ``emptied`` films, and the new ones."""
    staying = tuple(box for box in dataset.boxes if box.film not in emptied)
    there = replace(dataset, boxes=staying).boxes_by_film
    new = tuple(box for box in draft.boxes if not any(_same(box, one) for one in there.get(box.film, ())))
    counted["new"], counted["there already"] = len(new), len(draft.boxes) - len(new)
    counted["of the set dropped for them"] = len(dataset.boxes) - len(staying)
    had, has = _pairs(dataset.boxes), _pairs((*staying, *new))
    unsure = (had - has) | (draft.doubtful - has - _present(dataset.films))
    films = tuple(_relabelled(film, _pairs(new), unsure, counted) for film in dataset.films)
    if dataset.classes == CLASSES:
        shown = {film for film, _ in has}
        films = tuple(_reclassed(film, shown, counted) for film in films)
    else:
        first = sum(not any(film.labels.values()) and any((film.id, name) in has for name in film.labels)
                    for film in dataset.films)  # fmt: skip
        counted["films had no finding before; look whether their class still fits"] = first
    bare = {film for film, _ in had} - {film for film, _ in has | _present(films)}
    counted["films lost their last box and show nothing else; look whether their class still fits"] = sum(
        film.id in bare and film.class_name != CLASSES[0] for film in films
    )
    return replace(dataset, films=films, boxes=(*staying, *new))


def _relabelled(film: FilmRecord, drawn: set[Pair], unsure: set[Pair], counted: Counter[str]) -> FilmRecord:
    """What has a new box is there; what lost its last one, or was marked otherwise, is not known."""
    labels = dict(film.labels)
    for name, label in film.labels.items():
        if (film.id, name) in drawn:
            labels[name] = True
            counted["labels that said absent or nothing now say present"] += label is not True
        elif (film.id, name) in unsure:
            labels[name] = None
            counted["labels are not known any more"] += label is not None
    return replace(film, labels=labels)


def _reclassed(film: FilmRecord, shown: set[str], counted: Counter[str]) -> FilmRecord:
    """Where the classes are only whether there is a finding, a box decides."""
    if film.id not in shown or film.class_name == CLASSES[1]:
        return film
    counted["films without finding have one now"] += 1
    return replace(film, class_name=CLASSES[1])


def _present(films: Iterable[FilmRecord]) -> set[Pair]:
    """What labels say is there: a mark that is no box takes none of that back."""
    return {(film.id, name) for film in films for name, label in film.labels.items() if label}


def _pairs(boxes: Iterable[DrawnBox]) -> set[Pair]:
    return {(box.film, box.concept) for box in boxes}


def _same(one: DrawnBox, other: DrawnBox) -> bool:
    pairs = zip(one.box.corners, other.box.corners, strict=True)
    return one.concept == other.concept and all(abs(edge - its) <= SAME for edge, its in pairs)
