"""A folder whose every file is known by its checksum: nothing missing, nothing extra, nothing altered."""

import json
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from medgrape.data.files import sha256, whole_file
from medgrape.errors import UserError

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
    files = _read(folder)["files"]
    if not (isinstance(files, dict) and all(isinstance(told, str) for told in files.values())):
        raise RunError(f"{folder / MANIFEST} does not name files with their checksums.")
    return files


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
        if not {"format", "files", "versions", "dataset"} <= set(told):
            raise ValueError("it lacks something")
    except FileNotFoundError:
        raise _no_run(folder) from None
    except NotADirectoryError:
        raise RunError(f"{folder} is a file; this wants the folder of a run, as medgrape train leaves it.") from None
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"{folder / MANIFEST} cannot be read: {error}.") from error
    if told["format"] != FORMAT:
        raise RunError(f"{folder} is a run of format {told['format']}, this version reads {FORMAT}; train it anew.")
    return dict(told)


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
