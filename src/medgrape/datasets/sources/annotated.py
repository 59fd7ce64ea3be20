"""A folder of films, and a file in which an annotation tool tells what was marked on them."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

from medgrape.concepts import Concept, ConceptError, ConceptSet
from medgrape.datasets.dataset import FilmRecord
from medgrape.datasets.draft import Draft, film_files
from medgrape.datasets.label_files import SourceError, read_text
from medgrape.datasets.sources.coco import read_coco
from medgrape.datasets.sources.cvat import read_cvat
from medgrape.datasets.sources.label_studio import read_label_studio
from medgrape.datasets.sources.marks import MarkedFilm, MarkedFilms, place_marks
from medgrape.progress import Track, quietly

_EXAMPLES = 3


class Shelf:
    """Films by path; by path without suffix; by as much of its end as tells them apart; by name as web forms save it.

    A name finds a film only where no other film, and no other listed name, has a claim to it.
    """

    def __init__(self, files: Iterable[str], listed: Iterable[str]) -> None:
        paths, names = set(files), {_forward(name) for name in listed}
        self._files = paths
        self._by_path = _unique((path, bare(path)) for path in paths)
        self._by_end = _unique((path, end) for path in paths for end in _ends(path))
        self._by_form = _unique((path, _as_uploaded(path)) for path in paths)
        self._wholes = Counter(bare(name) for name in names)
        self._claims = Counter(end for name in names for end in _ends(name))
        self._forms = Counter(_as_uploaded(name) for name in names)
        self._elsewhere: list[str] = []

    def find(self, listed: str) -> str | None:
        """The film's path, or None; a name that leads out of the folder leads nowhere."""
        found = self._found(listed)
        if found is not None and _contradict(_forward(listed), found):
            self._elsewhere.append(f"{listed} as {found}")
        return found

    def notes(self) -> tuple[str, ...]:
        """How many were found by their name although the folders before it are other ones."""
        count = len(self._elsewhere)
        told = f"{count} films were found in other folders than those that were named; look whether they are the same: "
        return (told + ", ".join(self._elsewhere[:_EXAMPLES]),) if count else ()

    def _found(self, listed: str) -> str | None:
        if listed in self._files:
            return listed
        name = _forward(listed)
        if ".." in PurePosixPath(name).parts:
            return None
        whole = self._by_path.get(bare(name)) if self._wholes[bare(name)] == 1 else None
        ends = (self._by_end[end] for end in _ends(name) if end in self._by_end and self._claims[end] == 1)
        return whole or next(ends, None) or self._uploaded(name)

    def _uploaded(self, listed: str) -> str | None:
        form = _as_uploaded(listed)
        return self._by_form.get(form) if self._forms[form] == 1 else None


def bare(path: str) -> str:
    """A path without suffix: tools and mirrors re-encode films but keep their names."""
    pure = PurePosixPath(path)
    return pure.with_suffix("").as_posix() if pure.name else path


def _contradict(listed: str, found: str) -> bool:
    """Whether the folders of two paths differ, from the last one back as far as both have any."""
    named, actual = PurePosixPath(listed).parent.parts, PurePosixPath(found).parent.parts
    return any(one != other for one, other in zip(reversed(named), reversed(actual), strict=False))


def _forward(path: str) -> str:
    """As it is written everywhere but on Windows."""
    return path.replace("\\", "/")


def _ends(path: str) -> Iterator[str]:
    """``a/b/c.png`` as ``a/b/c``, ``b/c`` and ``c``."""
    parts = [part for part in PurePosixPath(bare(path)).parts if part != "/"]
    yield from ("/".join(parts[place:]) for place in range(len(parts)))


def _as_uploaded(path: str) -> str:
    """A name as web forms save it: spaces become underscores, and all but letters, digits, dots and dashes go."""
    return re.sub(r"[^-\w.]", "", PurePosixPath(bare(path)).name.strip().replace(" ", "_"))


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Key to path, for keys that only one path has."""
    found: dict[str, str | None] = {}
    for path, key in pairs:
        found[key] = path if key not in found else None
    return {key: path for key, path in found.items() if path is not None and key}


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
