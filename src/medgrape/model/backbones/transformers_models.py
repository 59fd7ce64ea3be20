"""Architectures of ``transformers`` as chains of parts, from a name, a folder or a commit of a model hub.

The package is imported only when it is needed.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from medgrape.config import BackboneSettings
from medgrape.errors import first_line, nearest
from medgrape.model.backbones import base, lite, resnet
from medgrape.model.backbones.base import BackboneError, Blueprint, Chain, Greys
from medgrape.plugins import part_names

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_TEXTS = ["config.json", "preprocessor_config.json"]
_WEIGHTS = ["model.safetensors", "model.safetensors.index.json", "model-*.safetensors"]
KIND = "transformers"
_CONVNEXT = ("convnext", "convnextv2")
_UNUSED_KEYS = (
    "_name_or_path",
    "id2label",
    "label2id",
    "architectures",
    "dtype",
    "torch_dtype",
    "transformers_version",
)
_FORBIDDEN_KEYS = (
    "attribute_map", "auto_map", "base_model_ep_plan", "base_model_pp_plan", "base_model_tp_plan",
    "distributed_config", "dtype", "fusion_config", "kernel_config", "quantization_config", "torch_dtype",
    "transformers_weights", "use_kernels",
)  # fmt: skip
"""Keys of a config that choose how to compute, from which file or by whose code: a run of others may not set them."""
_IMPLEMENTATION = "implementation"  # In every key that chooses code for attention or experts, perhaps from a hub
_TIMM = ("timm_backbone", "timm_wrapper")
_UNTRAINED_NORM = "hidden_states_norms."  # A norm of ConvNeXt that checkpoints lack; it starts fixed, not random


def find_folder(settings: BackboneSettings, *, with_weights: bool) -> Path:
    """Return the folder of that name, or the hub's model of that name and commit, downloaded once."""
    folder = Path(settings.name).expanduser()
    if folder.is_dir():
        return folder
    if not _HUB_NAME.fullmatch(settings.name):
        raise BackboneError(
            f"There is no backbone {settings.name}{nearest(settings.name, part_names('backbone'))}: give one of these, "
            "the folder of a model, or a model hub's name such as microsoft/resnet-50."
        )
    if not _COMMIT.fullmatch(settings.revision):
        raise BackboneError(
            f"There is no folder {settings.name}; if it is a model of a hub, give its commit, 40 hexadecimal digits, "
            "as revision."
        )
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError
    except ModuleNotFoundError as error:
        raise BackboneError("Models from a hub need transformers: pip install 'medgrape[text]'.") from error
    patterns = _TEXTS + (_WEIGHTS if with_weights else [])
    try:
        return Path(snapshot_download(settings.name, revision=settings.revision, allow_patterns=patterns))
    except (OSError, HFValidationError) as error:
        raise BackboneError(
            f"{settings.name} at {settings.revision} could not be fetched from the model hub: check name, commit and "
            "network, or give the folder of a copy."
        ) from error


def read_greys(folder: Path, channels: int) -> Greys:
    """Return mean and spread of ``preprocessor_config.json`` for grey levels from 0 to 1; ImageNet's by default."""
    path = folder / "preprocessor_config.json"
    config = _read_json(path) if path.is_file() else {}
    default = Greys.imagenet(channels)
    top = 255 * float(config.get("rescale_factor", 1 / 255)) if config.get("do_rescale", True) else 255.0
    statistics: list[Any] = [0.0, 1.0]
    if config.get("do_normalize", True):
        statistics = [config.get("image_mean") or default.mean, config.get("image_std") or default.spread]
    for place, figures in enumerate(statistics):
        figures = list(figures) if isinstance(figures, list | tuple) else [figures]
        figures = figures * channels if len(figures) == 1 else figures
        if len(figures) != channels:
            raise BackboneError(f"{path} gives means for {len(figures)} channels, config.json says {channels}.")
        statistics[place] = tuple(float(figure) / top for figure in figures)
    return Greys(*statistics)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        payload = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise BackboneError(f"{path} is not JSON.") from error
    if not isinstance(payload, dict):
        raise BackboneError(f"{path} should be a JSON object.")
    return payload


@contextmanager
def quiet_loading(logging: Any) -> Iterator[None]:  # noqa: ANN401 (a module of an optional package)
    """Suppress progress bars and the table of unused tensors; the caller checks these itself."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


class LastMap(nn.Module):
    """A whole backbone of ``transformers`` as one part."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, films: Float[Tensor, "b c side side"]) -> Float[Tensor, "b d h w"]:
        """Return the last of its feature maps."""
        last: Tensor = self.model(films).feature_maps[-1]
        return last


@base.backbone("resnet-18")
@base.backbone("resnet-50")
def build(settings: BackboneSettings) -> tuple[Chain, Blueprint]:
    """Build a ResNet by name, or the model of a folder or hub; weights are its own, those of a file, or random."""
    own_weights = settings.pretrained and not settings.weights
    if settings.name in resnet.ARCHITECTURES:
        if own_weights:
            raise BackboneError(f"{settings.name} comes without weights: give a file of weights, or a model of a hub.")
        folder, config = None, {"model_type": "resnet", **resnet.ARCHITECTURES[settings.name]}
    else:
        folder = find_folder(settings, with_weights=own_weights)
        if not (folder / "config.json").is_file():
            raise BackboneError(f"{folder} has no config.json: give the folder that a transformers model was saved in.")
        config = _read_json(folder / "config.json")
    config = complete(config)
    channels = config.get("num_channels", 3)
    greys = read_greys(folder, channels) if folder else Greys.imagenet(channels)
    model = pretrained_model(config, folder) if folder and own_weights else random_model(config)
    if settings.weights:
        if config["model_type"] != "resnet":
            raise BackboneError(f"A file of weights fits ResNets and {lite.NAME} only, not {config['model_type']}.")
        path = Path(settings.weights).expanduser()
        tensors = {name: tensor for name, tensor in base.read_weights(path).items() if not resnet.is_classifier(name)}
        base.load_strictly(resnet.whole_parts(model), tensors, resnet.place, path.name)
    blueprint = Blueprint.of(settings, KIND, config, greys)
    return chain(model, blueprint), blueprint


base.REBUILD[KIND] = lambda blueprint: chain(random_model(blueprint.config), blueprint)


def complete(data: dict[str, Any]) -> dict[str, Any]:
    """Return the config with all defaults, one output map, and without labels and paths."""
    config = _config(data)
    staged = config.model_type in ("resnet", *_CONVNEXT)
    config.out_features = config.stage_names[-1:] if staged else config.out_features[-1:]
    if hasattr(config, "reshape_hidden_states"):
        config.reshape_hidden_states = True
    full: dict[str, Any] = json.loads(config.to_json_string(use_diff=False))
    return {key: value for key, value in full.items() if key not in _UNUSED_KEYS}


def _config(data: dict[str, Any]) -> Any:  # noqa: ANN401 - a class for each architecture
    """Make the config object; only of architectures that give maps, as others may ask a hub when they are made."""
    kind, transformers = data.get("model_type"), _transformers()
    if not isinstance(kind, str) or kind not in transformers.CONFIG_MAPPING:
        raise BackboneError(f"transformers {transformers.__version__} has no architecture {kind!r}.")
    if kind in _TIMM:
        raise BackboneError(f"{kind} downloads weights of others by name: give an architecture of transformers.")
    architecture, config = transformers.CONFIG_MAPPING[kind], None
    if architecture in transformers.MODEL_FOR_BACKBONE_MAPPING:
        try:
            config = architecture.from_dict(_without_forbidden_keys(data))
        except Exception as error:  # whatever each architecture's own checks raise
            raise BackboneError(f"transformers refuses this config of {kind}: {error}") from error
    if not hasattr(config, "stage_names"):
        raise BackboneError(f"transformers offers no feature maps of {kind}: give another architecture.")
    return config


def _without_forbidden_keys(data: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(data, dict):
        allowed = (key for key in data if key not in _FORBIDDEN_KEYS and _IMPLEMENTATION not in str(key))
        return {key: _without_forbidden_keys(data[key]) for key in allowed}
    return [_without_forbidden_keys(value) for value in data] if isinstance(data, list) else data


def _transformers() -> Any:  # noqa: ANN401 - a module
    try:
        import transformers  # slow to import
    except ModuleNotFoundError as error:
        raise BackboneError("This backbone needs transformers: pip install 'medgrape[text]'.") from error
    return transformers


def random_model(config: dict[str, Any]) -> nn.Module:
    """Return the architecture with random weights of torch's current seed."""
    parsed = _config(config)
    try:
        model: nn.Module = _transformers().AutoBackbone.from_config(parsed)
    except Exception as error:  # whatever each architecture's own layers raise
        message = f"transformers cannot build {parsed.model_type} from this config: {first_line(error)}"
        raise BackboneError(message) from error
    return model


def pretrained_model(config: dict[str, Any], folder: Path) -> nn.Module:
    """Return the architecture with the weights of a folder; missing and extra tensors are errors."""
    if not any((folder / name).is_file() for name in _WEIGHTS[:2]):
        raise BackboneError(f"{folder} has no model.safetensors: save the model as safetensors, or give its weights.")
    parsed = _config(config)
    architecture = _transformers().MODEL_FOR_BACKBONE_MAPPING[type(parsed)]
    try:
        with quiet_loading(_transformers().logging):
            model, report = architecture.from_pretrained(
                str(folder), config=parsed, use_safetensors=True, local_files_only=True, output_loading_info=True
            )
    except Exception as error:  # a broken file, or shapes that do not fit: each version of the library has its own
        raise BackboneError(f"The weights in {folder} do not fit its config.json: {error}") from error
    missing = sorted(name for name in report["missing_keys"] if not name.startswith(_UNTRAINED_NORM))
    if missing:
        raise BackboneError(f"The weights in {folder} have no tensor {missing[0]}: the model is incomplete.")
    children = {name for name, _ in model.named_children()}
    for name in sorted(report["unexpected_keys"]):  # tensors of other parts, such as a classifier, are left out
        if name.removeprefix(f"{model.base_model_prefix}.").split(".")[0] in children:
            raise BackboneError(f"Tensor {name} in {folder} has no place in the architecture of its config.json.")
    in_fp32: nn.Module = model.float()
    return in_fp32


def chain(model: Any, blueprint: Blueprint) -> Chain:  # noqa: ANN401 - any architecture
    """Return the parts of the model, without the stages and the stride that the blueprint leaves off."""
    kind = blueprint.config["model_type"]
    if kind == "resnet":
        return resnet.cut(resnet.whole_parts(model), blueprint)
    if not blueprint.last_stride:
        raise BackboneError(f"The last stride of {kind} cannot be removed: leave last_stride as it is.")
    size = blueprint.config.get("patch_size", 1)
    patch = int(size if isinstance(size, int) else max(size))
    if kind in _CONVNEXT:
        stages = list(model.encoder.stages)
        base.check_leave_off(blueprint.leave_off, len(stages), "This ConvNeXt")
        kept = stages[: len(stages) - blueprint.leave_off]
        norms = [] if blueprint.leave_off else list(model.hidden_states_norms.values())  # of the last stage only
        features = blueprint.config["hidden_sizes"][len(kept) - 1]
        return Chain([model.embeddings, *kept, *norms], features, patch * 2 ** (len(kept) - 1))
    if blueprint.leave_off:
        raise BackboneError(f"{kind} runs as one part, of which nothing can be left off: set leave_off to 0.")
    return Chain([LastMap(model)], model.channels[-1], patch)
