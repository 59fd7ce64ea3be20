"""A model's folder, on this disk or fetched from the model hub: its config, and the greys it was trained on."""

import json
import re
from pathlib import Path
from typing import Any

from medgrape.config import BackboneSettings
from medgrape.errors import nearest
from medgrape.model.backbones.base import BackboneError, Greys
from medgrape.plugins import names_of

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_TEXTS = ["config.json", "preprocessor_config.json"]
_WEIGHTS = ["model.safetensors", "model.safetensors.index.json", "model-*.safetensors"]


def find_folder(settings: BackboneSettings, *, with_weights: bool) -> Path:
    """The folder of that name, or the hub's model of that name at that commit, fetched once."""
    folder = Path(settings.name).expanduser()
    if folder.is_dir():
        return folder
    if not _HUB_NAME.fullmatch(settings.name):
        raise BackboneError(
            f"There is no backbone {settings.name}{nearest(settings.name, names_of('backbone'))}: give one of these, "
            "the folder of a model, or a model hub's name such as microsoft/resnet-50."
        )
    if not _COMMIT.fullmatch(settings.revision):
        raise BackboneError(
            f"{settings.name} is no folder here; if it is on a model hub, give its commit of 40 hex digits as revision."
        )
    return _fetch(settings.name, settings.revision, _TEXTS + (_WEIGHTS if with_weights else []))


def _fetch(name: str, revision: str, patterns: list[str]) -> Path:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError
    except ModuleNotFoundError as error:
        raise BackboneError("Models from a hub need transformers: pip install 'medgrape[text]'.") from error
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    except (OSError, HFValidationError) as error:
        raise BackboneError(
            f"{name} at {revision} could not be fetched from the model hub: check name, commit and network, "
            "or give the folder of a copy."
        ) from error


def has_weights(folder: Path) -> bool:
    """Whether the folder holds weights as safetensors."""
    return any((folder / name).is_file() for name in _WEIGHTS[:2])


def read_config(folder: Path) -> dict[str, Any]:
    """What ``config.json`` says."""
    if not (folder / "config.json").is_file():
        raise BackboneError(f"{folder} has no config.json: give the folder that a transformers model was saved in.")
    return _read_json(folder / "config.json")


def read_greys(folder: Path, channels: int) -> Greys:
    """What ``preprocessor_config.json`` says of mean and spread, for greys of 0 to 1; ImageNet's where it is silent."""
    path = folder / "preprocessor_config.json"
    said = _read_json(path) if path.is_file() else {}
    default = Greys.imagenet(channels)
    top = 255 * float(said.get("rescale_factor", 1 / 255)) if said.get("do_rescale", True) else 255.0
    if said.get("do_normalize", True):
        mean, spread = said.get("image_mean") or default.mean, said.get("image_std") or default.spread
    else:
        mean, spread = [0.0], [1.0]
    return Greys(_for_each(mean, top, channels, path), _for_each(spread, top, channels, path))


def _for_each(figures: Any, top: float, channels: int, path: Path) -> tuple[float, ...]:  # noqa: ANN401 - a JSON value
    figures = figures if isinstance(figures, list | tuple) else [figures]
    figures = list(figures) * channels if len(figures) == 1 else figures
    if len(figures) != channels:
        raise BackboneError(f"{path} gives means for {len(figures)} channels, config.json says {channels}.")
    return tuple(float(figure) / top for figure in figures)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise BackboneError(f"{path} is not JSON.") from error
    if not isinstance(found, dict):
        raise BackboneError(f"{path} should hold names and values.")
    return found
