"""A run's model as one ONNX graph: from films to classes, scores, maps and patches; optionally with 8 bit integers.

Films may have any size: the graph resamples them to the model's. The outputs contain everything that is needed of the
model afterwards, in any language.

Quantisation is static: the ranges of activations are calibrated once, on training films, and stored in the file. Only
the backbone is quantised. Projector, prototypes, maps and head stay in fp32: they cost little, and cosines that differ
by hundredths matter.
"""

import logging
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.datasets.cache import in_order
from medgrape.model.grape import Grape
from medgrape.progress import suppressed_messages
from medgrape.runs.exported import ATTENTION, FILMS, LOGITS, SCORES

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

OPSET = 20
FEATURES = "features"  # The output of the backbone, where int8 ends
OUTPUTS = (
    LOGITS, "probabilities", SCORES, "mean_maps", "disagreement_maps", "strongest_maps", "cam_maps", "patches",
    FEATURES, ATTENTION,
)  # fmt: skip
_RESAMPLED = "films_seen"
_GREYS = 255.0
_LARGEST = 2**20  # Upper bound of every free dimension: films in a batch, pixels of a side
OPERATIONS = ("Conv", "Gemm", "MatMul", "Add", "Relu", "Clip", "MaxPool", "Pad")  # In integers, in the backbone
BATCH = 8


@torch.no_grad()
def build_graph(model: Grape, side: int) -> "ModelProto":
    """Return the graph with all weights; the number of films and their size are free."""
    module, example = WholeModel(model).eval(), torch.rand(2, side, side)
    outputs = OUTPUTS[: len(module(example))]
    return _with_any_size(_traced(module, example, outputs, {0: "batch"}), side)


class WholeModel(nn.Module):
    """From grey levels between 0 and 1 to all outputs, in the order of ``OUTPUTS``."""

    def __init__(self, model: Grape) -> None:
        super().__init__()
        self.model = model

    def forward(self, films: Tensor) -> tuple[Tensor, ...]:
        """Return all outputs; a head without attention has one less."""
        features = self.model.features(films.unsqueeze(1))
        patches = self.model.projector.patches(features)
        scores, *maps = self._compared(patches)
        prediction = self.model.classify(scores)
        maps += [self.model.cam(features), patches, features]
        attention = () if prediction.attention is None else (prediction.attention,)
        return (prediction.logits, prediction.probabilities, scores, *maps, *attention)

    def _compared(self, patches: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return scores and mean, disagreement and strongest maps, from one product of patches and prototypes.

        Unlike ``evidence.py``, it computes all concepts at once: few large operations suit ONNX Runtime.
        """
        atlas = self.model.atlas
        flat = rearrange(patches, "b d h w -> b d (h w)")
        cosines = rearrange(atlas.prototypes, "k m d -> (k m) d") @ flat
        similarity = rearrange(cosines, "b (k m) p -> b k m p", k=len(atlas.kept))
        weights = (atlas.kept / atlas.kept.sum(dim=1, keepdim=True)).unsqueeze(1)
        mean = weights @ similarity
        disagreement = weights @ (similarity - mean).square()
        strongest = (similarity + torch.where(atlas.kept, 0.0, -torch.inf).unsqueeze(-1)).amax(dim=2)
        maps = (mean.squeeze(2), disagreement.squeeze(2), strongest)
        height = patches.shape[-2]
        mean, disagreement, strongest = (rearrange(flat, "b k (h w) -> b k h w", h=height) for flat in maps)
        return similarity.amax(dim=-1), mean, disagreement, strongest


class AreaResize(nn.Module):
    """Resamples films to a square by area averaging, rounded to 256 grey levels."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, films: Tensor) -> Tensor:
        """Multiply with the weight of each pixel in each row and in each column of the square."""
        small = self._weights(films[0, :, 0]) @ films @ self._weights(films[0, 0]).T
        return (small * _GREYS).round() / _GREYS

    def _weights(self, line: Tensor) -> Tensor:
        """Return the weight of each pixel of a line (column) in each pixel of the square (row).

        Sizes are computed from tensors, as they are free dimensions.
        """
        pixels = torch.ones_like(line)
        count, after = pixels.sum(), pixels.cumsum(dim=0)
        edges = torch.arange(self.side + 1) * count / self.side
        overlap = torch.minimum(edges[1:, None], after) - torch.maximum(edges[:-1, None], after - 1)
        return overlap.clamp_min(0.0) * self.side / count


def _traced(module: nn.Module, example: Tensor, outputs: Sequence[str], free: Mapping[int, str]) -> "ModelProto":
    """Export a module of one input; ``free`` names the dimensions of the input that may have any length."""
    shape = {dimension: torch.export.Dim(name, max=_LARGEST) for dimension, name in free.items()}
    with suppressed_messages(logging.WARNING):  # about missing packages and deprecations
        program = torch.onnx.export(
            module, (example,), dynamo=True, dynamic_shapes=(shape,), input_names=[FILMS], output_names=outputs,
            opset_version=OPSET, verbose=False,
        )  # fmt: skip
    assert program is not None  # noqa: S101 (it is with dynamo=True)
    return program.model_proto


def _with_any_size(graph: "ModelProto", side: int) -> "ModelProto":
    """Return the graph for films of any size; those of the model's own size are not resampled."""
    from onnx import TensorProto, helper  # slow to import

    free = {0: "batch", 1: "height", 2: "width"}
    resample = _traced(AreaResize(side).eval(), torch.rand(2, side + 3, side + 5), ["films_by_area"], free).graph
    identity = helper.make_graph(
        [helper.make_node("Identity", [FILMS], ["films_as_they_are"])], "as they are", [],
        [helper.make_tensor_value_info("films_as_they_are", TensorProto.FLOAT, None)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Shape", [FILMS], ["film_size"], start=1),
        helper.make_node("Sub", ["film_size", "own_size"], ["size_apart"]),
        helper.make_node("Abs", ["size_apart"], ["size_far"]),
        helper.make_node("ReduceMax", ["size_far"], ["size_farthest"], keepdims=0),
        helper.make_node("Cast", ["size_farthest"], ["size_differs"], to=TensorProto.BOOL),
        helper.make_node("If", ["size_differs"], [_RESAMPLED], then_branch=_inner(resample), else_branch=identity),
    ]
    for node in graph.graph.node:
        node.input[:] = [_RESAMPLED if name == FILMS else name for name in node.input]
    rest = list(graph.graph.node)
    del graph.graph.node[:]
    graph.graph.node.extend([*nodes, *rest])
    graph.graph.initializer.append(helper.make_tensor("own_size", TensorProto.INT64, [2], [side, side]))
    for dimension, name in zip(graph.graph.input[0].type.tensor_type.shape.dim, free.values(), strict=True):
        dimension.dim_param = name
    return graph


def _inner(graph: "GraphProto") -> "GraphProto":
    """Return a graph as a branch of another: it uses the films of the outer graph, and prefixes its own names."""
    from onnx import compose  # slow to import

    inner: GraphProto = compose.add_prefix_graph(graph, "by_area_")
    del inner.input[:]
    for node in inner.node:
        node.input[:] = [FILMS if name == f"by_area_{FILMS}" else name for name in node.input]
    return inner


def quantise(graph: "ModelProto", films: Sequence[Float[np.ndarray, "side side"]]) -> "ModelProto":
    """Return the graph with an int8 backbone, calibrated on films with grey levels from 0 to 1."""
    import onnx  # slow to import
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Films(CalibrationDataReader):  # type: ignore[misc]  # it has no types
        def __init__(self) -> None:
            self._batches = map(np.stack, in_order(films, BATCH))

        def get_next(self) -> dict[str, np.ndarray] | None:
            batch = next(self._batches, None)
            return None if batch is None else {FILMS: batch}

    with tempfile.TemporaryDirectory() as folder, suppressed_messages(logging.WARNING):
        original, folded, quantised = (Path(folder) / f"{step}.onnx" for step in ("original", "folded", "quantised"))
        onnx.save(graph, original)
        quant_pre_process(original, folded, skip_symbolic_shape=True)  # folds batch norms into convolutions
        quantize_static(
            folded, quantised, Films(), quant_format=QuantFormat.QDQ, op_types_to_quantize=list(OPERATIONS),
            nodes_to_exclude=_behind_backbone(onnx.load(folded)), per_channel=True,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, extra_options={"MatMulConstBOnly": True},
        )  # fmt: skip
        result: ModelProto = onnx.load(quantised)
        return result


def _behind_backbone(graph: "ModelProto") -> list[str]:
    """Return the names of all nodes that the backbone's features do not depend on."""
    needed, backbone = {FEATURES}, set[str]()
    nodes: Sequence[NodeProto] = graph.graph.node
    for node in reversed(nodes):  # they are in topological order
        if needed & set(node.output):
            backbone.add(node.name)
            needed |= set(node.input)
    return [node.name for node in nodes if node.name not in backbone]
