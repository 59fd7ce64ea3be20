"""Weights of other people's files, each tensor put into its place or the whole file refused."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from medgrape.errors import UserError

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_SPREAD = (0.229, 0.224, 0.225)


class BackboneError(UserError):
    """A backbone that cannot be built as asked."""


@dataclass(frozen=True)
class Greys:
    """How the greys of a film, 0 to 1, become what the weights were trained on: one figure for each channel."""

    mean: tuple[float, ...]
    spread: tuple[float, ...]
    """Standard deviation."""

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.spread) or len(self.mean) not in (1, 3) or min(self.spread) <= 0:
            raise BackboneError(
                f"A backbone takes 1 or 3 channels, each with a mean and a positive spread; "
                f"got means {self.mean} and spreads {self.spread}."
            )

    @classmethod
    def imagenet(cls, channels: int) -> "Greys":
        """Those of ImageNet; a backbone of one channel gets the average of the three colours."""
        if channels == 1:
            return cls((sum(IMAGENET_MEAN) / 3,), (sum(IMAGENET_SPREAD) / 3,))
        return cls(IMAGENET_MEAN, IMAGENET_SPREAD)


@dataclass(frozen=True)
class Blueprint:
    """An architecture without its weights."""

    kind: str
    """``efficientnet-lite0``, ``transformers``, or ``own``: of another package."""
    config: dict[str, Any]
    """The ``transformers`` config; empty for ``efficientnet-lite0``; of another package, the name of the part."""
    greys: Greys
    leave_off: int = 0
    last_stride: bool = True
    frozen_parts: int = 0

    def describe(self) -> dict[str, Any]:
        """The same as plain JSON data."""
        return {
            "kind": self.kind,
            "config": self.config,
            "mean": list(self.greys.mean),
            "spread": list(self.greys.spread),
            "leave_off": self.leave_off,
            "last_stride": self.last_stride,
            "frozen_parts": self.frozen_parts,
        }

    @classmethod
    def from_description(cls, data: dict[str, Any]) -> "Blueprint":
        """The blueprint that ``describe`` told of."""
        rest = dict(data)
        try:
            if not isinstance(rest["config"], dict):
                raise TypeError("its config holds no names and values")
            greys = Greys(tuple(rest.pop("mean")), tuple(rest.pop("spread")))
            return cls(greys=greys, **rest)
        except (KeyError, TypeError) as error:
            raise BackboneError(f"This is not the description of a backbone: {error}.") from error


@dataclass(frozen=True)
class Chain:
    """Parts that run one after another."""

    parts: Sequence[nn.Module]
    features: int
    """Of the map that the last part gives."""
    multiple: int = 1
    """What the side of a film must be a multiple of, so that the patches cover all of it."""


def check_leave_off(leave_off: int, stages: int, name: str) -> None:
    """Refuse to leave off all stages or more."""
    if leave_off >= stages:
        raise BackboneError(f"{name} has {stages} stages: leave_off may be at most {stages - 1}, not {leave_off}.")


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
