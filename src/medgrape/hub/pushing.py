"""Bringing a run to a model hub: one commit with the run's files and its card, or nothing."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medgrape.hub.folder import Packed, Publishing, pack
from medgrape.model.hub_words import told_of_hub
from medgrape.model.manifest import MANIFEST, RunError, manifest_files
from medgrape.model.run_hub import NEEDED, refuse_unnameable

if TYPE_CHECKING:
    from huggingface_hub import HfApi

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
