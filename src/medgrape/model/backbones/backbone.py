"""A film in, a map of features out: the network whose patches everything later is read from."""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from medgrape.config import BackboneSettings
from medgrape.model.backbones import lite, plugin, resnet, transformers_models
from medgrape.model.backbones.base import BackboneError, Blueprint, Chain, Greys, load_strictly, read_weights
from medgrape.model.backbones.hub_folder import find_folder, read_config, read_greys
from medgrape.plugins import find

_TRANSFORMERS = "transformers"
_OF_RUN = "backbone.parts."
"""How the names of a backbone's tensors begin in a run."""


class Backbone(nn.Module):
    """A chain of parts, of which the first few may be frozen: no gradient, and eval mode for ever."""

    mean: Tensor
    spread: Tensor

    def __init__(self, chain: Chain, blueprint: Blueprint) -> None:
        super().__init__()
        if blueprint.frozen_parts > len(chain.parts):
            raise BackboneError(
                f"This backbone has {len(chain.parts)} parts; frozen_parts may not be {blueprint.frozen_parts}."
            )
        self.parts = nn.ModuleList(chain.parts)
        self.features = chain.features
        self.blueprint = blueprint
        self._multiple = chain.multiple
        self._freeze_statistics = False
        # Not among the weights: the description holds them.
        self.register_buffer("mean", torch.tensor(blueprint.greys.mean).view(1, -1, 1, 1), persistent=False)
        self.register_buffer("spread", torch.tensor(blueprint.greys.spread).view(1, -1, 1, 1), persistent=False)
        self.parts[: self.frozen_parts].requires_grad_(False)
        self.train()

    @property
    def frozen_parts(self) -> int:
        """How many parts at the start never learn."""
        return self.blueprint.frozen_parts

    @property
    def freeze_statistics(self) -> bool:
        """Whether batch norms keep their statistics in training too; their weights and biases learn all the same."""
        return self._freeze_statistics

    @freeze_statistics.setter
    def freeze_statistics(self, frozen: bool) -> None:
        self._freeze_statistics = frozen
        self.train(self.training)

    def train(self, mode: bool = True) -> "Backbone":
        """Training mode for all that learns."""
        super().train(mode)
        self.parts[: self.frozen_parts].eval()
        if self.freeze_statistics:
            for module in self.modules():
                if isinstance(module, _BatchNorm):
                    module.eval()
        return self

    def forward(self, films: Float[Tensor, "b 1 side side"]) -> Float[Tensor, "b c h w"]:
        """Maps of films whose greys run from 0 to 1."""
        return self.late(self.early(films))

    def early(self, films: Float[Tensor, "b 1 side side"]) -> Float[Tensor, "b c1 h1 w1"]:
        """What the frozen parts make of the films: the same in every epoch."""
        if films.shape[-1] % self._multiple:
            raise BackboneError(
                f"This backbone sees patches that cover films of {self._multiple}, {2 * self._multiple}, ... pixels "
                f"a side; choose a size that is a multiple of {self._multiple}, not {films.shape[-1]}."
            )
        maps = (films - self.mean) / self.spread  # one grey for each channel that the weights want
        maps = maps.contiguous(memory_format=torch.channels_last)  # convolutions on a CPU take half the time
        for part in self.parts[: self.frozen_parts]:
            maps = part(maps)
        return maps

    def late(self, activations: Float[Tensor, "b c1 h1 w1"]) -> Float[Tensor, "b c h w"]:
        """The rest of the way, from what ``early`` gave."""
        for part in self.parts[self.frozen_parts :]:
            activations = part(activations)
        return activations

    def grid(self, side: int) -> tuple[int, int]:
        """Rows and columns of patches for films of that side; somebody's own backbone is tried out with it."""
        was_training = self.training
        self.eval()
        try:
            if self.blueprint.kind == plugin.KIND:
                plugin.try_out(self, self.blueprint, self.features, side)
            with torch.no_grad():
                height, width = self(torch.zeros(1, 1, side, side)).shape[-2:]
        finally:
            self.train(was_training)
        return int(height), int(width)

    def describe(self) -> dict[str, Any]:
        """The architecture as plain JSON data, without the weights."""
        return self.blueprint.describe()

    @classmethod
    def from_description(cls, data: dict[str, Any]) -> "Backbone":
        """The architecture that ``describe`` told of, with random weights: load its state next."""
        blueprint = Blueprint.from_description(data)
        if blueprint.kind == lite.NAME:
            return cls(lite.cut(lite.whole_parts(blueprint), blueprint), blueprint)
        if blueprint.kind == _TRANSFORMERS:
            model = transformers_models.random_model(blueprint.config)
            return cls(transformers_models.chain(model, blueprint), blueprint)
        if blueprint.kind == plugin.KIND:
            return cls(plugin.rebuild_own(blueprint), blueprint)
        raise BackboneError(f"There is no kind of backbone {blueprint.kind!r}: the description is another version's.")


def build_backbone(settings: BackboneSettings) -> Backbone:
    """The backbone that the settings name, with its weights."""
    if settings.weights and not settings.pretrained:
        raise BackboneError("A backbone has weights from a file or random ones: drop weights, or pretrained = false.")
    if settings.weights and Path(settings.weights).expanduser().is_dir():
        return _build_from_run(settings, Path(settings.weights).expanduser())
    if settings.name == lite.NAME:
        return _build_lite(settings)
    part = find("backbone", settings.name)
    if part is not None:
        return Backbone(*plugin.build_own(part, settings))
    return _build_transformers(settings)


def _build_from_run(settings: BackboneSettings, run: Path) -> Backbone:
    """The architecture that the settings name, going on from what the backbone of an earlier run has learnt."""
    backbone = build_backbone(settings.model_copy(update={"weights": "", "pretrained": False}))
    found = read_weights(run / "model.safetensors")
    learnt = {name.removeprefix(_OF_RUN): tensor for name, tensor in found.items() if name.startswith(_OF_RUN)}
    kept = {name: tensor for name, tensor in learnt.items() if int(name.split(".")[0]) < len(backbone.parts)}
    load_strictly(backbone.parts, kept, lambda name: name, str(run))
    return backbone


def _blueprint(settings: BackboneSettings, kind: str, config: dict[str, Any], greys: Greys) -> Blueprint:
    return Blueprint(kind, config, greys, settings.leave_off, settings.last_stride, settings.frozen_parts)


def _build_lite(settings: BackboneSettings) -> Backbone:
    blueprint = _blueprint(settings, lite.NAME, {}, lite.GREYS)
    parts = lite.whole_parts(blueprint)
    if settings.pretrained:
        path = Path(settings.weights).expanduser() if settings.weights else lite.weights_file()
        tensors = {name: tensor for name, tensor in read_weights(path).items() if not name.startswith("_fc.")}
        load_strictly(parts, tensors, lite.place, path.name)
    return Backbone(lite.cut(parts, blueprint), blueprint)


def _build_transformers(settings: BackboneSettings) -> Backbone:
    own_weights = settings.pretrained and not settings.weights
    if settings.name in resnet.BUILT_IN:
        if own_weights:
            raise BackboneError(
                f"{settings.name} brings no weights of its own: give a file of weights, or a hub's name."
            )
        folder, config = None, {"model_type": "resnet", **resnet.BUILT_IN[settings.name]}
    else:
        folder = find_folder(settings, with_weights=own_weights)
        config = read_config(folder)
    config = transformers_models.complete(config)
    channels = config.get("num_channels", 3)
    greys = read_greys(folder, channels) if folder else Greys.imagenet(channels)
    blueprint = _blueprint(settings, _TRANSFORMERS, config, greys)
    if folder and own_weights:
        model = transformers_models.pretrained_model(config, folder)
    else:
        model = transformers_models.random_model(config)
    if settings.weights:
        _load_resnet(model, config, Path(settings.weights).expanduser())
    return Backbone(transformers_models.chain(model, blueprint), blueprint)


def _load_resnet(model: nn.Module, config: dict[str, Any], path: Path) -> None:
    if config["model_type"] != "resnet":
        raise BackboneError(f"A file of weights fits ResNets and {lite.NAME} only, not {config['model_type']}.")
    tensors = {name: tensor for name, tensor in read_weights(path).items() if not resnet.is_classifier(name)}
    load_strictly(resnet.whole_parts(model), tensors, resnet.place, path.name)
