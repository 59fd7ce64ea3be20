"""A folder of films with the annotations of a tool: COCO, Label Studio or CVAT."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from medgrape.concepts import Concept, ConceptError, ConceptSet
from medgrape.datasets.dataset import FilmRecord
from medgrape.datasets.draft import Draft, film_files
from medgrape.datasets.label_files import SourceError, read_text, without_suffix
from medgrape.datasets.sources.coco import read_coco
from medgrape.datasets.sources.cvat import read_cvat
from medgrape.datasets.sources.label_studio import read_label_studio
from medgrape.datasets.sources.marks import MarkedFilm, MarkedFilms, place_marks
from medgrape.datasets.sources.registry import Option, source
from medgrape.progress import Track, quietly

CLASSES = ("no_finding", "finding")
_EXAMPLES = 3
Tool = Literal["coco", "labelstudio", "cvat"]


@dataclass(frozen=True)
class AnnotationTool:
    """A tool, and the format that it exports."""

    title: str
    read: Callable[[Path], MarkedFilms]
    start: str
    """First character of its files."""
    help: str
    export: str
    """Description of its file."""
    example: str
    """Name that a file may have."""


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
    draft.notes.append(f"{TOOLS[tool].title} files name no patients: every film counts as a patient of its own")
    draft.notes.extend(marked.notes)
    draft.complaints.join(marked.complaints)
    files = (path.relative_to(folder).as_posix() for path in film_files([folder]))
    finder = FilmFinder(files, (film.listed for film in marked.films))
    for film in track(marked.films, "reading films", len(marked.films)):
        _read_film(draft, film, finder.find(film.listed))
    draft.notes.extend(finder.notes())
    draft.label_by_boxes()
    return draft


def _register(name: Tool, tool: AnnotationTool) -> None:
    @source(name, help=tool.help, example=f"{name} films --annotations {tool.example} --out data/mine", test=0.2)
    def read(
        folder: Path,
        *,
        annotations: Annotated[Path, Option(tool.export, file=True)],
        vocabulary: Annotated[str | None, Option("Take concepts from tbx11k, nih or vindr.")] = None,
        track: Track = quietly,
    ) -> Draft:
        return read_folder(folder, annotations, name, vocabulary=vocabulary, track=track)


for _name, _tool in TOOLS.items():
    _register(_name, _tool)


def _read_film(draft: Draft, marked: MarkedFilm, path: str | None) -> None:
    if path is None:
        draft.complaints.add("listed films missing", marked.listed)
        return
    size, name = draft.size_of(path), without_suffix(path)
    if size is None:
        return
    has_finding = any(mark.corners is not None or draft.concepts.published(mark.label) for mark in marked.marks)
    film = FilmRecord(name, path, CLASSES[has_finding], name, size, dict.fromkeys(draft.concepts.names))
    draft.films.append(film)
    place_marks(draft, marked, film)


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
        self._by_path = _unique((path, without_suffix(path)) for path in self._files)
        self._by_end = _unique((path, end) for path in self._files for end in _ends(path))
        self._by_form = _unique((path, _as_uploaded(path)) for path in self._files)
        self._listed_paths = Counter(without_suffix(name) for name in names)
        self._listed_ends = Counter(end for name in names for end in _ends(name))
        self._listed_forms = Counter(_as_uploaded(name) for name in names)
        self._in_other_folders: list[str] = []

    def find(self, listed: str) -> str | None:
        """Return the film's path, or None; a name that leads out of the folder finds nothing."""
        path = self._path_of(listed)
        if path is not None:
            named, actual = PurePosixPath(_with_slashes(listed)).parent.parts, PurePosixPath(path).parent.parts
            if any(first != second for first, second in zip(reversed(named), reversed(actual), strict=False)):
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
        if self._listed_paths[without_suffix(name)] == 1 and without_suffix(name) in self._by_path:
            return self._by_path[without_suffix(name)]
        for end in _ends(name):
            if end in self._by_end and self._listed_ends[end] == 1:
                return self._by_end[end]
        form = _as_uploaded(name)
        return self._by_form.get(form) if self._listed_forms[form] == 1 else None


def _with_slashes(path: str) -> str:
    return path.replace("\\", "/")


def _ends(path: str) -> Iterator[str]:
    """``a/b/c.png`` as ``a/b/c``, ``b/c`` and ``c``."""
    parts = [part for part in PurePosixPath(without_suffix(path)).parts if part != "/"]
    yield from ("/".join(parts[place:]) for place in range(len(parts)))


def _as_uploaded(path: str) -> str:
    """A name as web forms save it: spaces become underscores, and all but letters, digits, dots and dashes go."""
    return re.sub(r"[^-\w.]", "", PurePosixPath(without_suffix(path)).name.strip().replace(" ", "_"))


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Key to path, for the keys that only one path has."""
    paths: dict[str, str | None] = {}
    for path, key in pairs:
        paths[key] = path if key not in paths else None
    return {key: path for key, path in paths.items() if path is not None and key}
