"""A folder of films, and a file in which an annotation tool tells what was marked on them."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from medgrape.concepts import Concept, ConceptError, ConceptSet
from medgrape.data.dataset import FilmRecord
from medgrape.data.draft import Draft, film_files
from medgrape.data.label_files import SourceError, read_text
from medgrape.data.sources.coco import read_coco
from medgrape.data.sources.cvat import read_cvat
from medgrape.data.sources.label_studio import read_label_studio
from medgrape.data.sources.marks import MarkedFilm, MarkedFilms, place_marks
from medgrape.data.sources.shelf import Shelf, bare
from medgrape.progress import Track, quietly

CLASSES = ("no_finding", "finding")
Tool = Literal["coco", "labelstudio", "cvat"]
TOOLS: dict[Tool, tuple[str, Callable[[Path], MarkedFilms]]] = {
    "coco": ("COCO", read_coco),
    "labelstudio": ("Label Studio", read_label_studio),
    "cvat": ("CVAT", read_cvat),
}


def tool_of(annotations: Path) -> Tool:
    """Which tool wrote a file, by how it begins: XML, a list of tasks, or an object."""
    begins = read_text(annotations).lstrip()[:1]
    known: dict[str, Tool] = {"<": "cvat", "[": "labelstudio", "{": "coco"}
    if begins not in known:
        raise SourceError(f"{annotations} is no file of COCO, Label Studio or CVAT; unpack it first if it is a ZIP.")
    return known[begins]


def read_marks(annotations: Path, tool: Tool) -> MarkedFilms:
    """What the file tells."""
    return TOOLS[tool][1](annotations)


def read_folder(
    folder: Path, annotations: Path, tool: Tool = "coco", *, vocabulary: str | None = None, track: Track = quietly
) -> Draft:
    """Every film that somebody annotated; one without a mark has no finding."""
    marked = read_marks(annotations, tool)
    draft = Draft(folder.resolve().name, tool, folder, CLASSES, _concepts(marked, vocabulary))
    draft.used(annotations)
    draft.notes.append(f"{TOOLS[tool][0]} files name no patients: every film counts as a patient of its own")
    draft.notes.extend(marked.notes)
    draft.complaints.join(marked.complaints)
    files = (path.relative_to(folder).as_posix() for path in film_files([folder]))
    shelf = Shelf(files, (film.listed for film in marked.films))
    for film in track(marked.films, "reading films", len(marked.films)):
        _read_film(draft, film, shelf)
    draft.notes.extend(shelf.notes())
    draft.label_by_boxes()
    return draft


def _read_film(draft: Draft, film: MarkedFilm, shelf: Shelf) -> None:
    path = shelf.find(film.listed)
    if path is None:
        draft.complaints.add("listed films missing", film.listed)
        return
    size = draft.size_of(path)
    if size is None:
        return
    name = bare(path)
    found = any(mark.corners is not None or draft.concepts.published(mark.label) for mark in film.marks)
    record = FilmRecord(name, path, CLASSES[found], name, size, dict.fromkeys(draft.concepts.names))
    draft.films.append(record)
    place_marks(draft, film, record)


def _concepts(marked: MarkedFilms, vocabulary: str | None) -> ConceptSet:
    if vocabulary is not None:
        return ConceptSet.built_in(vocabulary)
    try:
        return ConceptSet(tuple(Concept.named(name) for name in marked.labels))
    except ConceptError as error:
        raise SourceError(f"The file's labels cannot be used as concepts: {error}") from error
