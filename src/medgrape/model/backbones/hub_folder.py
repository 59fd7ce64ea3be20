"""The folder of a ``transformers`` model, local or downloaded from a model hub: its config and its normalisation."""

import json
import re
from pathlib import Path
from typing import Any

from medgrape.config import BackboneSettings
from medgrape.errors import nearest
from medgrape.model.backbones.base import BackboneError, Greys
from medgrape.plugins import part_names

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_TEXTS = ["config.json", "preprocessor_config.json"]
_WEIGHTS = ["model.safetensors", "model.safetensors.index.json", "model-*.safetensors"]


def find_folder(settings: BackboneSettings, *, with_weights: bool) -> Path:
    """Return the folder of that name, or the hub's model of that name and commit, downloaded once."""
    folder = Path(settings.name).expanduser()
    if folder.is_dir():
        return folder
    if not _HUB_NAME.fullmatch(settings.name):
        raise BackboneError(
            f"There is no backbone {settings.name}{nearest(settings.name, part_names('backbone'))}: give one of these, "
            "the folder of a model, or a model hub's name such as microsoft/resnet-50."
        )
    if not _COMMIT.fullmatch(settings.revision):
        raise BackboneError(
            f"There is no folder {settings.name}; if it is a model of a hub, give its commit, 40 hexadecimal digits, "
            "as revision."
        )
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError
    except ModuleNotFoundError as error:
        raise BackboneError("Models from a hub need transformers: pip install 'medgrape[text]'.") from error
    patterns = _TEXTS + (_WEIGHTS if with_weights else [])
    try:
        return Path(snapshot_download(settings.name, revision=settings.revision, allow_patterns=patterns))
    except (OSError, HFValidationError) as error:
        raise BackboneError(
            f"{settings.name} at {settings.revision} could not be fetched from the model hub: check name, commit and "
            "network, or give the folder of a copy."
        ) from error


def has_weights(folder: Path) -> bool:
    """Whether the folder contains weights as safetensors."""
    return any((folder / name).is_file() for name in _WEIGHTS[:2])


def read_config(folder: Path) -> dict[str, Any]:
    """Return the content of ``config.json``."""
    if not (folder / "config.json").is_file():
        raise BackboneError(f"{folder} has no config.json: give the folder that a transformers model was saved in.")
    return _read_json(folder / "config.json")


def read_greys(folder: Path, channels: int) -> Greys:
    """Return mean and spread of ``preprocessor_config.json`` for grey levels from 0 to 1; ImageNet's by default."""
    path = folder / "preprocessor_config.json"
    config = _read_json(path) if path.is_file() else {}
    default = Greys.imagenet(channels)
    top = 255 * float(config.get("rescale_factor", 1 / 255)) if config.get("do_rescale", True) else 255.0
    mean: Any = [0.0]
    spread: Any = [1.0]
    if config.get("do_normalize", True):
        mean, spread = config.get("image_mean") or default.mean, config.get("image_std") or default.spread

    def per_channel(figures: Any) -> tuple[float, ...]:  # noqa: ANN401 (a JSON value)
        figures = figures if isinstance(figures, list | tuple) else [figures]
        figures = list(figures) * channels if len(figures) == 1 else figures
        if len(figures) != channels:
            raise BackboneError(f"{path} gives means for {len(figures)} channels, config.json says {channels}.")
        return tuple(float(figure) / top for figure in figures)

    return Greys(per_channel(mean), per_channel(spread))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        payload = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise BackboneError(f"{path} is not JSON.") from error
    if not isinstance(payload, dict):
        raise BackboneError(f"{path} should be a JSON object.")
    return payload
