"""A run on a model hub: exactly the files that its manifest names are fetched, compared and laid out as a run.

A repository may hold whatever else: a README, other people's weights, code. None of it is asked for.
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

_LOGIN = "log in with: hf auth login, or set HF_TOKEN"


def told_of_hub(error: Exception, wanted: str, file: str = MANIFEST) -> str:
    """Why something could not be fetched from the hub, or brought there."""
    from huggingface_hub import errors

    repository, _, revision = wanted.partition("@")
    sentences: tuple[tuple[type[Exception], str], ...] = (
        (errors.GatedRepoError, f"{repository} is gated: ask for access on its page of the hub, then {_LOGIN}."),
        (
            errors.RepositoryNotFoundError,
            f"The hub has no {repository}, or does not show it to you: check the name, or {_LOGIN}. There is no "
            f"folder {repository} here either.",
        ),
        (errors.RevisionNotFoundError, f"{repository} has no branch, tag or commit {revision!r}; see its history."),
        (errors.LocalEntryNotFoundError, _unreachable(wanted, file)),
        (errors.EntryNotFoundError, _lacking(wanted, file)),
        (errors.HFValidationError, f"{repository!r} is no name on a model hub; give org/name."),
        (errors.OfflineModeIsEnabled, "HF_HUB_OFFLINE forbids to ask the hub; unset it."),
        (errors.HfHubHTTPError, _answered(error)),
    )
    for kind, sentence in sentences:
        if isinstance(error, kind):
            return sentence
    if isinstance(error, ValueError):  # its word for a card that it cannot show
        return f"The hub refuses the model card; is the licence spelled as hubs do? {' '.join(str(error).split())}"
    return (
        f"The hub cannot be asked about {wanted} ({type(error).__name__}): check name, network and HF_ENDPOINT; "
        "with HF_HUB_OFFLINE=1 what was fetched before is taken."
    )


def _unreachable(wanted: str, file: str) -> str:
    what = f"no folder {wanted} here" if file == MANIFEST else f"no {file} of {wanted}"
    return (
        f"There is {what} nor in the hub's cache, and the hub cannot be reached; check the path, the network and "
        "HF_HUB_OFFLINE."
    )


def _lacking(wanted: str, file: str) -> str:
    if file == MANIFEST:
        return f"{wanted} is on the hub, but no run of medgrape: it has no {MANIFEST}."
    return f"{wanted} lacks {file}, which its manifest names; ask whoever published it to push it again."


def _answered(error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return f"The hub does not let you do that; {_LOGIN}, with a token that may write if you push."
    return f"The hub answered {status or 'with an error'}; try again later."


NEEDED = "pip install 'medgrape[hub]'"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_KINDS = (".safetensors", ".json", ".jsonl", ".toml", ".png", ".tfevents.medgrape")
"""What files of a run are: numbers, text and pictures, none of which is ever executed or unpickled."""


@dataclass(frozen=True)
class HubName:
    """A repository and, if somebody said so, a branch, a tag or a commit of it."""

    repository: str
    revision: str | None = None

    def __str__(self) -> str:
        return self.repository if self.revision is None else f"{self.repository}@{self.revision}"

    @property
    def pinned(self) -> bool:
        """Whether it means the same files for ever: a branch moves on, and a tag can be moved."""
        return self.revision is not None and _COMMIT.fullmatch(self.revision) is not None

    def told(self, commit: str) -> str:
        """What to say of a name that may mean another model tomorrow."""
        return f"{self} is commit {commit} today; to keep to it, write {self.repository}@{commit}."


def hub_name(run: Path | str, revision: str | None = None) -> HubName | None:
    """``org/name`` or ``org/name@revision``, unless something here goes by that name: then it is a path, told as None.

    Where there is a folder ``org`` here, ``org/name`` is taken for a path in it that was mistyped; a revision says
    that the hub is meant.
    """
    text = run.as_posix() if isinstance(run, Path) else run
    name, at, said = text.partition("@")
    if Path(text).exists() or not _NAME.fullmatch(name) or name.endswith(".onnx") or (at and not said):
        if revision is not None:
            raise RunError(f"{run} is no org/name on a model hub, so it has no revision {revision!r}; leave that out.")
        return None
    if revision is not None and said:
        raise RunError(f"{run} names a revision already; leave revision={revision!r} out.")
    wanted = revision or said or None
    return None if wanted is None and Path(name.partition("/")[0]).is_dir() else HubName(name, wanted)


def refuse_unnameable(repository: str) -> None:
    """What cannot be a repository's name on a hub."""
    if not _NAME.fullmatch(repository):
        raise RunError(f"{repository!r} is no repository on a model hub; give ORG/NAME.")


def fetch_run(wanted: HubName, *, track: Track = quietly) -> Path:
    """The folder of a run from the hub, or from the hub's cache on this disk; every checksum was compared."""
    manifest = _manifest(wanted)
    origin = HubOrigin(wanted.repository, manifest.parent.name)
    checksums = manifest_files(manifest.parent)
    _refuse_strange(origin, checksums)
    names = sorted(checksums)
    files = {
        name: _fetched(wanted, name, origin.commit)
        for name in track(names, f"fetching {wanted.repository}", len(names))
    }
    return _laid_out(origin, manifest, files, checksums)


def _manifest(wanted: HubName) -> Path:
    """Of what a name means now: a branch is looked up on the hub each time, unless that is forbidden."""
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
        try:  # once, and quickly: the library itself would go on trying for half a minute
            get_hf_file_metadata(hf_hub_url(wanted.repository, MANIFEST, revision=wanted.revision))
        except Exception as error:  # every kind of transport has errors of its own
            raise RunError(told_of_hub(error, str(wanted))) from error
    return _fetched(wanted, MANIFEST, wanted.revision)


def _fetched(wanted: HubName, name: str, revision: str | None) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class Silent(tqdm):
        """Whoever waits sees our own bar."""

        def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 (passed on)
            super().__init__(*given, **(named | {"disable": True}))  # type: ignore[no-untyped-call]

    try:
        return Path(hf_hub_download(wanted.repository, name, revision=revision, tqdm_class=Silent))
    except Exception as error:  # every kind of transport has errors of its own
        raise RunError(told_of_hub(error, str(wanted), name)) from error


def _refuse_strange(origin: HubOrigin, checksums: Mapping[str, str]) -> None:
    """A manifest is somebody else's text: nothing that it names may lie elsewhere, or be what a run has no use for."""
    for name in checksums:
        path = PurePosixPath(name)
        strange = path.is_absolute() or ".." in path.parts or path.as_posix() != name  # nor by a second name
        if strange or "\\" in name or not name.endswith(_KINDS):
            raise RunError(f"{origin} names {name!r}, which no run of medgrape holds; it is not fetched.")


def _laid_out(origin: HubOrigin, manifest: Path, files: Mapping[str, Path], checksums: Mapping[str, str]) -> Path:
    """A folder with the run's files and nothing else, as second names of what is in the hub's cache."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HOME) / "medgrape" / origin.repository.replace("/", "--") / origin.commit
    expected = {**checksums, MANIFEST: sha256(manifest)}
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if _altered(folder, expected) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            origin.note(folder)  # before there is a copy: one that nobody knows for a copy could be changed
            with whole_folder(folder) as draft:
                for name, source in {**files, MANIFEST: manifest}.items():
                    (draft / name).parent.mkdir(parents=True, exist_ok=True)
                    linked(source.resolve(), draft / name)
                _refuse_altered(origin, draft, expected, manifest.parent)
        elif origin_of(folder) != origin:
            origin.note(folder)
    return folder


def _refuse_altered(origin: HubOrigin, folder: Path, expected: Mapping[str, str], cached: Path) -> None:
    wrong = _altered(folder, expected)
    if wrong is not None:
        raise RunError(
            f"{origin}: {wrong} is not the file of its manifest. It was altered on the hub, or the copy in "
            f"{cached} is damaged: remove that and try again, or ask whoever published it."
        )


def _altered(folder: Path, expected: Mapping[str, str]) -> str | None:
    """The first file that is not as expected, if any."""
    return next(
        (
            name
            for name, checksum in sorted(expected.items())
            if not (folder / name).is_file() or sha256(folder / name) != checksum
        ),
        None,
    )
