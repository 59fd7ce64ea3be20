"""Quantisation of the backbone to 8 bit integers: several times as fast on processors that multiply those.

Static quantisation: the ranges of activations are calibrated once, on training films, and stored in the file. Only the
backbone is quantised. Projector, prototypes, maps and head stay in fp32: they cost little, and cosines that differ by
hundredths matter.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from medgrape.runs.exported import FILMS
from medgrape.runs.onnx_graph import FEATURES, quiet

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

OPERATIONS = ("Conv", "Gemm", "MatMul", "Add", "Relu", "Clip", "MaxPool", "Pad")
"""Operations that are computed in integers, inside the backbone."""
BATCH = 8


def quantise(graph: "ModelProto", films: Sequence[Float[np.ndarray, "side side"]]) -> "ModelProto":
    """Return the graph with an int8 backbone, calibrated on films with grey levels from 0 to 1."""
    import onnx  # slow to import
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Films(CalibrationDataReader):  # type: ignore[misc]  # it has no types
        def __init__(self) -> None:
            self._batches = (np.stack(films[start : start + BATCH]) for start in range(0, len(films), BATCH))

        def get_next(self) -> dict[str, np.ndarray] | None:
            batch = next(self._batches, None)
            return None if batch is None else {FILMS: batch}

    with tempfile.TemporaryDirectory() as folder, quiet():
        original, folded, quantised = (Path(folder) / f"{step}.onnx" for step in ("original", "folded", "quantised"))
        onnx.save(graph, original)
        quant_pre_process(original, folded, skip_symbolic_shape=True)  # folds batch norms into convolutions
        quantize_static(
            folded,
            quantised,
            Films(),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=list(OPERATIONS),
            nodes_to_exclude=_behind_backbone(onnx.load(folded)),
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
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
