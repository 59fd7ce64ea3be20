"""Importing boxes that were drawn in another tool into a prepared data set."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from medgrape.datasets.dataset import Dataset, DrawnBox, FilmRecord
from medgrape.datasets.draft import Draft, IncompleteSourceError
from medgrape.datasets.sources.annotated import CLASSES, TOOLS, FilmFinder, tool_of
from medgrape.datasets.sources.marks import MarkedFilms, place_marks
from medgrape.files import whole_folder
from medgrape.progress import Track, quietly

SAME = 0.01
"""Pixels by which the edges of two equal boxes may differ: CVAT writes two digits after the point."""
FilmConcept = tuple[str, str]
"""A film and a concept."""


@dataclass(frozen=True)
class Import:
    """What to import, and how."""

    data: Path
    annotations: Path
    out: Path
    anew: bool = False
    """Whether to drop the data set's own boxes from the films that the file names."""
    allow_missing: bool = False


def import_boxes(order: Import, track: Track = quietly) -> Dataset:
    """Write a new data set with the boxes; the old one stays as it is."""
    dataset, tool = Dataset.load(order.data), TOOLS[tool_of(order.annotations)]
    marked = tool.read(order.annotations)
    draft = Draft(dataset.name, dataset.source.kind, dataset.root, dataset.classes, dataset.concepts)
    draft.used(order.annotations)
    draft.complaints.join(marked.complaints)
    named = _place_all(draft, dataset, marked, track)
    if draft.complaints and not order.allow_missing:
        complaints = "; ".join(draft.complaints.lines())
        raise IncompleteSourceError(f"{order.annotations}: {complaints}. To go on without these, add --allow-missing.")
    counts: Counter[str] = Counter()
    joined = _joined(dataset, draft, named if order.anew else frozenset(), counts)
    summary = (f"boxes of {tool.title}: {count} {what}" for what, count in counts.items() if count)
    notes = (*dataset.source.notes, *draft.complaints.lines(), *marked.notes, *draft.notes, *summary)
    checksums = {**dataset.source.checksums, **draft.checksums}
    result = replace(joined, source=replace(dataset.source, checksums=checksums, notes=notes))
    with whole_folder(order.out) as folder:
        result.save(folder)
    return result


def _place_all(draft: Draft, dataset: Dataset, marked: MarkedFilms, track: Track) -> frozenset[str]:
    """Add all boxes to the draft and return the films that the file names; a box may contradict an absent label."""
    films = {film.path: film for film in dataset.pictured}
    finder = FilmFinder(films, (film.listed for film in marked.films))
    named = set()
    for marked_film in track(marked.films, "looking at films", len(marked.films)):
        film = films.get(finder.find(marked_film.listed) or "")
        if film is None:
            draft.complaints.add("films that the data set does not have", marked_film.listed)
        elif not marked_film.marks or draft.size_of(film.path) is not None:
            named.add(film.id)
            place_marks(draft, marked_film, replace(film, labels=dict.fromkeys(film.labels)))
    draft.notes.extend(finder.notes())
    return frozenset(named)


def _joined(dataset: Dataset, draft: Draft, emptied: frozenset[str], counts: Counter[str]) -> Dataset:
    """The data set with its old boxes, except those on ``emptied`` films, and the new ones."""
    kept = tuple(box for box in dataset.boxes if box.film not in emptied)
    kept_by_film = replace(dataset, boxes=kept).boxes_by_film
    new = tuple(box for box in draft.boxes if not any(_same(box, old) for old in kept_by_film.get(box.film, ())))
    counts["new"], counts["there already"] = len(new), len(draft.boxes) - len(new)
    counts["of the set dropped for them"] = len(dataset.boxes) - len(kept)
    before, after = _film_concepts(dataset.boxes), _film_concepts((*kept, *new))
    unknown = (before - after) | (draft.doubtful - after - _present(dataset.films))
    films = tuple(_relabelled(film, _film_concepts(new), unknown, counts) for film in dataset.films)
    if dataset.classes == CLASSES:
        with_box = {film for film, _ in after}
        films = tuple(_reclassed(film, with_box, counts) for film in films)
    else:
        counts["films had no finding before; look whether their class still fits"] = sum(
            not any(film.labels.values()) and any((film.id, name) in after for name in film.labels)
            for film in dataset.films
        )
    bare = {film for film, _ in before} - {film for film, _ in after | _present(films)}
    counts["films lost their last box and show nothing else; look whether their class still fits"] = sum(
        film.id in bare and film.class_name != CLASSES[0] for film in films
    )
    return replace(dataset, films=films, boxes=(*kept, *new))


def _relabelled(
    film: FilmRecord, drawn: set[FilmConcept], unknown: set[FilmConcept], counts: Counter[str]
) -> FilmRecord:
    """The film with new labels: a new box means present; a lost last box, or a mark that is no box, means unknown."""
    labels = dict(film.labels)
    for name, label in film.labels.items():
        if (film.id, name) in drawn:
            labels[name] = True
            counts["labels that said absent or nothing now say present"] += label is not True
        elif (film.id, name) in unknown:
            labels[name] = None
            counts["labels are not known any more"] += label is not None
    return replace(film, labels=labels)


def _reclassed(film: FilmRecord, with_box: set[str], counts: Counter[str]) -> FilmRecord:
    """The film with the class ``finding`` if it has a box, where the classes are only finding or none."""
    if film.id not in with_box or film.class_name == CLASSES[1]:
        return film
    counts["films without finding have one now"] += 1
    return replace(film, class_name=CLASSES[1])


def _present(films: Iterable[FilmRecord]) -> set[FilmConcept]:
    return {(film.id, name) for film in films for name, label in film.labels.items() if label}


def _film_concepts(boxes: Iterable[DrawnBox]) -> set[FilmConcept]:
    return {(box.film, box.concept) for box in boxes}


def _same(first: DrawnBox, second: DrawnBox) -> bool:
    edges = zip(first.box.corners, second.box.corners, strict=True)
    return first.concept == second.concept and all(abs(edge - other) <= SAME for edge, other in edges)
