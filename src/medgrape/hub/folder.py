"""A run as a hub keeps it: the run's own files and a model card, in one folder."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from medgrape.data.files import copied, whole_folder
from medgrape.hub.card import CARD, written
from medgrape.hub.changes import TAKEN_OUT, UNNAMED
from medgrape.hub.measured import measured_beside
from medgrape.model.checkpoint import Change, LoadedRun, Run, load_run
from medgrape.model.manifest import MANIFEST, RunError, refuse_inside_run


@dataclass(frozen=True)
class Publishing:
    """What whoever publishes a run has to decide."""

    repository: str = ""
    """``org/name``, for the card."""
    licence: str = "other"
    pictures: bool | None = None
    """Whether pictures of training films go with it; None: nobody has decided, and a run that has any is refused."""


@dataclass(frozen=True)
class Packed:
    """What would be, or was, brought to a hub."""

    folder: Path
    files: tuple[str, ...]
    size: int
    """Bytes."""
    pictures: int
    """Of training films."""
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "folder": str(self.folder), "files": list(self.files), "bytes": self.size, "pictures": self.pictures,
            "warnings": list(self.warnings),
        }  # fmt: skip


def pack(run: Path, out: Path, publishing: Publishing) -> Packed:
    """Write the very folder that a hub is given; ``out`` must be new or empty."""
    refuse_inside_run(out)
    loaded = load_run(run)
    _refuse_undecided(loaded.run, publishing.pictures)
    removed = publishing.pictures is False and bool(loaded.run.exemplars.films)
    withheld = bool(loaded.run.config.exemplars.withheld)
    card = written(
        loaded, measured_beside(run), repository=publishing.repository, licence=publishing.licence, removed=removed,
        unnamed=withheld,
    )  # fmt: skip
    with whole_folder(out) as draft, _published(loaded, removed=removed, withheld=withheld) as source:
        for name in (*source.manifest.files, MANIFEST):
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            copied(source.folder / name, draft / name)
        (draft / CARD).write_text(card, "utf-8")
        pictures, warnings = len(source.run.exemplars.films), tuple(_told_of_machine(source.run))
    files = sorted(path for path in out.rglob("*") if path.is_file())
    names = tuple(path.relative_to(out).as_posix() for path in files)
    return Packed(out, names, sum(path.stat().st_size for path in files), pictures, warnings)


def _refuse_undecided(run: Run, pictures: bool | None) -> None:
    films = len(run.exemplars.films)
    if films and pictures is None:
        raise RunError(
            f"This run carries pictures of {films} training films, and their names, which everybody who gets it can "
            "look at: decide with --with-pictures that all of these patients may be shown, or with --without-pictures "
            "to publish it without them."
        )


@contextmanager
def _published(loaded: LoadedRun, *, removed: bool, withheld: bool) -> Iterator[LoadedRun]:
    """The run itself, or one that answers as it does and tells less of patients."""
    if not (removed or withheld):
        yield loaded
        return
    run, parent = loaded.run, loaded.manifest.fingerprint
    if removed:
        run = _without_pictures(run, Change(parent, TAKEN_OUT))
    if withheld:  # who must not be shown must not be named either
        run = _without_names(run, Change(parent, UNNAMED))
    with tempfile.TemporaryDirectory(prefix="medgrape-hub-") as folder:
        yield loaded.save_changed(run, Path(folder) / "run")


def _without_pictures(run: Run, change: Change) -> Run:
    shown = run.exemplars
    blank = replace(shown, films=(), thumbnails=shown.thumbnails[:0], film=np.full_like(shown.film, -1))
    config = run.config.model_copy(update={"exemplars": run.config.exemplars.overridden(show=False)})
    return replace(run, exemplars=blank, config=config, changes=(*run.changes, change))


def _without_names(run: Run, change: Change) -> Run:
    told = run.config.exemplars.model_copy(update={"withheld": ()})
    config = run.config.model_copy(update={"exemplars": told})
    return replace(run, config=config, changes=(*run.changes, change))


def _told_of_machine(run: Run) -> Iterator[str]:
    """Settings that tell of somebody's disk: they are part of the run, and stay in it."""
    settings = run.config
    places = {
        "backbone.name": settings.backbone.name,
        "backbone.weights": settings.backbone.weights,
        "text.encoder": settings.text.encoder,
    }
    for key, value in places.items():
        if Path(value).is_absolute() or value.startswith("~"):
            yield f"config.toml tells of a folder on your machine: {key} = {value!r}."
