"""Weights of other people's files, each tensor put into its place or the whole file refused."""

from collections.abc import Callable, Mapping
from pathlib import Path
from pickle import UnpicklingError  # what ``torch.load`` raises at anything but tensors
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from medgrape.model.backbone_blueprint import BackboneError

_WRAPPINGS = ("state_dict", "model")
"""Where training scripts put the weights among other things."""


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or of a PyTorch file that holds nothing else."""
    if not path.is_file():
        raise BackboneError(
            f"There is no file of weights at {path}, nor a run; train that run first, or name another backbone.weights."
        )
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        found = torch.load(path, weights_only=True, map_location="cpu")
    except (SafetensorError, OSError, RuntimeError, ValueError, EOFError, UnpicklingError) as error:
        raise BackboneError(
            f"{path} holds no weights that can be read safely: give safetensors, or a PyTorch file of tensors only."
        ) from error
    return _tensors(found, path)


def _tensors(found: Any, path: Path) -> dict[str, Tensor]:  # noqa: ANN401 - a file may hold anything
    for wrapping in _WRAPPINGS:
        if isinstance(found, dict) and isinstance(found.get(wrapping), dict):
            found = found[wrapping]
    if not isinstance(found, dict) or not all(isinstance(tensor, Tensor) for tensor in found.values()):
        raise BackboneError(f"{path} is not a file of named tensors.")
    return {str(name): tensor for name, tensor in found.items()}


def load_strictly(
    parts: nn.ModuleList, tensors: Mapping[str, Tensor], place: Callable[[str], str | None], source: str
) -> None:
    """Put every tensor into its place and leave no place empty.

    Batch norm's counters alone may be missing: files from before they existed are whole without them.
    """
    wanted, placed = parts.state_dict(), dict[str, Tensor]()
    for name, tensor in tensors.items():
        target = place(name)
        if target is None or target not in wanted or target in placed:
            raise BackboneError(f"Tensor {name} of {source} has no place in this architecture: is it for another one?")
        if tensor.shape != wanted[target].shape:
            raise BackboneError(
                f"Tensor {name} of {source} is {tuple(tensor.shape)}, its place in this architecture is "
                f"{tuple(wanted[target].shape)}: is it for another one?"
            )
        placed[target] = tensor
    for target in wanted:
        if target not in placed and not target.endswith(".num_batches_tracked"):
            raise BackboneError(f"{source} has no tensor for {target} of this architecture: is it for another one?")
    parts.load_state_dict(wanted | placed)
