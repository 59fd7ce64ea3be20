"""Architectures of ``transformers`` as chains of parts; imports it only when one is asked for."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from medgrape.errors import first_line
from medgrape.model.backbones import resnet
from medgrape.model.backbones.base import BackboneError, Blueprint, Chain, check_leave_off
from medgrape.model.backbones.hub_folder import has_weights


@contextmanager
def quiet_loading(logging: Any) -> Iterator[None]:  # noqa: ANN401 (a module of an optional package)
    """No table of left-over tensors and no bars: what matters in them is checked, and raised, by whoever loads."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


_CONVNEXT = ("convnext", "convnextv2")
_OF_NO_USE = ("_name_or_path", "id2label", "label2id", "architectures", "dtype", "torch_dtype", "transformers_version")
_NOT_THE_NETWORK = frozenset(
    {
        "attribute_map", "auto_map", "base_model_ep_plan", "base_model_pp_plan", "base_model_tp_plan",
        "distributed_config", "dtype", "fusion_config", "kernel_config", "quantization_config", "torch_dtype",
        "transformers_weights", "use_kernels",
    }
)  # fmt: skip
"""Keys of a config that say how to compute, from which file or by whose code: a stranger's run may not choose that."""
_IMPLEMENTATION = "implementation"
"""In the name of every key that chooses code for attention or experts, which may be fetched from a hub."""
_TIMM = ("timm_backbone", "timm_wrapper")
_UNTRAINED_NORM = "hidden_states_norms."
"""ConvNeXt's backbone adds a norm that its checkpoints lack; it starts as plain normalisation, with nothing random."""


class LastMap(nn.Module):
    """A whole backbone of ``transformers`` as one part."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, films: Float[Tensor, "b c side side"]) -> Float[Tensor, "b d h w"]:
        """The last of its maps."""
        last: Tensor = self.model(films).feature_maps[-1]
        return last


def complete(data: dict[str, Any]) -> dict[str, Any]:
    """A config with every default spelled out, its outputs reduced to one map, its labels and paths left out."""
    config = _config(data)
    staged = config.model_type in ("resnet", *_CONVNEXT)
    config.out_features = config.stage_names[-1:] if staged else config.out_features[-1:]
    if hasattr(config, "reshape_hidden_states"):
        config.reshape_hidden_states = True
    spelled: dict[str, Any] = json.loads(config.to_json_string(use_diff=False))
    return {key: value for key, value in spelled.items() if key not in _OF_NO_USE}


def _config(data: dict[str, Any]) -> Any:  # noqa: ANN401 - a class for each architecture
    kind = data.get("model_type")
    made = _config_class(kind)
    try:
        config = made.from_dict(_of_the_network(data))
    except Exception as error:  # whatever each architecture's own checks raise
        raise BackboneError(f"transformers refuses this config of {kind}: {error}") from error
    if not hasattr(config, "stage_names"):
        raise _no_maps(kind)
    return config


def _config_class(kind: object) -> Any:  # noqa: ANN401 - a class for each architecture
    """Of an architecture that gives maps; no config of any other is made, as making one may already ask a hub."""
    transformers = _transformers()
    if not isinstance(kind, str) or kind not in transformers.CONFIG_MAPPING:
        raise BackboneError(f"transformers {transformers.__version__} knows no architecture {kind!r}.")
    if kind in _TIMM:
        raise BackboneError(
            f"{kind} loads weights of other people by their name: give an architecture of transformers."
        )
    if transformers.CONFIG_MAPPING[kind] not in transformers.MODEL_FOR_BACKBONE_MAPPING:
        raise _no_maps(kind)
    return transformers.CONFIG_MAPPING[kind]


def _no_maps(kind: object) -> BackboneError:
    return BackboneError(f"transformers offers no maps of features from {kind}: give another architecture.")


def _of_the_network(data: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The same without any key, however deep, that is not about the network itself."""
    if isinstance(data, dict):
        return {key: _of_the_network(value) for key, value in data.items() if not _of_computing(key)}
    return [_of_the_network(value) for value in data] if isinstance(data, list) else data


def _of_computing(key: object) -> bool:
    return key in _NOT_THE_NETWORK or _IMPLEMENTATION in str(key)


def _transformers() -> Any:  # noqa: ANN401 - a module
    try:
        import transformers
    except ModuleNotFoundError as error:
        raise BackboneError("This backbone needs transformers: pip install 'medgrape[text]'.") from error
    return transformers


def random_model(config: dict[str, Any]) -> nn.Module:
    """The architecture with random weights of torch's current seed."""
    made = _config(config)
    try:
        model: nn.Module = _transformers().AutoBackbone.from_config(made)
    except Exception as error:  # whatever each architecture's own layers raise
        raise BackboneError(f"transformers builds no {made.model_type} of this config: {first_line(error)}") from error
    return model


def pretrained_model(config: dict[str, Any], folder: Path) -> nn.Module:
    """The architecture with the folder's weights, all of them."""
    if not has_weights(folder):
        raise BackboneError(f"{folder} has no model.safetensors: save the model as safetensors, or give its weights.")
    made = _config(config)
    kind = _transformers().MODEL_FOR_BACKBONE_MAPPING[type(made)]
    try:
        with quiet_loading(_transformers().logging):
            model, told = kind.from_pretrained(
                str(folder), config=made, use_safetensors=True, local_files_only=True, output_loading_info=True
            )
    except Exception as error:  # a broken file, or shapes that do not fit: each version of the library has its own
        raise BackboneError(f"The weights in {folder} do not fit its config.json: {error}") from error
    _check_told(told, model, folder)
    whole: nn.Module = model.float()
    return whole


def _check_told(told: dict[str, Any], model: Any, folder: Path) -> None:  # noqa: ANN401 - any architecture
    """Refuse weights that leave a place to chance, or that belong into a part which has no room for them."""
    missing = sorted(name for name in told["missing_keys"] if not name.startswith(_UNTRAINED_NORM))
    if missing:
        raise BackboneError(f"The weights in {folder} have no tensor {missing[0]}: the model is not whole.")
    own = {name for name, _ in model.named_children()}
    for name in sorted(told["unexpected_keys"]):
        if name.removeprefix(f"{model.base_model_prefix}.").split(".")[0] in own:
            raise BackboneError(f"Tensor {name} in {folder} has no place in the architecture of its config.json.")


def chain(model: Any, blueprint: Blueprint) -> Chain:  # noqa: ANN401 - any architecture
    """The model as parts, without the stages and the stride that the blueprint leaves off."""
    kind = blueprint.config["model_type"]
    if kind == "resnet":
        return resnet.cut(resnet.whole_parts(model), blueprint)
    if not blueprint.last_stride:
        raise BackboneError(f"The last stride of {kind} cannot be removed: leave last_stride as it is.")
    if kind in _CONVNEXT:
        return _convnext(model, blueprint)
    if blueprint.leave_off:
        raise BackboneError(f"{kind} runs as one part, of which nothing can be left off: set leave_off to 0.")
    return Chain([LastMap(model)], model.channels[-1], _patch(blueprint))


def _convnext(model: Any, blueprint: Blueprint) -> Chain:  # noqa: ANN401
    """Stem, stages, and the norm that goes with the last stage only."""
    stages = list(model.encoder.stages)
    check_leave_off(blueprint.leave_off, len(stages), "This ConvNeXt")
    kept = stages[: len(stages) - blueprint.leave_off]
    norms = [] if blueprint.leave_off else list(model.hidden_states_norms.values())
    multiple = _patch(blueprint) * 2 ** (len(kept) - 1)
    return Chain([model.embeddings, *kept, *norms], blueprint.config["hidden_sizes"][len(kept) - 1], multiple)


def _patch(blueprint: Blueprint) -> int:
    patch = blueprint.config.get("patch_size", 1)
    return int(patch if isinstance(patch, int) else max(patch))
