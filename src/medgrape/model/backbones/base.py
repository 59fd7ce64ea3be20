"""What all backbones share: description, registry, strict loading of weights, checks of other packages' backbones."""

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
from medgrape.plugins import Plugin, find_recorded_plugin, register

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_SPREAD = (0.229, 0.224, 0.225)
backbone = partial(register, "backbone")
"""Decorator: ``@backbone("resnet-50")`` registers a function from ``BackboneSettings`` to ``(Chain, Blueprint)``."""
OWN = "own"  # Kind of the blueprint of a plugin, whose config is the record of the plugin
_DEFAULTS: Mapping[str, object] = {"leave_off": 0, "last_stride": True, "weights": None}


class BackboneError(UserError):
    """A backbone that cannot be built from its settings."""


@dataclass(frozen=True)
class Greys:
    """Normalisation of a film's grey levels, 0 to 1, to the input of the network: one figure for each channel."""

    mean: tuple[float, ...]
    spread: tuple[float, ...]  # Standard deviation

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

    kind: str  # `efficientnet-lite0`, `transformers`, or `own` for a plugin
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
            "kind": self.kind, "config": self.config, "mean": list(self.greys.mean), "spread": list(self.greys.spread),
            "leave_off": self.leave_off, "last_stride": self.last_stride, "frozen_parts": self.frozen_parts,
        }  # fmt: skip

    @classmethod
    def from_description(cls, data: dict[str, Any]) -> "Blueprint":
        """Return the inverse of ``describe``."""
        rest = dict(data)
        try:
            if not isinstance(rest["config"], dict):
                raise TypeError("its config is not a mapping")
            return cls(greys=Greys(tuple(rest.pop("mean")), tuple(rest.pop("spread"))), **rest)
        except (KeyError, TypeError) as error:
            raise BackboneError(f"This is not the description of a backbone: {error}.") from error


@dataclass(frozen=True)
class Chain:
    """Modules that run one after another."""

    parts: Sequence[nn.Module]
    features: int  # Channels of the output of the last part
    multiple: int = 1  # The side of a film must be a multiple of this, so that the patches cover the whole film


Rebuild = Callable[[Blueprint], Chain]
REBUILD: dict[str, Rebuild] = {}  # For each kind of blueprint: builds it again, with weights to be overwritten


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


@dataclass(frozen=True)
class PluginBackbone:
    """The return value of the function behind an entry point."""

    chain: Chain  # Modules that run one after another; the last one returns the feature map
    greys: Greys  # The input of the modules: one channel or three, each with mean and spread


def build_plugin(plugin: Plugin, settings: BackboneSettings) -> tuple[Chain, Blueprint]:
    """Build the chain with its weights, and the description to build it again."""
    weights = Path(settings.weights).expanduser() if settings.weights else None
    options = {"leave_off": settings.leave_off, "last_stride": settings.last_stride, "weights": weights}
    built = _call_plugin(plugin, settings.pretrained, options)
    return built.chain, Blueprint.of(settings, OWN, plugin.record, built.greys)


def _rebuild_plugin(blueprint: Blueprint) -> Chain:
    """Build the chain again, with weights to be overwritten."""
    options = {"leave_off": blueprint.leave_off, "last_stride": blueprint.last_stride, "weights": None}
    return _call_plugin(find_recorded_plugin("backbone", blueprint.config), False, options).chain


REBUILD[OWN] = _rebuild_plugin


def _call_plugin(plugin: Plugin, pretrained: bool, options: Mapping[str, object]) -> PluginBackbone:
    """Call the function with the options that it has parameters for; others must have their default."""
    parameters = plugin.parameters()
    for name, value in options.items():
        if name not in parameters and value != _DEFAULTS[name]:
            raise plugin.refuse(f"takes no {name!r}, so backbone.{name} must keep its default")
    built = plugin.make(pretrained=pretrained, **{name: options[name] for name in options if name in parameters})
    if not isinstance(built, PluginBackbone):
        raise plugin.refuse(f"returned a {type(built).__name__}, not a PluginBackbone")
    chain = built.chain
    if not isinstance(chain, Chain) or not isinstance(built.greys, Greys):
        types = f"{type(chain).__name__} and {type(built.greys).__name__}"
        raise plugin.refuse(f"returned a PluginBackbone of {types}, not of Chain and Greys")
    not_modules = "has a chain of something else than torch modules"
    with plugin.answering(not_modules):
        if not chain.parts or not all(isinstance(part, nn.Module) for part in chain.parts):
            raise plugin.refuse(not_modules)
    for name, number in (("features", chain.features), ("multiple", chain.multiple)):
        if not isinstance(number, int) or number < 1:
            raise plugin.refuse(f"has a chain whose {name} is {number!r}, not a positive integer")
    return built


@torch.no_grad()
def check_output(backbone: nn.Module, blueprint: Blueprint, features: int, side: int) -> None:
    """Run the backbone on two random films before it is used: shape, finite values, the same for each film alone."""
    plugin = find_recorded_plugin("backbone", blueprint.config)
    films = torch.rand(2, 1, side, side, generator=torch.Generator().manual_seed(0))
    with plugin.answering(f"fails on films of {side} x {side} pixels"):
        maps, alone = backbone(films), backbone(films[:1])
    if not isinstance(maps, Tensor) or maps.ndim != 4 or maps.shape[:2] != (2, features):
        shape = tuple(maps.shape) if isinstance(maps, Tensor) else type(maps).__name__
        raise plugin.refuse(f"returns {shape} for two films, not (2, {features}, height, width)")
    if not torch.isfinite(maps).all():
        raise plugin.refuse("returns maps that are not finite numbers")
    if not torch.allclose(maps[:1], alone, rtol=1e-3, atol=1e-3 * float(maps.abs().max())):
        raise plugin.refuse("returns other maps each time, or depending on the other films of a batch, in eval mode")
