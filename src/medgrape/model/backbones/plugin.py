"""A backbone of another package: its chain of parts, its grey levels, and the checks of both."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from medgrape.config import BackboneSettings
from medgrape.model.backbones.base import Blueprint, Chain, Greys, rebuilds
from medgrape.plugins import OwnPart, find_recorded_plugin

KIND = "own"
"""Kind of the blueprint of a plugin, whose config is the record of the plugin."""
_DEFAULTS: Mapping[str, object] = {"leave_off": 0, "last_stride": True, "weights": None}


@dataclass(frozen=True)
class OwnBackbone:
    """The return value of the function behind an entry point."""

    chain: Chain
    """Modules that run one after another; the last one returns the feature map."""
    greys: Greys
    """The input of the modules: one channel or three, each with mean and spread."""


def build(plugin: OwnPart, settings: BackboneSettings) -> tuple[Chain, Blueprint]:
    """Build the chain with its weights, and the description to build it again."""
    weights = Path(settings.weights).expanduser() if settings.weights else None
    options = {"leave_off": settings.leave_off, "last_stride": settings.last_stride, "weights": weights}
    made = _made(plugin, settings.pretrained, options)
    return made.chain, Blueprint.of(settings, KIND, plugin.record, made.greys)


@rebuilds(KIND)
def rebuild(blueprint: Blueprint) -> Chain:
    """Build the chain again, with weights to be overwritten."""
    options = {"leave_off": blueprint.leave_off, "last_stride": blueprint.last_stride, "weights": None}
    return _made(find_recorded_plugin("backbone", blueprint.config), False, options).chain


def _made(plugin: OwnPart, pretrained: bool, options: Mapping[str, object]) -> OwnBackbone:
    """Call the function with the options that it has parameters for; others must have their default."""
    parameters = plugin.parameters()
    for name, value in options.items():
        if name not in parameters and value != _DEFAULTS[name]:
            raise plugin.refuse(f"takes no {name!r}, so backbone.{name} must keep its default")
    made = plugin.make(pretrained=pretrained, **{name: value for name, value in options.items() if name in parameters})
    if not isinstance(made, OwnBackbone):
        raise plugin.refuse(f"returned a {type(made).__name__}, not an OwnBackbone")
    if not isinstance(made.chain, Chain) or not isinstance(made.greys, Greys):
        types = f"{type(made.chain).__name__} and {type(made.greys).__name__}"
        raise plugin.refuse(f"returned an OwnBackbone of {types}, not of Chain and Greys")
    not_modules = "has a chain of something else than torch modules"
    with plugin.answering(not_modules):
        if not made.chain.parts or not all(isinstance(part, nn.Module) for part in made.chain.parts):
            raise plugin.refuse(not_modules)
    for name, number in (("features", made.chain.features), ("multiple", made.chain.multiple)):
        if not isinstance(number, int) or number < 1:
            raise plugin.refuse(f"has a chain whose {name} is {number!r}, not a positive integer")
    return made


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
