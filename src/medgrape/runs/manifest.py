"""Where a run on this disk came from, if that was a model hub: the copy stays as it was fetched."""

import json
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from medgrape.errors import UserError, first_line
from medgrape.files import sha256, whole_file
from medgrape.model.backbones.base import BackboneError
from medgrape.plugins import PartError

MANIFEST = "manifest.json"
FORMAT = 2
"""Counted up whenever an older version could not read a run any more."""
_VERSIONS = ("torch", "safetensors", "numpy")


class RunError(UserError):
    """A run folder that cannot be used as it is."""


@dataclass(frozen=True)
class Manifest:
    """What a run is made of and what it was made from."""

    files: dict[str, str]
    """SHA-256 of every file, by name."""
    versions: dict[str, str]
    dataset: dict[str, str]
    """Name and checksum of the data set that it was trained on."""

    @property
    def fingerprint(self) -> str:
        """One short name for exactly these weights."""
        return self.files["model.safetensors"][:12]


def seal(folder: Path, dataset: dict[str, str]) -> Manifest:
    """Write the manifest of everything that is in ``folder``."""
    files = {name: sha256(folder / name) for name in _names(folder)}
    versions = {name: version(name) for name in ("medgrape", *_VERSIONS)} | {"python": platform.python_version()}
    manifest = Manifest(files, versions, dataset)
    told = {"format": FORMAT, "dataset": dataset, "versions": versions, "files": files}
    with whole_file(folder / MANIFEST) as draft:
        draft.write_text(json.dumps(told, indent=2) + "\n", "utf-8")
    return manifest


def unseal(folder: Path) -> Manifest:
    """The manifest, after looking at every file; one that is missing, extra or altered is refused by name."""
    told = _read(folder)
    files: dict[str, str] = told["files"]
    there = set(_names(folder))
    for name in sorted(set(files) - there):
        raise RunError(f"{folder} lacks {name}; copy the whole run again, or train it anew.")
    for name in sorted(there - set(files)):
        raise RunError(f"{folder} holds {name}, which is not part of the run; move it elsewhere.")
    for name, expected in sorted(files.items()):
        if sha256(folder / name) != expected:
            raise RunError(f"{folder / name} was altered after training; copy the run again, or train it anew.")
    return Manifest(files, told["versions"], told["dataset"])


def manifest_files(folder: Path) -> dict[str, str]:
    """SHA-256 of every file that a manifest names, before any of them is looked at."""
    files: dict[str, str] = _read(folder)["files"]
    return files


@contextmanager
def fitting(run: Path) -> Iterator[None]:
    """Whatever a run lacks, or has in another form, while it is read: told as one sentence."""
    try:
        yield
    except (BackboneError, PartError, RunError):
        raise
    except FileNotFoundError as error:
        raise RunError(f"{run} is not whole ({first_line(error)}); copy it again, or train it anew.") from error
    except (AttributeError, LookupError, ValueError, TypeError, RuntimeError, SafetensorError) as error:
        raise RunError(f"{run} does not fit this version of medgrape: {first_line(error)}") from error


def version_of(folder: Path) -> str:
    """One short name for everything in a run, thresholds and all; other weights or other thresholds are another.

    An export is one file, and named by that.
    """
    return sha256(folder if folder.is_file() else folder / MANIFEST)[:16]


def refuse_inside_run(path: Path) -> None:
    """A run would no longer load with another file in it."""
    for folder in (path.resolve(), *path.resolve().parents):
        if (folder / MANIFEST).is_file():
            raise RunError(f"{path} lies in the run {folder}, which holds nothing but itself; choose another place.")


def set_aside(folder: Path) -> Path:
    """What a run is called for the moment in which a changed one takes its place."""
    return folder.with_name(f".{folder.name}.before")


def _read(folder: Path) -> dict[str, Any]:
    try:
        told = json.loads((folder / MANIFEST).read_text("utf-8"))
        if not isinstance(told, dict) or not {"format", "files", "versions", "dataset"} <= set(told):
            raise ValueError("it lacks something")
    except FileNotFoundError:
        raise _no_run(folder) from None
    except NotADirectoryError:
        raise RunError(f"{folder} is a file; this wants the folder of a run, as medgrape train leaves it.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{folder / MANIFEST} cannot be read: {error}.") from error
    if told["format"] != FORMAT:
        raise RunError(f"{folder} is a run of format {told['format']}, this version reads {FORMAT}; train it anew.")
    _refuse_malformed(folder, told)
    return told


def _refuse_malformed(folder: Path, told: dict[str, Any]) -> None:
    for kind in ("files", "versions", "dataset"):
        if not isinstance(told[kind], dict) or not all(isinstance(text, str) for text in told[kind].values()):
            raise RunError(f"{folder / MANIFEST} does not tell {kind} by name; copy the whole run again.")
    if not {"name", "checksum"} <= set(told["dataset"]):
        raise RunError(f"{folder / MANIFEST} does not name its data set and that one's checksum; train it anew.")


def _no_run(folder: Path) -> RunError:
    aside = set_aside(folder.resolve())
    if aside.is_dir() and not folder.exists():
        return RunError(
            f"{folder} was being changed when that was broken off; it is whole, as {aside}: rename it back."
        )
    return RunError(f"{folder} is no run: it has no {MANIFEST}. Make one with: medgrape train.")


def _names(folder: Path) -> list[str]:
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
    return sorted(name for name in found if name != MANIFEST)


@dataclass(frozen=True)
class HubOrigin:
    """One commit of one repository: for ever the same model."""

    repository: str
    commit: str

    def __str__(self) -> str:
        return f"{self.repository}@{self.commit}"

    def note(self, folder: Path) -> None:
        """Write it down beside a copy, never in it: a run holds nothing but itself."""
        with whole_file(_beside(folder)) as draft:
            draft.write_text(json.dumps(asdict(self), indent=2) + "\n", "utf-8")


def origin_of(folder: Path) -> HubOrigin | None:
    """What was noted beside a run; None for one that was trained or copied here."""
    try:
        return HubOrigin(**json.loads(_beside(folder.resolve()).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def refuse_hub_copy(folder: Path) -> None:
    """A commit that was changed here would no longer be what everybody else calls by that name."""
    origin = origin_of(folder)
    if origin is not None:
        raise RunError(
            f"This is the copy of {origin}, which stays as it was fetched; save a run of your own first: "
            f'mg.load("{origin.repository}", revision="{origin.commit}").save("runs/own").'
        )


def place_beside(run: Path) -> Path:
    """A name to put things beside a run by; of a copy from a hub, in the folder where somebody works."""
    origin = origin_of(run)
    return run.resolve() if origin is None else Path.cwd() / origin.repository.rpartition("/")[2]


def _beside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.hub.json")


def report_folder(run: Path, split: str) -> Path:
    """Beside the run, never in it: a run holds nothing that it was not trained to."""
    beside = place_beside(run)
    return beside.with_name(f"{beside.name}-{split}")


def audit_folder(run: Path, split: str) -> Path:
    """Beside the run, never in it."""
    return report_folder(run, f"audit-{split}")
