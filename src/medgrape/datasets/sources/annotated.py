"""A folder of films with the annotations of a tool: as a new data set, or as boxes imported into a prepared one."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from medgrape.concepts import Concept, ConceptError, ConceptSet
from medgrape.datasets.dataset import Dataset, DrawnBox, FilmRecord
from medgrape.datasets.draft import NO_PATIENTS, Draft, SourceError, film_files, read_text, without_suffix
from medgrape.datasets.sources import Option, source
from medgrape.datasets.sources.annotation_files import MarkedFilms, place_marks, read_coco, read_cvat, read_label_studio
from medgrape.files import whole_folder
from medgrape.progress import Track, quietly

CLASSES = ("no_finding", "finding")
_EXAMPLES = 3
Tool = Literal["coco", "labelstudio", "cvat"]
SAME = 0.01  # pixels by which the edges of two equal boxes may differ: CVAT writes two digits after the point


@dataclass(frozen=True)
class AnnotationTool:
    """A tool, and the format that it exports."""

    title: str
    read: Callable[[Path], MarkedFilms]
    start: str  # first character of its files
    help: str
    export: str  # description of its file
    example: str  # name that a file may have


TOOLS: dict[Tool, AnnotationTool] = {
    "coco": AnnotationTool(
        "COCO", read_coco, "{",
        "A folder of films with boxes in a COCO file.", "The COCO file with the boxes.", "boxes.json",
    ),
    "labelstudio": AnnotationTool(
        "Label Studio", read_label_studio, "[",
        "A folder of films that were annotated in Label Studio.", "What Label Studio exports as JSON.",
        "project-1.json",
    ),
    "cvat": AnnotationTool(
        "CVAT", read_cvat, "<",
        "A folder of films that were annotated in CVAT.", "What CVAT exports as: CVAT for images 1.1.",
        "annotations.xml",
    ),
}  # fmt: skip


def tool_of(annotations: Path) -> Tool:
    """Return the tool that wrote a file, by its first character: XML, a list of tasks, or an object."""
    start = read_text(annotations).lstrip()[:1]
    for name, tool in TOOLS.items():
        if tool.start == start:
            return name
    raise SourceError(f"{annotations} is no file of COCO, Label Studio or CVAT; unpack it first if it is a ZIP.")


def read_folder(
    folder: Path, annotations: Path, tool: Tool = "coco", *, vocabulary: str | None = None, track: Track = quietly
) -> Draft:
    """Read every film that was annotated; one without a mark has no finding."""
    marked = TOOLS[tool].read(annotations)
    draft = Draft(folder.resolve().name, tool, folder, CLASSES, _concepts(marked, vocabulary))
    draft.used(annotations)
    draft.notes.append(NO_PATIENTS.replace("the published", TOOLS[tool].title))
    draft.notes.extend(marked.notes)
    draft.complaints.join(marked.complaints)
    files = (path.relative_to(folder).as_posix() for path in film_files([folder]))
    finder = FilmFinder(files, (film.listed for film in marked.films))
    for marked_film in track(marked.films, "reading films", len(marked.films)):
        path = finder.find(marked_film.listed)
        size = draft.size_of_listed(path, marked_film.listed)
        if path is not None and size is not None:
            marks, name = marked_film.marks, without_suffix(path)
            has_finding = any(mark.corners is not None or draft.concepts.published(mark.label) for mark in marks)
            labels = dict.fromkeys(draft.concepts.names)
            draft.films.append(FilmRecord(name, path, CLASSES[has_finding], name, size, labels))
            place_marks(draft, marked_film, draft.films[-1])
    draft.notes.extend(finder.notes())
    draft.label_by_boxes()
    return draft


def _register(name: Tool, tool: AnnotationTool) -> None:
    @source(name, help=tool.help, example=f"{name} films --annotations {tool.example} --out data/mine", test=0.2)
    def read(
        folder: Path,
        *,
        annotations: Annotated[Path, Option(tool.export, file=True)],
        vocabulary: Annotated[str | None, Option("Use the concepts of tbx11k, nih or vindr.")] = None,
        track: Track = quietly,
    ) -> Draft:
        return read_folder(folder, annotations, name, vocabulary=vocabulary, track=track)


for _name, _tool in TOOLS.items():
    _register(_name, _tool)


def _concepts(marked: MarkedFilms, vocabulary: str | None) -> ConceptSet:
    if vocabulary is not None:
        return ConceptSet.built_in(vocabulary)
    try:
        return ConceptSet(tuple(Concept.named(name) for name in marked.labels))
    except ConceptError as error:
        raise SourceError(f"The file's labels cannot be used as concepts: {error}") from error


class FilmFinder:
    """Finds the film file that a tool's path or name means.

    It compares whole paths, then paths without suffix, then the ends of paths, then names as web forms save them. A
    name finds a film only where no other film, and no other listed name, matches as well.
    """

    def __init__(self, files: Iterable[str], listed: Iterable[str]) -> None:
        self._files, names = set(files), {_with_slashes(name) for name in listed}
        self._indices = []
        for keys in (_whole_path, _ends, _as_uploaded):
            paths = defaultdict[str, list[str]](list)
            for path in self._files:
                for key in filter(None, keys(path)):
                    paths[key].append(path)
            self._indices.append((keys, paths, Counter(key for name in names for key in keys(name))))
        self._in_other_folders: list[str] = []

    def find(self, listed: str) -> str | None:
        """Return the film's path, or None; a name that leads out of the folder finds nothing."""
        path = self._path_of(listed)
        if path is not None:
            named, actual = (PurePosixPath(name).parent.parts[::-1] for name in (_with_slashes(listed), path))
            if any(first != second for first, second in zip(named, actual, strict=False)):
                self._in_other_folders.append(f"{listed} as {path}")
        return path

    def notes(self) -> tuple[str, ...]:
        """Return a note on the films that were found by name in other folders than those listed."""
        count = len(self._in_other_folders)
        note = f"{count} films were found in other folders than those that were named; look whether they are the same: "
        return (note + ", ".join(self._in_other_folders[:_EXAMPLES]),) if count else ()

    def _path_of(self, listed: str) -> str | None:
        if listed in self._files:
            return listed
        name = _with_slashes(listed)
        if ".." in PurePosixPath(name).parts:
            return None
        for keys, paths, listed_counts in self._indices:
            for key in keys(name):
                if key in paths and len(paths[key]) == listed_counts[key] == 1:
                    return paths[key][0]
        return None


def _with_slashes(path: str) -> str:
    return path.replace("\\", "/")


def _whole_path(path: str) -> list[str]:
    return [without_suffix(path)]


def _ends(path: str) -> list[str]:
    """``a/b/c.png`` as ``a/b/c``, ``b/c`` and ``c``."""
    parts = [part for part in PurePosixPath(without_suffix(path)).parts if part != "/"]
    return ["/".join(parts[start:]) for start in range(len(parts))]


def _as_uploaded(path: str) -> list[str]:
    """A name as web forms save it: spaces become underscores, and all but letters, digits, dots and dashes go."""
    return [re.sub(r"[^-\w.]", "", PurePosixPath(without_suffix(path)).name.strip().replace(" ", "_"))]


def import_boxes(
    data: Path, annotations: Path, out: Path, *, anew: bool = False, allow_missing: bool = False, track: Track = quietly
) -> Dataset:
    """Write a new data set with the boxes of an annotation file; the old one stays as it is.

    With ``anew`` the data set's own boxes are dropped from the films that the file names.
    """
    dataset, tool = Dataset.load(data), TOOLS[tool_of(annotations)]
    marked = tool.read(annotations)
    draft = Draft(dataset.name, dataset.source.kind, dataset.root, dataset.classes, dataset.concepts)
    draft.used(annotations)
    draft.complaints.join(marked.complaints)
    named = _place_all(draft, dataset, marked, track)
    draft.complaints.refuse(annotations, allow_missing=allow_missing)
    counts: Counter[str] = Counter()
    joined = _joined(dataset, draft, named if anew else frozenset(), counts)
    summary = (f"boxes of {tool.title}: {count} {what}" for what, count in counts.items() if count)
    notes = (*dataset.source.notes, *draft.complaints.lines(), *marked.notes, *draft.notes, *summary)
    checksums = {**dataset.source.checksums, **draft.checksums}
    result = replace(joined, source=replace(dataset.source, checksums=checksums, notes=notes))
    with whole_folder(out) as folder:
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
    new = tuple(box for box in draft.boxes if not any(_equal(box, old) for old in kept_by_film.get(box.film, ())))
    counts["new"], counts["there already"] = len(new), len(draft.boxes) - len(new)
    counts["of the set dropped for them"] = len(dataset.boxes) - len(kept)
    before, after = _film_concepts(dataset.boxes), _film_concepts((*kept, *new))
    unknown = (before - after) | (draft.doubtful - after - _present(dataset.films))
    drawn = _film_concepts(new)
    films = tuple(_relabelled(film, drawn, unknown, counts) for film in dataset.films)
    if dataset.classes == CLASSES:
        with_box = {film for film, _ in after}
        reclassed = {film.id for film in films if film.id in with_box and film.class_name != CLASSES[1]}
        counts["films without finding have one now"] += len(reclassed)
        films = tuple(replace(film, class_name=CLASSES[1]) if film.id in reclassed else film for film in films)
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
    film: FilmRecord, drawn: set[tuple[str, str]], unknown: set[tuple[str, str]], counts: Counter[str]
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


def _present(films: Iterable[FilmRecord]) -> set[tuple[str, str]]:
    return {(film.id, name) for film in films for name, label in film.labels.items() if label}


def _film_concepts(boxes: Iterable[DrawnBox]) -> set[tuple[str, str]]:
    return {(box.film, box.concept) for box in boxes}


def _equal(first: DrawnBox, second: DrawnBox) -> bool:
    edges = zip(first.box.corners, second.box.corners, strict=True)
    return first.concept == second.concept and all(abs(edge - other) <= SAME for edge, other in edges)
