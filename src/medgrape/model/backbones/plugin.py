"""A backbone that another package brings along: its chain of parts, and the greys that it wants."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from medgrape.config import BackboneSettings
from medgrape.model.backbones.base import Blueprint, Chain, Greys
from medgrape.plugins import OwnPart, same_again

KIND = "own"
"""Of a blueprint whose architecture is an installed package's; its config is the record of that part."""


@dataclass(frozen=True)
class OwnBackbone:
    """What the function behind an entry point gives back."""

    chain: Chain
    """Modules that run one after another; the last one gives the map of features."""
    greys: Greys
    """What the modules take: one channel or three, each with mean and spread."""


def build_own(part: OwnPart, settings: BackboneSettings) -> tuple[Chain, Blueprint]:
    """The chain with its weights, and all that is needed to build it again."""
    weights = Path(settings.weights).expanduser() if settings.weights else None
    asked = {"leave_off": settings.leave_off, "last_stride": settings.last_stride, "weights": weights}
    made = _made(part, settings.pretrained, asked)
    blueprint = Blueprint(
        KIND, part.record, made.greys, settings.leave_off, settings.last_stride, settings.frozen_parts
    )
    return made.chain, blueprint


def rebuild_own(blueprint: Blueprint) -> Chain:
    """The chain again, with weights to be overwritten."""
    asked = {"leave_off": blueprint.leave_off, "last_stride": blueprint.last_stride, "weights": None}
    return _made(same_again("backbone", blueprint.config), False, asked).chain


def _made(part: OwnPart, pretrained: bool, asked: Mapping[str, object]) -> OwnBackbone:
    """A setting that the function has no parameter for cannot be asked of it."""
    usual = {"leave_off": 0, "last_stride": True, "weights": None}
    takes = part.parameters()
    for name, value in asked.items():
        if name not in takes and value != usual[name]:
            raise part.refuse(f"takes no {name!r}, so leave backbone.{name} as it is")
    given = {name: value for name, value in asked.items() if name in takes}
    made = part.make(pretrained=pretrained, **given)
    if not isinstance(made, OwnBackbone):
        raise part.refuse(f"made a {type(made).__name__}, not an OwnBackbone")
    if not isinstance(made.chain, Chain) or not isinstance(made.greys, Greys):
        found = f"{type(made.chain).__name__} and {type(made.greys).__name__}"
        raise part.refuse(f"made an OwnBackbone of {found}, not of Chain and Greys")
    _check_chain(part, made.chain)
    return made


def _check_chain(part: OwnPart, chain: Chain) -> None:
    with part.answering("has a chain of something else than torch modules"):
        if not chain.parts or not all(isinstance(one, nn.Module) for one in chain.parts):
            raise part.refuse("has a chain of something else than torch modules")
    for name, number in (("features", chain.features), ("multiple", chain.multiple)):
        if not isinstance(number, int) or number < 1:
            raise part.refuse(f"has a chain whose {name} is {number!r}, which is no number of one or more")


@torch.no_grad()
def try_out(backbone: nn.Module, blueprint: Blueprint, features: int, side: int) -> None:
    """Two made-up films, before anybody trains with it or reads by it."""
    part = same_again("backbone", blueprint.config)
    films = torch.rand(2, 1, side, side, generator=torch.Generator().manual_seed(0))
    with part.answering(f"fails on films of {side} x {side} pixels"):
        maps, alone = backbone(films), backbone(films[:1])
    if not isinstance(maps, Tensor) or maps.ndim != 4 or maps.shape[:2] != (2, features):
        found = tuple(maps.shape) if isinstance(maps, Tensor) else type(maps).__name__
        raise part.refuse(f"gives {found} for two films, not (2, {features}, height, width)")
    if not torch.isfinite(maps).all():
        raise part.refuse("gives maps that are no finite numbers")
    if not torch.allclose(maps[:1], alone, rtol=1e-3, atol=1e-3 * float(maps.abs().max())):
        raise part.refuse("sees a film otherwise each time, or otherwise beside another film, in eval mode")
