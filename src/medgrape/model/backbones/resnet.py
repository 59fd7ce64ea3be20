"""A ResNet of ``transformers`` as a chain of stem and stages, and the names of its tensors in torchvision and timm."""

import re
from typing import Any

from torch import nn

from medgrape.model.backbones.base import BackboneError, Blueprint, Chain, check_leave_off

ARCHITECTURES: dict[str, dict[str, Any]] = {
    "resnet-18": {"layer_type": "basic", "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]},
    "resnet-50": {"layer_type": "bottleneck", "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3]},
}
"""Architectures that need no hub: for weights in a separate file, or random ones."""
_PREFIX = re.compile(r"^(?:(?:module|backbone)\.)+")
_STEM = re.compile(r"(conv|bn)1\.(\w+)")
_LAYER = re.compile(r"layer(\d+)\.(\d+)\.(conv|bn)(\d)\.(\w+)")
_SHORTCUT = re.compile(r"layer(\d+)\.(\d+)\.downsample\.([01])\.(\w+)")
_LAYER_KIND = {"conv": "convolution", "bn": "normalization", "0": "convolution", "1": "normalization"}


def whole_parts(model: nn.Module) -> nn.ModuleList:
    """Return the stem and the stages of a ``ResNetBackbone``."""
    return nn.ModuleList([model.get_submodule("embedder"), *model.get_submodule("encoder.stages").children()])


def cut(parts: nn.ModuleList, blueprint: Blueprint) -> Chain:
    """Return the chain up to the last stage that is kept, that stage with or without its stride."""
    check_leave_off(blueprint.leave_off, len(parts) - 1, "This ResNet")
    kept = list(parts)[: len(parts) - blueprint.leave_off]
    if not blueprint.last_stride:
        _remove_stride(kept[-1])
    return Chain(kept, blueprint.config["hidden_sizes"][len(kept) - 2])


def _remove_stride(stage: nn.Module) -> None:
    """Remove the stride of a stage, and dilate its later convolutions, which keeps their receptive field."""
    layers = stage.get_submodule("layers").children()
    convolutions = [conv for layer in layers for conv in _convolutions(layer.get_submodule("layer"))]
    strided = next((place for place, conv in enumerate(convolutions) if conv.stride != (1, 1)), None)
    if strided is None:
        raise BackboneError("The last stage that is kept has no stride to remove: leave last_stride as it is.")
    for conv in (convolutions[strided], *_convolutions(stage.get_submodule("layers.0.shortcut"))):
        conv.stride = (1, 1)
    for conv in convolutions[strided + 1 :]:
        if conv.kernel_size != (1, 1):
            conv.dilation = conv.padding = (2, 2)


def _convolutions(module: nn.Module) -> list[nn.Conv2d]:
    return [child for child in module.modules() if isinstance(child, nn.Conv2d)]


def is_classifier(name: str) -> bool:
    """Whether a tensor belongs to the classification layer of ImageNet."""
    return _PREFIX.sub("", name).startswith("fc.")


def place(name: str) -> str | None:
    """Return the name in ``whole_parts`` of a tensor of torchvision or timm, or None if it has no place."""
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
