"""A ResNet of ``transformers`` as a chain: its stem, then its stages; and torchvision's and timm's names for them."""

import re
from typing import Any

from torch import nn

from medgrape.model.backbones.base import BackboneError, Blueprint, Chain, check_leave_off

BUILT_IN: dict[str, dict[str, Any]] = {
    "resnet-18": {"layer_type": "basic", "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]},
    "resnet-50": {"layer_type": "bottleneck", "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3]},
}
"""Architectures that need no hub: for weights in a file of their own, or none."""
_PREFIX = re.compile(r"^(?:(?:module|backbone)\.)+")
_STEM = re.compile(r"(conv|bn)1\.(\w+)")
_LAYER = re.compile(r"layer(\d+)\.(\d+)\.(conv|bn)(\d)\.(\w+)")
_SHORTCUT = re.compile(r"layer(\d+)\.(\d+)\.downsample\.([01])\.(\w+)")
_LAYER_KIND = {"conv": "convolution", "bn": "normalization", "0": "convolution", "1": "normalization"}


def whole_parts(model: nn.Module) -> nn.ModuleList:
    """Stem and stages of a ``ResNetBackbone``."""
    return nn.ModuleList([model.get_submodule("embedder"), *_children(model, "encoder.stages")])


def cut(parts: nn.ModuleList, blueprint: Blueprint) -> Chain:
    """The chain up to the last stage that is kept, that stage with or without its stride."""
    check_leave_off(blueprint.leave_off, len(parts) - 1, "This ResNet")
    kept = list(parts)[: len(parts) - blueprint.leave_off]
    if not blueprint.last_stride:
        _remove_stride(kept[-1])
    return Chain(kept, blueprint.config["hidden_sizes"][len(kept) - 2])


def _children(module: nn.Module, path: str) -> list[nn.Module]:
    return list(module.get_submodule(path).children())


def _remove_stride(stage: nn.Module) -> None:
    """Let the stage keep the map's size; what comes after its stride reaches as far over the film as it did."""
    shortcut = stage.get_submodule("layers.0.shortcut")
    convolutions = [
        conv for layer in _children(stage, "layers") for conv in _convolutions(layer.get_submodule("layer"))
    ]
    strided = next((place for place, conv in enumerate(convolutions) if conv.stride != (1, 1)), None)
    if strided is None:
        raise BackboneError("The last stage that is kept has no stride to remove: leave last_stride as it is.")
    for conv in (convolutions[strided], *_convolutions(shortcut)):
        conv.stride = (1, 1)
    for conv in convolutions[strided + 1 :]:
        if conv.kernel_size != (1, 1):
            conv.dilation = conv.padding = (2, 2)


def _convolutions(module: nn.Module) -> list[nn.Conv2d]:
    return [child for child in module.modules() if isinstance(child, nn.Conv2d)]


def is_classifier(name: str) -> bool:
    """Whether a tensor belongs to the layer that named ImageNet's classes."""
    return _PREFIX.sub("", name).startswith("fc.")


def place(name: str) -> str | None:
    """Where a tensor by torchvision's or timm's name goes in ``whole_parts``; None where it has no place."""
    name = _PREFIX.sub("", name)
    if stem := _STEM.fullmatch(name):
        kind, leaf = stem.groups()
        return f"0.embedder.{_LAYER_KIND[kind]}.{leaf}"
    if layer := _LAYER.fullmatch(name):
        stage, block, kind, number, leaf = layer.groups()
        return f"{stage}.layers.{block}.layer.{int(number) - 1}.{_LAYER_KIND[kind]}.{leaf}"
    if shortcut := _SHORTCUT.fullmatch(name):
        stage, block, kind, leaf = shortcut.groups()
        return f"{stage}.layers.{block}.shortcut.{_LAYER_KIND[kind]}.{leaf}"
    return None
