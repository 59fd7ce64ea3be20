"""Publication of a run on a model hub: one commit with the run's files and its model card."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medgrape.files import copied, whole_folder
from medgrape.runs.checkpoint import Change, LoadedRun, Run, load_run
from medgrape.runs.exemplars import NO_FILM
from medgrape.runs.hub.card import CARD, TAKEN_OUT, UNNAMED, render_card, reports_beside
from medgrape.runs.hub.download import NEEDED, hub_error_message, refuse_unnameable
from medgrape.runs.manifest import MANIFEST, RunError, manifest_files, refuse_inside_run

if TYPE_CHECKING:
    from huggingface_hub import HfApi

MAIN = "main"


@dataclass(frozen=True)
class Publishing:
    """Decisions of the person who publishes a run."""

    repository: str = ""  # `org/name`, for the card
    licence: str = "other"
    pictures: bool | None = None  # Whether to publish them; None: a run with pictures of training films is refused


@dataclass(frozen=True)
class Packed:
    """A folder that is ready to be pushed to a hub."""

    folder: Path
    files: tuple[str, ...]
    size: int  # In bytes
    pictures: int  # Number of pictures of training films
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain data."""
        return {
            "folder": str(self.folder), "files": list(self.files), "bytes": self.size, "pictures": self.pictures,
            "warnings": list(self.warnings),
        }  # fmt: skip


def pack(run: Path, out: Path, publishing: Publishing) -> Packed:
    """Write the folder that ``push`` uploads; ``out`` must be new or empty."""
    refuse_inside_run(out)
    loaded = load_run(run)
    films = len(loaded.run.exemplars.films)
    if films and publishing.pictures is None:
        raise RunError(
            f"This run carries pictures of {films} training films, and their names, which everybody who gets it can "
            "see: decide with --with-pictures that all of these patients may be shown, or with --without-pictures "
            "to publish it without them."
        )
    removed, withheld = publishing.pictures is False and films > 0, bool(loaded.run.config.exemplars.withheld)
    repository, licence = publishing.repository, publishing.licence
    reports = reports_beside(run)
    card = render_card(loaded, reports, repository=repository, licence=licence, removed=removed, unnamed=withheld)
    with whole_folder(out) as draft, _published(loaded, removed=removed, withheld=withheld) as source:
        for name in (*source.manifest.files, MANIFEST):
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            copied(source.folder / name, draft / name)
        (draft / CARD).write_text(card, "utf-8")
        pictures, warnings = len(source.run.exemplars.films), tuple(_local_paths(source.run))
    files = sorted(path for path in out.rglob("*") if path.is_file())
    names = tuple(path.relative_to(out).as_posix() for path in files)
    return Packed(out, names, sum(path.stat().st_size for path in files), pictures, warnings)


@contextmanager
def _published(loaded: LoadedRun, *, removed: bool, withheld: bool) -> Iterator[LoadedRun]:
    """Yield the run itself, or a copy with the same predictions and less data of patients."""
    if not (removed or withheld):
        yield loaded
        return
    run, parent = loaded.run, loaded.manifest.fingerprint
    exemplars, settings, changes = run.exemplars, run.config.exemplars, list(run.changes)
    if removed:
        film = np.full_like(exemplars.film, NO_FILM)
        exemplars = replace(exemplars, films=(), thumbnails=exemplars.thumbnails[:0], film=film)
        settings = settings.model_copy(update={"show": False})
        changes.append(Change(parent, TAKEN_OUT))
    if withheld:  # the names of patients who must not be shown
        settings = settings.model_copy(update={"withheld": ()})
        changes.append(Change(parent, UNNAMED))
    config = run.config.model_copy(update={"exemplars": settings})
    run = replace(run, exemplars=exemplars, config=config, changes=tuple(changes))
    with tempfile.TemporaryDirectory(prefix="medgrape-hub-") as folder:
        yield loaded.save_changed(run, Path(folder) / "run")


def _local_paths(run: Run) -> Iterator[str]:
    """Warn about paths of this machine in the settings, which are part of the run and are published."""
    for key in ("backbone.name", "backbone.weights", "text.encoder"):
        value = attrgetter(key)(run.config)
        if Path(value).is_absolute() or value.startswith("~"):
            yield f"config.toml names a folder on your machine: {key} = {value!r}."


@dataclass(frozen=True)
class Pushed:
    """A run on the hub."""

    repository: str
    commit: str
    packed: Packed
    removed: tuple[str, ...]  # Files of the previous run that this one does not have

    def to_json(self) -> dict[str, Any]:
        """Return all fields but the folder as plain data."""
        packed = {name: value for name, value in self.packed.to_json().items() if name != "folder"}
        return {"repository": self.repository, "commit": self.commit, "removed": list(self.removed)} | packed


def push(run: Path | str, publishing: Publishing, *, branch: str = MAIN, private: bool = False) -> Pushed:
    """Pack a run and upload it to the repository, which is created if it does not exist."""
    refuse_unnameable(publishing.repository)
    try:
        from huggingface_hub import HfApi
    except ModuleNotFoundError as missing:
        raise RunError(f"To push a run to a model hub takes one more package: {NEEDED}.") from missing
    with tempfile.TemporaryDirectory(prefix="medgrape-hub-") as folder:
        packed = pack(Path(run), Path(folder) / "run", publishing)
        try:
            return _upload(HfApi(library_name="medgrape"), publishing.repository, packed, branch, private=private)
        except RunError:
            raise
        except Exception as error:  # every kind of transport has its own exceptions
            raise RunError(hub_error_message(error, f"{publishing.repository}@{branch}")) from error


def _upload(api: "HfApi", repository: str, packed: Packed, branch: str, *, private: bool) -> Pushed:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    api.create_repo(repository, private=private or None, exist_ok=True)  # None: the owner's default
    if private and not api.model_info(repository).private:
        raise RunError(f"{repository} already exists and is public; make it private on the hub, or omit --private.")
    if branch != MAIN:
        api.create_branch(repository, branch=branch, exist_ok=True)
    removed = sorted(_previous_files(api, repository, branch) - set(packed.files))
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        *(CommitOperationAdd(name, str(packed.folder / name)) for name in packed.files),
        *(CommitOperationDelete(name) for name in removed),
    ]
    commit = api.create_commit(repository, operations, commit_message="A run of medgrape", revision=branch)
    return Pushed(repository, str(commit.oid), packed, tuple(removed))


def _previous_files(api: "HfApi", repository: str, branch: str) -> set[str]:
    """Return the files of an earlier run on the branch; other files are never removed."""
    from huggingface_hub.errors import EntryNotFoundError

    present = set(api.list_repo_files(repository, revision=branch))
    if MANIFEST not in present:
        return set()
    try:
        manifest = Path(api.hf_hub_download(repository, MANIFEST, revision=branch))
        return present & set(manifest_files(manifest.parent))
    except (EntryNotFoundError, RunError):  # not a run of medgrape
        return set()
