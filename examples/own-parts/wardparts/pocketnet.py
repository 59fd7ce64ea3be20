"""A backbone: a stem and three stages of separable convolutions, for films of any size."""

from itertools import pairwise
from pathlib import Path

from torch import nn

from medgrape.errors import UserError
from medgrape.model.backbones.base import Chain, Greys, PluginBackbone, load_strictly, read_weights

WIDTHS = (16, 24, 40, 64)


def build(*, pretrained: bool, leave_off: int = 0, weights: Path | None = None) -> PluginBackbone:
    """Each part halves the map, so patches are 16 pixels wide; every stage left off makes them half as wide."""
    if leave_off > len(WIDTHS) - 2:
        raise UserError(f"pocketnet has {len(WIDTHS) - 1} stages; leave off at most {len(WIDTHS) - 2}.")
    kept = WIDTHS[: len(WIDTHS) - leave_off]
    stem = nn.Sequential(nn.Conv2d(1, kept[0], 3, stride=2, padding=1), nn.ReLU())
    parts = nn.ModuleList([stem, *(_stage(inputs, outputs) for inputs, outputs in pairwise(kept))])
    if weights is not None:
        load_strictly(parts, read_weights(weights), lambda name: name, weights.name)
    elif pretrained:
        raise UserError("pocketnet brings no weights along; set backbone.pretrained = false, or backbone.weights.")
    return PluginBackbone(Chain(list(parts), kept[-1]), Greys(mean=(0.5,), spread=(0.25,)))


def _stage(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, inputs, 3, stride=2, padding=1, groups=inputs, bias=False),
        nn.Conv2d(inputs, outputs, 1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )
