"""Download of a run from a model hub: exactly the files that its manifest names, verified, in a folder of their own.

A repository may contain other files: a README, other weights, code. They are not downloaded.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from filelock import FileLock

from medgrape.files import linked, sha256, whole_folder
from medgrape.progress import Track, quietly
from medgrape.runs.manifest import MANIFEST, HubOrigin, RunError, manifest_files, origin_of

NEEDED = "pip install 'medgrape[hub]'"
_LOGIN = "log in with: hf auth login, or set HF_TOKEN"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SUFFIXES = (".safetensors", ".json", ".jsonl", ".toml", ".png", ".tfevents.medgrape")
"""Types of the files of a run: numbers, text and pictures, which are never executed or unpickled."""


@dataclass(frozen=True)
class HubName:
    """A repository and, optionally, a branch, a tag or a commit of it."""

    repository: str
    revision: str | None = None

    def __str__(self) -> str:
        return self.repository if self.revision is None else f"{self.repository}@{self.revision}"

    @property
    def pinned(self) -> bool:
        """Whether it names a commit, which never changes; branches and tags can move."""
        return self.revision is not None and _COMMIT.fullmatch(self.revision) is not None

    def notice(self, commit: str) -> str:
        """Return a notice for a name that may mean another model tomorrow."""
        return f"{self} is commit {commit} today; to keep to it, write {self.repository}@{commit}."


def hub_name(run: Path | str, revision: str | None = None) -> HubName | None:
    """Parse ``org/name`` or ``org/name@revision``; None for a path.

    An existing path comes first. If there is a folder ``org`` here, ``org/name`` without a revision is a mistyped path.
    """
    text = run.as_posix() if isinstance(run, Path) else run
    name, at, own_revision = text.partition("@")
    if Path(text).exists() or not _NAME.fullmatch(name) or name.endswith(".onnx") or (at and not own_revision):
        if revision is not None:
            raise RunError(f"{run} is no org/name on a model hub, so it has no revision {revision!r}; leave that out.")
        return None
    if revision is not None and own_revision:
        raise RunError(f"{run} names a revision already; leave revision={revision!r} out.")
    revision = revision or own_revision or None
    return None if revision is None and Path(name.partition("/")[0]).is_dir() else HubName(name, revision)


def refuse_unnameable(repository: str) -> None:
    """Refuse text that cannot be a repository's name on a hub."""
    if not _NAME.fullmatch(repository):
        raise RunError(f"{repository!r} is no repository on a model hub; give ORG/NAME.")


def fetch_run(wanted: HubName, *, track: Track = quietly) -> Path:
    """Return the folder of a run from the hub or its local cache, after verifying every checksum."""
    manifest = _manifest(wanted)
    origin = HubOrigin(wanted.repository, manifest.parent.name)
    checksums = manifest_files(manifest.parent)
    for name in checksums:  # a manifest is untrusted: it may only name files inside the run, of known types
        path = PurePosixPath(name)
        outside = path.is_absolute() or ".." in path.parts or path.as_posix() != name
        if outside or "\\" in name or not name.endswith(_SUFFIXES):
            raise RunError(
                f"The manifest of {origin} lists {name!r}, which is not a file of a medgrape run; "
                "nothing was downloaded."
            )
    names = track(sorted(checksums), f"fetching {wanted.repository}", len(checksums))
    files = {name: _downloaded(wanted, name, origin.commit) for name in names}
    return _run_folder(origin, manifest, files, checksums)


def _manifest(wanted: HubName) -> Path:
    """Download the manifest; a branch is looked up on the hub each time, unless the library is offline."""
    try:
        from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
    except ModuleNotFoundError as missing:
        raise RunError(
            f"There is no folder {wanted} here, and a run from a model hub needs one more package: {NEEDED}."
        ) from missing
    if wanted.pinned:
        cached = try_to_load_from_cache(wanted.repository, MANIFEST, revision=wanted.revision)
        if isinstance(cached, str):
            return Path(cached)
    if not constants.is_offline_mode():
        try:  # once and quickly: the library itself would retry for half a minute
            get_hf_file_metadata(hf_hub_url(wanted.repository, MANIFEST, revision=wanted.revision))
        except Exception as error:  # every kind of transport has its own exceptions
            raise RunError(hub_error_message(error, str(wanted))) from error
    return _downloaded(wanted, MANIFEST, wanted.revision)


def _downloaded(wanted: HubName, name: str, revision: str | None) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class Silent(tqdm):
        """No bar of its own, beside that of ``track``."""

        def __init__(self, *args: Any, **named: Any) -> None:  # noqa: ANN401 (passed on)
            super().__init__(*args, **(named | {"disable": True}))  # type: ignore[no-untyped-call]

    try:
        return Path(hf_hub_download(wanted.repository, name, revision=revision, tqdm_class=Silent))
    except Exception as error:  # every kind of transport has its own exceptions
        raise RunError(hub_error_message(error, str(wanted), name)) from error


def _run_folder(origin: HubOrigin, manifest: Path, files: Mapping[str, Path], checksums: Mapping[str, str]) -> Path:
    """Return a folder with the run's files and nothing else, hard links to the hub's cache where possible."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HOME) / "medgrape" / origin.repository.replace("/", "--") / origin.commit
    expected = {**checksums, MANIFEST: sha256(manifest)}
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if _altered(folder, expected) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            origin.note(folder)  # first, as a copy without a recorded origin could be changed
            with whole_folder(folder) as draft:
                for name, source in {**files, MANIFEST: manifest}.items():
                    (draft / name).parent.mkdir(parents=True, exist_ok=True)
                    linked(source.resolve(), draft / name)
                wrong = _altered(draft, expected)
                if wrong is not None:
                    raise RunError(
                        f"{origin}: {wrong} is not the file of its manifest. It was altered on the hub, or the copy in "
                        f"{manifest.parent} is damaged: remove that and try again, or ask whoever published it."
                    )
        elif origin_of(folder) != origin:
            origin.note(folder)
    return folder


def _altered(folder: Path, expected: Mapping[str, str]) -> str | None:
    """Return the first file that is missing or has another checksum."""
    paths = ((name, folder / name, checksum) for name, checksum in sorted(expected.items()))
    return next((name for name, path, checksum in paths if not path.is_file() or sha256(path) != checksum), None)


def hub_error_message(error: Exception, wanted: str, file: str = MANIFEST) -> str:
    """Return one sentence for an exception of the hub's library."""
    from huggingface_hub import errors

    repository, _, revision = wanted.partition("@")
    status = getattr(getattr(error, "response", None), "status_code", None)
    answer = f"The hub answered {status or 'with an error'}; try again later."
    if status in (401, 403):
        answer = f"The hub does not let you do that; {_LOGIN}, with a token that may write if you push."
    missing = f"no {file} of {wanted}"
    lacking = f"{wanted} lacks {file}, which its manifest names; ask whoever published it to push it again."
    if file == MANIFEST:
        missing = f"no folder {wanted} here"
        lacking = f"{wanted} is on the hub, but no run of medgrape: it has no {MANIFEST}."
    unknown = (
        f"The hub has no {repository}, or does not show it to you: check the name, or {_LOGIN}. There is no folder "
        f"{repository} here either."
    )
    cause = "the hub cannot be reached; check the path, the network and HF_HUB_OFFLINE"
    unreachable = f"There is {missing} nor in the hub's cache, and {cause}."
    messages: tuple[tuple[type[Exception], str], ...] = (  # subclasses first
        (errors.GatedRepoError, f"{repository} is gated: ask for access on its page of the hub, then {_LOGIN}."),
        (errors.RepositoryNotFoundError, unknown),
        (errors.RevisionNotFoundError, f"{repository} has no branch, tag or commit {revision!r}; see its history."),
        (errors.LocalEntryNotFoundError, unreachable),
        (errors.EntryNotFoundError, lacking),
        (errors.HFValidationError, f"{repository!r} is no name on a model hub; give org/name."),
        (errors.OfflineModeIsEnabled, "HF_HUB_OFFLINE is set, so the hub is not asked; unset it."),
        (errors.HfHubHTTPError, answer),
        (
            ValueError,
            f"The hub refuses the model card; is the licence spelled as hubs do? {' '.join(str(error).split())}",
        ),
    )
    for kind, message in messages:
        if isinstance(error, kind):
            return message
    return (
        f"The hub cannot be asked about {wanted} ({type(error).__name__}): check name, network and HF_ENDPOINT; "
        "with HF_HUB_OFFLINE=1 the copy in its cache is used."
    )
