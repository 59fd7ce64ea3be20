"""A run's model as one ONNX graph: film in; classes, scores, maps and patches out.

The film may have any size: the graph brings it to the model's own. Everything that is asked of a model afterwards, in
whatever language, is among the outputs.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from einops import rearrange
from torch import Tensor, nn

from medgrape.model.grape import Grape
from medgrape.runs.exported import ATTENTION, FILMS, LOGITS, SCORES

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

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


SEEN = "films_seen"
_GREYS = 255.0


class ByArea(nn.Module):
    """A film stretched to a square, each grey the average of the area that it stands for, in 256 steps."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, films: Tensor) -> Tensor:
        """Two products with the share that each pixel has in each row and column of the square."""
        small = self._shares(films[0, :, 0]) @ films @ self._shares(films[0, 0]).T
        return (small * _GREYS).round() / _GREYS

    def _shares(self, line: Tensor) -> Tensor:
        """Of each pixel of a line (column) in each place of the square (row); counted by tensors, as sizes are free."""
        pixels = torch.ones_like(line)
        count, after = pixels.sum(), pixels.cumsum(dim=0)
        edges = torch.arange(self.side + 1) * count / self.side
        overlap = torch.minimum(edges[1:, None], after) - torch.maximum(edges[:-1, None], after - 1)
        return overlap.clamp_min(0.0) * self.side / count


def with_any_size(graph: "ModelProto", side: int) -> "ModelProto":
    """The same graph for films of any size; those of the model's own size go straight on."""
    from onnx import TensorProto, helper

    free = {0: "batch", 1: "height", 2: "width"}
    other = traced(ByArea(side).eval(), torch.rand(2, side + 3, side + 5), ["films_by_area"], free).graph
    same = helper.make_graph(
        [helper.make_node("Identity", [FILMS], ["films_as_they_are"])], "as they are", [],
        [helper.make_tensor_value_info("films_as_they_are", TensorProto.FLOAT, None)],
    )  # fmt: skip
    own = helper.make_tensor("own_size", TensorProto.INT64, [2], [side, side])
    nodes = [
        helper.make_node("Shape", [FILMS], ["film_size"], start=1),
        helper.make_node("Sub", ["film_size", "own_size"], ["size_apart"]),
        helper.make_node("Abs", ["size_apart"], ["size_far"]),
        helper.make_node("ReduceMax", ["size_far"], ["size_farthest"], keepdims=0),
        helper.make_node("Cast", ["size_farthest"], ["size_differs"], to=TensorProto.BOOL),
        helper.make_node("If", ["size_differs"], [SEEN], then_branch=_inner(other), else_branch=same),
    ]
    for node in graph.graph.node:
        node.input[:] = [SEEN if name == FILMS else name for name in node.input]
    rest = list(graph.graph.node)
    del graph.graph.node[:]
    graph.graph.node.extend([*nodes, *rest])
    graph.graph.initializer.append(own)
    for dimension, name in zip(graph.graph.input[0].type.tensor_type.shape.dim, free.values(), strict=True):
        dimension.dim_param = name
    return graph


def _inner(graph: "GraphProto") -> "GraphProto":
    """A graph inside another: it sees the films of the one around it, and its own names are its own."""
    from onnx import compose

    inner: GraphProto = compose.add_prefix_graph(graph, "by_area_")
    del inner.input[:]
    for node in inner.node:
        node.input[:] = [FILMS if name == f"by_area_{FILMS}" else name for name in node.input]
    return inner


FEATURES = "features"
"""What the backbone gives: where int8 ends."""
OUTPUTS = (
    LOGITS, "probabilities", SCORES, "mean_maps", "disagreement_maps", "strongest_maps", "cam_maps", "patches",
    FEATURES, ATTENTION,
)  # fmt: skip


class WholeModel(nn.Module):
    """From greys between 0 and 1 to every output, in the order of ``OUTPUTS``."""

    def __init__(self, model: Grape) -> None:
        super().__init__()
        self.model = model

    def forward(self, films: Tensor) -> tuple[Tensor, ...]:
        """All outputs; heads that do not attend give one less."""
        features = self.model.features(films.unsqueeze(1))
        patches = self.model.projector.patches(features)
        scores, *maps = self._compared(patches)
        answer = self.model.judge(scores)
        outputs = (answer.logits, answer.probabilities, scores, *maps, self.model.cam(features), patches, features)
        return outputs if answer.attention is None else (*outputs, answer.attention)

    def _compared(self, patches: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Scores, then mean, disagreement and strongest maps, all from one product of patches and prototypes.

        Unlike ``evidence.py``, all concepts at once: few large steps suit a runtime that pays for each step.
        """
        atlas = self.model.atlas
        flat = rearrange(patches, "b d h w -> b d (h w)")
        similarity = rearrange(
            rearrange(atlas.prototypes, "k m d -> (k m) d") @ flat, "b (k m) p -> b k m p", k=len(atlas.kept)
        )
        shares = (atlas.kept / atlas.kept.sum(dim=1, keepdim=True)).unsqueeze(1)
        mean = shares @ similarity
        disagreement = shares @ (similarity - mean).square()
        strongest = (similarity + torch.where(atlas.kept, 0.0, -torch.inf).unsqueeze(-1)).amax(dim=2)
        maps = (mean.squeeze(2), disagreement.squeeze(2), strongest)
        high = patches.shape[-2]
        mean, disagreement, strongest = (rearrange(one, "b k (h w) -> b k h w", h=high) for one in maps)
        return similarity.amax(dim=-1), mean, disagreement, strongest


@torch.no_grad()
def build_graph(model: Grape, side: int) -> "ModelProto":
    """The graph with all weights in it; the number of films and their size are free."""
    whole, example = WholeModel(model).eval(), torch.rand(2, side, side)
    outputs = OUTPUTS[: len(whole(example))]
    return with_any_size(traced(whole, example, outputs, {0: "batch"}), side)
