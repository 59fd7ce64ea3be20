"""A torch module as an ONNX graph."""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from medgrape.model.exported import FILMS

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET = 20
_LARGEST = 2**20
"""Of any size: films in a batch, pixels of a side."""


def traced(module: nn.Module, example: Tensor, outputs: Sequence[str], free: Mapping[int, str]) -> "ModelProto":
    """A module of one input as a graph; ``free`` names the dimensions of the input that may have any length."""
    shape = {place: torch.export.Dim(name, max=_LARGEST) for place, name in free.items()}
    with quiet():
        program = torch.onnx.export(
            module, (example,), dynamo=True, dynamic_shapes=(shape,), input_names=[FILMS], output_names=outputs,
            opset_version=OPSET, verbose=False,
        )  # fmt: skip
    assert program is not None  # noqa: S101 (it is with dynamo=True)
    return program.model_proto


@contextmanager
def quiet() -> Iterator[None]:
    """Exporters remark on packages that are not there and on their own future; what fails raises."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(level)
