"""The manifest of a run: SHA-256 of every file, the plugins it needs, its origin on a hub, and files beside it.

Another version of a plugin may compute something else from the same weights. So a run also stores the model's logits
for one synthetic film, and a model that returns other logits is refused, whatever the versions are.
"""

import json
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from torch import Tensor, nn

from medgrape.config import Config
from medgrape.errors import UserError, first_line
from medgrape.files import sha256, write_json
from medgrape.model.backbones.base import BackboneError
from medgrape.plugins import Kind, PluginError, find_plugin, find_recorded_plugin

MANIFEST = "manifest.json"
FORMAT = 2  # Incremented when an older version can no longer read a run
_VERSIONS = ("torch", "safetensors", "numpy")
Records = Mapping[str, Mapping[str, str]]  # Kind to name, package and version
OWN_PARTS, ANSWER = "own_parts", "answer"
CLOSE = 1e-3  # Largest relative difference of the logits: machines round differently
_COMPUTED: tuple[Kind, ...] = ("backbone", "head")  # Needed for inference; a text encoder only learns concepts


class RunError(UserError):
    """A run folder that cannot be used."""


@dataclass(frozen=True)
class Manifest:
    """The files of a run, and the software and data that made it."""

    files: dict[str, str]  # SHA-256 of every file, by name
    versions: dict[str, str]
    dataset: dict[str, str]  # Name and checksum of the training data set

    @property
    def fingerprint(self) -> str:
        """A short name for exactly these weights."""
        return self.files["model.safetensors"][:12]


def seal(folder: Path, dataset: dict[str, str]) -> Manifest:
    """Write the manifest of all files in ``folder``."""
    files = {name: sha256(folder / name) for name in _names(folder)}
    versions = {name: version(name) for name in ("medgrape", *_VERSIONS)} | {"python": platform.python_version()}
    payload = {"format": FORMAT, "dataset": dataset, "versions": versions, "files": files}
    write_json(folder / MANIFEST, payload, indent=2)
    return Manifest(files, versions, dataset)


def unseal(folder: Path) -> Manifest:
    """Return the manifest after verifying every file; a missing, extra or altered file is an error that names it."""
    payload = _read(folder)
    files: dict[str, str] = payload["files"]
    present = set(_names(folder))
    if missing := sorted(set(files) - present):
        raise RunError(f"{folder} lacks {missing[0]}; copy the whole run again, or train it anew.")
    if extra := sorted(present - set(files)):
        raise RunError(f"{folder} holds {extra[0]}, which is not part of the run; move it elsewhere.")
    for name, expected in sorted(files.items()):
        if sha256(folder / name) != expected:
            raise RunError(f"{folder / name} was altered after training; copy the run again, or train it anew.")
    return Manifest(files, payload["versions"], payload["dataset"])


def manifest_files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file that the manifest names, without verifying the files."""
    files: dict[str, str] = _read(folder)["files"]
    return files


@contextmanager
def run_errors(run: Path) -> Iterator[None]:
    """Turn exceptions while a run is loaded into a ``RunError`` of one sentence."""
    try:
        yield
    except (BackboneError, PluginError, RunError):
        raise
    except FileNotFoundError as error:
        raise RunError(f"{run} is incomplete ({first_line(error)}); copy it again, or train it anew.") from error
    except (AttributeError, LookupError, ValueError, TypeError, RuntimeError, SafetensorError) as error:
        raise RunError(f"{run} does not fit this version of medgrape: {first_line(error)}") from error


def version_of(folder: Path) -> str:
    """Return a short name for the content of a run, thresholds included; for an export, of the file."""
    return sha256(folder if folder.is_file() else folder / MANIFEST)[:16]


def refuse_inside_run(path: Path) -> None:
    """Refuse a path inside a run, which would no longer load with another file in it."""
    for folder in (path.resolve(), *path.resolve().parents):
        if (folder / MANIFEST).is_file():
            raise RunError(
                f"{path} lies in the run {folder}, which must not contain other files; choose another place."
            )


def backup_path(folder: Path) -> Path:
    """Return the name of a run for the moment in which a changed one replaces it."""
    return folder.with_name(f".{folder.name}.before")


def _read(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        payload = json.loads(path.read_text("utf-8"))
        if not isinstance(payload, dict) or not {"format", "files", "versions", "dataset"} <= set(payload):
            raise ValueError("a key is missing")
    except FileNotFoundError:
        aside = backup_path(folder.resolve())
        if aside.is_dir() and not folder.exists():
            message = f"A change of {folder} was interrupted; the run is whole, as {aside}: rename it back."
            raise RunError(message) from None
        raise RunError(f"{folder} is no run: it has no {MANIFEST}. Make one with: medgrape train.") from None
    except NotADirectoryError:
        raise RunError(f"{folder} is a file, not the folder of a run, which medgrape train makes.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path} cannot be read: {error}.") from error
    if payload["format"] != FORMAT:
        raise RunError(f"{folder} is a run of format {payload['format']}, this version reads {FORMAT}; train it anew.")
    for key in ("files", "versions", "dataset"):
        if not isinstance(payload[key], dict) or not all(isinstance(text, str) for text in payload[key].values()):
            raise RunError(f"{path}: {key} is not a mapping of names to text; copy the whole run again.")
    if not {"name", "checksum"} <= set(payload["dataset"]):
        raise RunError(f"{path} lacks the name or the checksum of its data set; train it anew.")
    return payload


def _names(folder: Path) -> list[str]:
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    return sorted(names - {MANIFEST})


@dataclass(frozen=True)
class HubOrigin:
    """One commit of one repository on a model hub, which never changes."""

    repository: str
    commit: str

    def __str__(self) -> str:
        return f"{self.repository}@{self.commit}"

    def note(self, folder: Path) -> None:
        """Write the origin to a file beside the local copy of the run."""
        write_json(_origin_file(folder), asdict(self), indent=2)


def origin_of(folder: Path) -> HubOrigin | None:
    """Return the origin of a run that was downloaded from a hub; None for a run that was trained or copied here."""
    try:
        return HubOrigin(**json.loads(_origin_file(folder.resolve()).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def refuse_hub_copy(folder: Path) -> None:
    """Refuse to change the local copy of a commit, which would then differ from the commit of that name."""
    origin = origin_of(folder)
    if origin is not None:
        raise RunError(
            f"This is the copy of {origin}, which must not be changed; save a run of your own first: "
            f'mg.load("{origin.repository}", revision="{origin.commit}").save("runs/own").'
        )


def place_beside(run: Path) -> Path:
    """Return the path whose name prefixes files beside the run; for a run of a hub, in the current folder."""
    origin = origin_of(run)
    return run.resolve() if origin is None else Path.cwd() / origin.repository.rpartition("/")[2]


def _origin_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.hub.json")


def report_folder(run: Path, split: str) -> Path:
    """Return the folder of the evaluation report, beside the run."""
    beside = place_beside(run)
    return beside.with_name(f"{beside.name}-{split}")


def audit_folder(run: Path, split: str) -> Path:
    """Return the folder of the audit, beside the run."""
    return report_folder(run, f"audit-{split}")


def parts_used(config: Config) -> dict[str, dict[str, str]]:
    """Return the records of the plugins that the settings name."""
    names: dict[Kind, str] = {"backbone": config.backbone.name}
    if config.model.method == "grape":
        names |= {"text encoder": config.text.encoder, "head": config.model.head}
    plugins = {kind: find_plugin(kind, name) for kind, name in names.items()}
    return {kind: plugin.record for kind, plugin in plugins.items() if plugin is not None}


def refuse_missing(architecture: Mapping[str, Any]) -> None:
    """Raise an error that names the package to install, before anything is built."""
    for kind in _COMPUTED:
        if kind in architecture.get(OWN_PARTS, {}):
            find_recorded_plugin(kind, architecture[OWN_PARTS][kind])


def needed_parts(parts: Records) -> list[Mapping[str, str]]:
    """Return the plugins without which a run cannot be loaded."""
    return [parts[kind] for kind in _COMPUTED if kind in parts]


def keep_parts(parts: Records, model: nn.Module, side: int) -> dict[str, Any]:
    """Return the entries about plugins in a run's architecture; empty without plugins."""
    records = {kind: dict(record) for kind, record in parts.items()}
    return {OWN_PARTS: records, ANSWER: _logits(model, side).tolist()} if parts else {}


def refuse_changed(architecture: Mapping[str, Any], model: nn.Module, side: int, folder: Path) -> None:
    """Refuse a model whose plugins compute other logits than when the run was saved."""
    plugins = needed_parts(architecture.get(OWN_PARTS, {}))
    if not plugins:
        return
    saved, now = torch.tensor(architecture[ANSWER]), _logits(model, side)
    if not (saved - now).abs().max() <= CLOSE * max(1.0, float(saved.abs().max())):
        packages = " ".join(sorted({f"{plugin['distribution']}=={plugin['version']}" for plugin in plugins}))
        reason = "computes other results with the plugins installed here than when it was saved"
        raise RunError(f"{folder} {reason}: pip install {packages}")


@torch.no_grad()
def _logits(model: nn.Module, side: int) -> Float[Tensor, " classes"]:
    """Return the logits for a synthetic film that is the same everywhere."""
    steps = torch.linspace(0.0, 1.0, side)
    down, across = steps.view(-1, 1), steps.view(1, -1)
    greys = 0.5 + 0.25 * torch.sin(9.0 * down) * torch.cos(7.0 * across) + 0.2 * (down - across)
    was_training = model.training
    output = model.eval()(greys.clamp(0.0, 1.0).view(1, 1, side, side))
    model.train(was_training)
    logits: Tensor = output.logits if hasattr(output, "logits") else output
    return logits[0].float().cpu()
