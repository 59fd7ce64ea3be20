"""Films of any size, inside the graph: where it is not the model's own, greys are averaged by area."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from medgrape.interchange.onnx_tracing import traced
from medgrape.model.exported import FILMS

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

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
