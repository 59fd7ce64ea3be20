"""The backbone in 8 bit integers: several times as fast where the processor multiplies those, and nearly as good.

Static quantisation: how large each activation gets is found out once, on training films (calibration), and is part of
the file. Only the backbone is made coarser. Projector, prototypes, maps and head stay as they are: they cost little,
and cosines that differ by hundredths decide.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from medgrape.runs.exported import FILMS
from medgrape.runs.onnx_graph import FEATURES, quiet

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

OPERATIONS = ("Conv", "Gemm", "MatMul", "Add", "Relu", "Clip", "MaxPool", "Pad")
"""What is computed in integers, inside the backbone."""
BATCH = 8


def quantise(graph: "ModelProto", films: Sequence[Float[np.ndarray, "side side"]]) -> "ModelProto":
    """The same graph with an int8 backbone, calibrated on films whose greys run from 0 to 1."""
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as name, quiet():
        whole, merged, small = (Path(name) / f"{step}.onnx" for step in ("whole", "merged", "small"))
        onnx.save(graph, whole)
        quant_pre_process(whole, merged, skip_symbolic_shape=True)  # batch norms become part of convolutions
        quantize_static(
            merged,
            small,
            _reader(films),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=list(OPERATIONS),
            nodes_to_exclude=_behind_backbone(onnx.load(merged)),
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
        quantised: ModelProto = onnx.load(small)
        return quantised


def _reader(films: Sequence[Float[np.ndarray, "side side"]]) -> object:
    """Films in small batches, as ONNX Runtime's calibration asks for them."""
    from onnxruntime.quantization import CalibrationDataReader

    class Films(CalibrationDataReader):  # type: ignore[misc]  # it has no types
        def __init__(self) -> None:
            starts = range(0, len(films), BATCH)
            self._left: Iterator[np.ndarray] = (np.stack(films[start : start + BATCH]) for start in starts)

        def get_next(self) -> dict[str, np.ndarray] | None:
            batch = next(self._left, None)
            return None if batch is None else {FILMS: batch}

    return Films()


def _behind_backbone(graph: "ModelProto") -> list[str]:
    """Names of the nodes that stay as they are: all that the backbone's features do not come from."""
    sources, inside = {FEATURES}, set[str]()
    nodes: Sequence[NodeProto] = graph.graph.node
    for node in reversed(nodes):  # they stand in the order in which they are computed
        if sources & set(node.output):
            inside.add(node.name)
            sources |= set(node.input)
    return [node.name for node in nodes if node.name not in inside]
