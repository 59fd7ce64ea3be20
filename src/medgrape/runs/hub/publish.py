"""Bringing a run to a model hub: one commit with the run's files and its card, or nothing."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medgrape.files import copied, whole_folder
from medgrape.runs.checkpoint import Change, LoadedRun, Run, load_run
from medgrape.runs.hub.card import CARD, TAKEN_OUT, UNNAMED, written
from medgrape.runs.hub.download import NEEDED, refuse_unnameable, told_of_hub
from medgrape.runs.hub.figures import measured_beside
from medgrape.runs.manifest import MANIFEST, RunError, manifest_files, refuse_inside_run

if TYPE_CHECKING:
    from huggingface_hub import HfApi


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


MAIN = "main"


@dataclass(frozen=True)
class Pushed:
    """What is on the hub now."""

    repository: str
    commit: str
    packed: Packed
    removed: tuple[str, ...]
    """Files of the run that was there before, which this one does not have."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        told = {"repository": self.repository, "commit": self.commit, "removed": list(self.removed)}
        return told | {name: value for name, value in self.packed.to_json().items() if name != "folder"}


def push(run: Path | str, publishing: Publishing, *, branch: str = MAIN, private: bool = False) -> Pushed:
    """Pack a run and bring it to the repository, which is made if it is not there."""
    refuse_unnameable(publishing.repository)
    api = _api()
    with tempfile.TemporaryDirectory(prefix="medgrape-hub-") as folder:
        packed = pack(Path(run), Path(folder) / "run", publishing)
        try:
            return _brought(api, publishing.repository, packed, branch, private=private)
        except RunError:
            raise
        except Exception as error:  # every kind of transport has errors of its own
            raise RunError(told_of_hub(error, f"{publishing.repository}@{branch}")) from error


def _api() -> "HfApi":
    try:
        from huggingface_hub import HfApi
    except ModuleNotFoundError as missing:
        raise RunError(f"To bring a run to a model hub takes one more package: {NEEDED}.") from missing
    return HfApi(library_name="medgrape")


def _brought(api: "HfApi", repository: str, packed: Packed, branch: str, *, private: bool) -> Pushed:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    api.create_repo(repository, private=private or None, exist_ok=True)  # else as its owner has it by default
    if private and not api.model_info(repository).private:
        raise RunError(
            f"{repository} is there already, and public; make it private on the hub, or leave --private out."
        )
    if branch != MAIN:
        api.create_branch(repository, branch=branch, exist_ok=True)
    gone = sorted(_there_before(api, repository, branch) - set(packed.files))
    commit = api.create_commit(
        repository,
        [
            *(CommitOperationAdd(name, str(packed.folder / name)) for name in packed.files),
            *(CommitOperationDelete(name) for name in gone),
        ],
        commit_message="A run of medgrape",
        revision=branch,
    )
    return Pushed(repository, str(commit.oid), packed, tuple(gone))


def _there_before(api: "HfApi", repository: str, branch: str) -> set[str]:
    """Files of an earlier run on the branch, as far as they are there; nobody else's are ever removed."""
    from huggingface_hub.errors import EntryNotFoundError

    there = set(api.list_repo_files(repository, revision=branch))
    if MANIFEST not in there:
        return set()
    try:
        manifest = Path(api.hf_hub_download(repository, MANIFEST, revision=branch))
        return there & set(manifest_files(manifest.parent))
    except (EntryNotFoundError, RunError):  # not one of ours
        return set()
