"""What all backbones share: their description, the registry of built-in ones, and strict loading of weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from medgrape.config import BackboneSettings
from medgrape.errors import UserError
from medgrape.plugins import register

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_SPREAD = (0.229, 0.224, 0.225)
backbone = partial(register, "backbone")
"""Decorator: ``@backbone("resnet-50")`` registers a function from ``BackboneSettings`` to ``(Chain, Blueprint)``."""


class BackboneError(UserError):
    """A backbone that cannot be built from its settings."""


@dataclass(frozen=True)
class Greys:
    """Normalisation of a film's grey levels, 0 to 1, to the input of the network: one figure for each channel."""

    mean: tuple[float, ...]
    spread: tuple[float, ...]
    """Standard deviation."""

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.spread) or len(self.mean) not in (1, 3) or min(self.spread) <= 0:
            raise BackboneError(
                f"A backbone takes 1 or 3 channels, each with a mean and a positive spread; "
                f"got means {self.mean} and spreads {self.spread}."
            )

    @classmethod
    def imagenet(cls, channels: int) -> "Greys":
        """Return the statistics of ImageNet, averaged over the colours for a backbone of one channel."""
        if channels == 1:
            return cls((sum(IMAGENET_MEAN) / 3,), (sum(IMAGENET_SPREAD) / 3,))
        return cls(IMAGENET_MEAN, IMAGENET_SPREAD)


@dataclass(frozen=True)
class Blueprint:
    """A description of an architecture, without its weights."""

    kind: str
    """``efficientnet-lite0``, ``transformers``, or ``own`` for a plugin."""
    config: dict[str, Any]
    """The ``transformers`` config; for a plugin, its name, package and version; empty for ``efficientnet-lite0``."""
    greys: Greys
    leave_off: int = 0
    last_stride: bool = True
    frozen_parts: int = 0

    @classmethod
    def of(cls, settings: BackboneSettings, kind: str, config: dict[str, Any], greys: Greys) -> "Blueprint":
        """Describe the architecture that the settings ask for."""
        return cls(kind, config, greys, settings.leave_off, settings.last_stride, settings.frozen_parts)

    def describe(self) -> dict[str, Any]:
        """Return the blueprint as JSON data."""
        return {
            "kind": self.kind,
            "config": self.config,
            "mean": list(self.greys.mean),
            "spread": list(self.greys.spread),
            "leave_off": self.leave_off,
            "last_stride": self.last_stride,
            "frozen_parts": self.frozen_parts,
        }

    @classmethod
    def from_description(cls, data: dict[str, Any]) -> "Blueprint":
        """Return the inverse of ``describe``."""
        rest = dict(data)
        try:
            if not isinstance(rest["config"], dict):
                raise TypeError("its config is not a mapping")
            greys = Greys(tuple(rest.pop("mean")), tuple(rest.pop("spread")))
            return cls(greys=greys, **rest)
        except (KeyError, TypeError) as error:
            raise BackboneError(f"This is not the description of a backbone: {error}.") from error


@dataclass(frozen=True)
class Chain:
    """Modules that run one after another."""

    parts: Sequence[nn.Module]
    features: int
    """Channels of the output of the last part."""
    multiple: int = 1
    """The side of a film must be a multiple of this, so that the patches cover the whole film."""


Rebuild = Callable[[Blueprint], Chain]
REBUILD: dict[str, Rebuild] = {}
"""For each kind of blueprint, the function that builds it again with weights to be overwritten."""


def rebuilds(kind: str) -> Callable[[Rebuild], Rebuild]:
    """Return a decorator that registers how backbones of a kind are built from their blueprint."""

    def add(rebuild: Rebuild) -> Rebuild:
        REBUILD[kind] = rebuild
        return rebuild

    return add


def check_leave_off(leave_off: int, stages: int, name: str) -> None:
    """Refuse to leave off all stages or more."""
    if leave_off >= stages:
        raise BackboneError(f"{name} has {stages} stages: leave_off may be at most {stages - 1}, not {leave_off}.")


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file, or of a PyTorch file that contains tensors only."""
    if not path.is_file():
        raise BackboneError(
            f"There is no file of weights and no run at {path}; train that run first, or set another backbone.weights."
        )
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        weights = torch.load(path, weights_only=True, map_location="cpu")
    except (SafetensorError, OSError, RuntimeError, ValueError, EOFError, UnpicklingError) as error:
        raise BackboneError(
            f"{path} holds no weights that can be read safely: give safetensors, or a PyTorch file of tensors only."
        ) from error
    for wrapper in ("state_dict", "model"):  # training scripts store other things beside the weights
        if isinstance(weights, dict) and isinstance(weights.get(wrapper), dict):
            weights = weights[wrapper]
    if not isinstance(weights, dict) or not all(isinstance(tensor, Tensor) for tensor in weights.values()):
        raise BackboneError(f"{path} is not a file of named tensors.")
    return {str(name): tensor for name, tensor in weights.items()}


def load_strictly(
    parts: nn.ModuleList, tensors: Mapping[str, Tensor], place: Callable[[str], str | None], source: str
) -> None:
    """Load every tensor under the name that ``place`` maps it to; missing, extra and misshapen tensors are errors.

    Only the counters of batch norms may be missing: files of older versions do not have them.
    """
    expected, placed = parts.state_dict(), dict[str, Tensor]()
    for name, tensor in tensors.items():
        target = place(name)
        if target is None or target not in expected or target in placed:
            raise BackboneError(f"Tensor {name} of {source} has no place in this architecture: is it for another one?")
        if tensor.shape != expected[target].shape:
            raise BackboneError(
                f"Tensor {name} of {source} is {tuple(tensor.shape)}, its place in this architecture is "
                f"{tuple(expected[target].shape)}: is it for another one?"
            )
        placed[target] = tensor
    for target in expected:
        if target not in placed and not target.endswith(".num_batches_tracked"):
            raise BackboneError(f"{source} has no tensor for {target} of this architecture: is it for another one?")
    parts.load_state_dict(expected | placed)
