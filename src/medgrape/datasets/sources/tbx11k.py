"""TBX11K: Liu et al., "Revisiting Computer-Aided Tuberculosis Diagnosis", in its official layout.

``annotations/json/TBX11K_train.json`` and ``TBX11K_val.json`` (COCO), ``imgs/{health,sick,tb,extra}``, ``lists/``. The
labels of the official test films are not public, so the official validation films are the test films here, as in the
paper, and validation is cut from the official training films.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from medgrape.concepts import ConceptSet
from medgrape.datasets.dataset import UNTESTED, FilmRecord
from medgrape.datasets.draft import NO_PATIENTS, Draft, films_by_stem, read_text, required
from medgrape.datasets.sources import Option, source
from medgrape.datasets.sources.annotation_files import place_marks, read_coco
from medgrape.progress import Track, quietly

CLASSES = ("healthy", "sick_non_tb", "active_tb")
_FOLDERS = {"health": "healthy", "sick": "sick_non_tb", "tb": "active_tb"}
_SPLITS = {"TBX11K_train": "train", "TBX11K_val": "test"}


@source(
    "tbx11k",
    help="TBX11K in its official layout; its official validation films become the test films.",
    example="tbx11k TBX11K --out data/tbx11k",
)
def read_tbx11k(
    folder: Path,
    *,
    extra: Annotated[bool, Option("Also take imgs/extra (Shenzhen, Montgomery, DA, DB).", "--extra")] = False,
    track: Track = quietly,
) -> Draft:
    """Read everything in the folder; ``extra`` adds the films of other public data sets."""
    draft = Draft("TBX11K", "tbx11k", folder, CLASSES, ConceptSet.built_in("tbx11k"))
    draft.notes.append(NO_PATIENTS)
    required(folder, "TBX11K", "annotations/json/TBX11K_train.json")
    for list_name, split in _SPLITS.items():
        _read_split(draft, list_name, split, track)
    draft.label_by_boxes()
    draft.films = [
        # a TB film without a box shows something that was not drawn: its findings are unknown rather than absent
        replace(film, labels=dict.fromkeys(film.labels))
        if film.class_name == "active_tb" and not any(film.labels.values())
        else film
        for film in draft.films
    ]
    unknown = [film.id for film in draft.films if None in film.labels.values()]
    if unknown:
        draft.notes.append(
            f"{len(unknown)} TB films have no box, so their findings are not known: {', '.join(unknown[:3])}"
        )
    if extra:
        _read_extra(draft, track)
    return draft


def _read_split(draft: Draft, list_name: str, split: str, track: Track) -> None:
    annotations = draft.folder / f"annotations/json/{list_name}.json"
    if not annotations.is_file():
        draft.complaints.add("label file missing", annotations.name)
        return
    coco = read_coco(draft.used(annotations))
    draft.complaints.join(coco.complaints)
    published_list = draft.folder / "lists" / f"{list_name}.txt"
    if published_list.is_file():
        differing = set(read_text(draft.used(published_list)).split()) ^ {film.listed for film in coco.films}
        for listed in sorted(differing):
            draft.complaints.add(f"films in only one of {list_name}'s list and labels", listed)
    for marked in track(coco.films, f"reading {list_name}", len(coco.films)):
        class_name = _FOLDERS.get(marked.listed.split("/")[0])
        if class_name is None or ".." in marked.listed:
            draft.complaints.add("films in an unknown folder", marked.listed)
        elif _add_film(draft, f"imgs/{marked.listed}", marked.listed, class_name, split):
            place_marks(draft, marked, draft.films[-1])


def _add_film(draft: Draft, path: str, listed: str, class_name: str, split: str, label: bool | None = None) -> bool:
    """Add a film with one label for all findings; return whether it could be read."""
    size, name = draft.size_of_listed(path, listed), Path(path).stem
    if size is None:
        return False
    labels = dict.fromkeys(draft.concepts.names, label)
    draft.films.append(FilmRecord(name, path, class_name, name, size, labels, split))
    return True


def _read_extra(draft: Draft, track: Track) -> None:
    """Add films that other data sets published first; whether their TB is active is not known.

    They never become test films: a model may be tested on those other data sets as well.
    """
    root = draft.folder / "imgs/extra"
    if not root.is_dir():
        draft.complaints.add("folder missing", "imgs/extra")
        return
    paths = films_by_stem([root], draft.folder, draft.complaints)
    taken = {film.id for film in draft.films}
    for stem, path in track(sorted(paths.items()), "reading extra films", len(paths)):
        diseased = None
        if stem.endswith(("_0", "_1")):  # Shenzhen and Montgomery
            diseased = stem.endswith("_1")
        elif stem[:1] in "np" and stem[1:2].isdigit():  # DA and DB
            diseased = stem.startswith("p")
        if diseased is None or stem in taken:
            draft.complaints.add("extra films with a name that does not tell normal from TB, or is taken", path)
            continue
        _add_film(draft, path, path, "active_tb" if diseased else "healthy", UNTESTED, None if diseased else False)
    draft.notes.append(
        f"{len(paths)} extra films come from other public sets (Shenzhen, Montgomery, DA, DB): never test on those"
    )


def is_borrowed(path: str) -> bool:
    """Return whether a film of this set was published before in another one."""
    return path.startswith("imgs/extra/")
