"""Backbones: networks from films to feature maps, built from settings or from the description in a run."""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from medgrape.config import BackboneSettings
from medgrape.model.backbones import base, transformers_models
from medgrape.model.backbones.base import BackboneError, Blueprint, Chain
from medgrape.plugins import built_in, find_plugin

_PREFIX = "backbone.parts."  # Prefix of the names of a backbone's tensors in a run


class Backbone(nn.Module):
    """A chain of parts, of which the first ``frozen_parts`` have no gradient and stay in eval mode."""

    mean: Tensor
    spread: Tensor

    def __init__(self, chain: Chain, blueprint: Blueprint) -> None:
        super().__init__()
        if blueprint.frozen_parts > len(chain.parts):
            frozen = blueprint.frozen_parts
            raise BackboneError(f"This backbone has {len(chain.parts)} parts; frozen_parts may not be {frozen}.")
        self.parts = nn.ModuleList(chain.parts)
        self.features, self._multiple = chain.features, chain.multiple
        self.blueprint, self._freeze_statistics = blueprint, False
        # Not persistent: the description contains them.
        self.register_buffer("mean", torch.tensor(blueprint.greys.mean).view(1, -1, 1, 1), persistent=False)
        self.register_buffer("spread", torch.tensor(blueprint.greys.spread).view(1, -1, 1, 1), persistent=False)
        self.parts[: self.frozen_parts].requires_grad_(False)
        self.train()

    @property
    def frozen_parts(self) -> int:
        """Number of parts at the start that are never trained."""
        return self.blueprint.frozen_parts

    @property
    def freeze_statistics(self) -> bool:
        """Whether batch norms keep their running statistics in training; their weights and biases still train."""
        return self._freeze_statistics

    @freeze_statistics.setter
    def freeze_statistics(self, frozen: bool) -> None:
        self._freeze_statistics = frozen
        self.train(self.training)

    def train(self, mode: bool = True) -> "Backbone":
        """Set training mode for all parts that are not frozen."""
        super().train(mode)
        self.parts[: self.frozen_parts].eval()
        for module in self.modules() if self.freeze_statistics else ():
            if isinstance(module, _BatchNorm):
                module.eval()
        return self

    def forward(self, films: Float[Tensor, "b 1 side side"]) -> Float[Tensor, "b c h w"]:
        """Return the feature maps of films with grey levels from 0 to 1."""
        return self.forward_trainable(self.forward_frozen(films))

    def forward_frozen(self, films: Float[Tensor, "b 1 side side"]) -> Float[Tensor, "b c1 h1 w1"]:
        """Return the output of the frozen parts, which is the same in every epoch."""
        if films.shape[-1] % self._multiple:
            raise BackboneError(
                f"The patches of this backbone cover films of {self._multiple}, {2 * self._multiple}, ... pixels "
                f"a side; choose a size that is a multiple of {self._multiple}, not {films.shape[-1]}."
            )
        maps = (films - self.mean) / self.spread  # broadcasts to the channels of the weights
        maps = maps.contiguous(memory_format=torch.channels_last)  # halves the time of convolutions on a CPU
        for part in self.parts[: self.frozen_parts]:
            maps = part(maps)
        return maps

    def forward_trainable(self, activations: Float[Tensor, "b c1 h1 w1"]) -> Float[Tensor, "b c h w"]:
        """Return the feature maps from the output of ``forward_frozen``."""
        for part in self.parts[self.frozen_parts :]:
            activations = part(activations)
        return activations

    def grid(self, side: int) -> tuple[int, int]:
        """Return the rows and columns of patches for films of that side; a plugin is checked on such films first."""
        was_training = self.training
        self.eval()
        try:
            if self.blueprint.kind == base.OWN:
                base.check_output(self, self.blueprint, self.features, side)
            with torch.no_grad():
                height, width = self(torch.zeros(1, 1, side, side)).shape[-2:]
        finally:
            self.train(was_training)
        return int(height), int(width)

    def describe(self) -> dict[str, Any]:
        """Return the architecture as JSON data, without the weights."""
        return self.blueprint.describe()

    @classmethod
    def from_description(cls, data: dict[str, Any]) -> "Backbone":
        """Build the architecture of ``describe`` with random weights, to be overwritten."""
        blueprint = Blueprint.from_description(data)
        built_in("backbone")  # imports all modules that register
        if blueprint.kind not in base.REBUILD:
            raise BackboneError(f"There is no kind of backbone {blueprint.kind!r}: another version wrote it.")
        return cls(base.REBUILD[blueprint.kind](blueprint), blueprint)


def build_backbone(settings: BackboneSettings) -> Backbone:
    """Build the backbone that the settings name, with its weights."""
    if settings.weights and not settings.pretrained:
        raise BackboneError("A backbone has weights from a file or random ones: remove weights, or pretrained = false.")
    if settings.weights and Path(settings.weights).expanduser().is_dir():
        return _build_from_run(settings, Path(settings.weights).expanduser())
    build = built_in("backbone").get(settings.name)
    if build is None:
        part = find_plugin("backbone", settings.name)
        build = transformers_models.build if part is None else partial(base.build_plugin, part)
    return Backbone(*build(settings))


def _build_from_run(settings: BackboneSettings, run: Path) -> Backbone:
    """Build the architecture that the settings name, with the weights of an earlier run's backbone."""
    backbone = build_backbone(settings.model_copy(update={"weights": "", "pretrained": False}))
    weights = {}
    for name, tensor in base.read_weights(run / "model.safetensors").items():
        own_name = name.removeprefix(_PREFIX)
        if own_name != name and int(own_name.split(".")[0]) < len(backbone.parts):
            weights[own_name] = tensor
    base.load_strictly(backbone.parts, weights, lambda name: name, str(run))
    return backbone
