"""The plugins that a model was trained with, and the check that the installed ones compute the same.

Another version of a package may compute something else from the same weights. So a run also stores the model's logits
for one synthetic film, and a model that returns other logits is refused, whatever the versions are.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.config import Config
from medgrape.plugins import Kind, find_plugin, find_recorded_plugin
from medgrape.runs.manifest import RunError

Records = Mapping[str, Mapping[str, str]]
"""Kind to name, package and version."""
OWN_PARTS, ANSWER = "own_parts", "answer"
CLOSE = 1e-3
"""Largest relative difference of the logits: machines round differently."""
_COMPUTED: tuple[Kind, ...] = ("backbone", "head")
"""Kinds that inference needs; a text encoder is needed only to learn a concept."""


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
    if not parts:
        return {}
    records = {kind: dict(record) for kind, record in parts.items()}
    return {OWN_PARTS: records, ANSWER: _logits(model, side).tolist()}


def refuse_changed(architecture: Mapping[str, Any], model: nn.Module, side: int, folder: Path) -> None:
    """Refuse a model whose plugins compute other logits than when the run was saved."""
    plugins = needed_parts(architecture.get(OWN_PARTS, {}))
    if not plugins:
        return
    saved, now = torch.tensor(architecture[ANSWER]), _logits(model, side)
    if not (saved - now).abs().max() <= CLOSE * max(1.0, float(saved.abs().max())):
        packages = " ".join(sorted({f"{plugin['distribution']}=={plugin['version']}" for plugin in plugins}))
        raise RunError(
            f"{folder} computes other results with the plugins installed here than when it was saved: "
            f"pip install {packages}"
        )


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
