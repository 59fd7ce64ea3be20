"""A model in one ONNX file, computed by ONNX Runtime: the results of torch, several times as fast on a CPU.

The properties of the file contain everything that a run contains beside its weights, and a checksum of it all.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from safetensors.torch import load, save
from torch import Tensor

from medgrape.concepts import ConceptSet
from medgrape.config import parse_config
from medgrape.model.atlas import Atlas
from medgrape.model.grape import Maps, Prediction, ReadingModel
from medgrape.runs.checkpoint import Change, LoadedRun, ReferenceScores, Run, SafetyThresholds, load_run
from medgrape.runs.exemplars import ARRAYS, ExemplarFilms
from medgrape.runs.manifest import Manifest, RunError, run_errors

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnxruntime import InferenceSession

FORMAT = 1  # Incremented when an older version can no longer read an export
PREFIX = "medgrape."  # Prefix of the names of all properties
SEAL = f"{PREFIX}seal"  # The property with the checksum; it alone is not JSON
NOTICE = "Research software, not a medical device."
SUFFIX = ".onnx"
FILMS, SCORES, LOGITS, ATTENTION = "films", "scores", "logits", "attention"
LARGEST = 2**31 - 1  # Maximum size of an ONNX file in bytes
_TENSORS, _EXEMPLARS = "tensors", "exemplars."


def record(loaded: LoadedRun, precision: str, calibrated: Mapping[str, Any] | None) -> dict[str, str]:
    """Return all properties but the seal; ``calibrated`` describes the films that int8 was calibrated on."""
    run, atlas = loaded.run, loaded.run.model.atlas
    tensors = {"prototypes": atlas.prototypes, "kept": atlas.kept, "silent": atlas.silent}
    tensors |= vars(run.reference_scores)
    tensors |= {f"{_EXEMPLARS}{name}": tensor for name, tensor in run.exemplars.tensors.items()}
    packed = save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()})
    topics = {
        "format": FORMAT, "notice": NOTICE, "precision": precision, "calibrated_on": calibrated,
        "classes": run.classes, "concepts": run.concepts.to_tables(),
        "preprocessing": run.config.preprocessing.model_dump(mode="json"),
        "config": run.config.model_dump(mode="json"),
        "judged": run.model.head_concepts, "metrics": run.metrics, "learnt_from": run.learnt_from,
        "safety": None if run.safety is None else run.safety.to_json(),
        "changes": [asdict(change) for change in run.changes],
        "own_parts": run.plugins, "exemplars": run.exemplars.names, "manifest": asdict(loaded.manifest),
        _TENSORS: base64.b64encode(packed).decode("ascii"),
    }  # fmt: skip
    return {f"{PREFIX}{topic}": json.dumps(value) for topic, value in topics.items()}


@dataclass(frozen=True)
class ExportRecord:
    """The properties of an export, parsed."""

    topics: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "ExportRecord":
        """Parse the properties of a file; a missing one is a ``KeyError``."""
        own = {name: text for name, text in properties.items() if name.startswith(PREFIX) and name != SEAL}
        topics = {name.removeprefix(PREFIX): json.loads(text) for name, text in own.items()}
        return cls(topics, load(base64.b64decode(topics.pop(_TENSORS), validate=True)))

    def atlas(self) -> Atlas:
        """Return the prototypes, which cannot be trained."""
        prototypes = self.tensors["prototypes"]
        atlas = Atlas(*prototypes.shape)
        atlas.place(prototypes)
        atlas.curated(self.tensors["kept"], self.tensors["silent"])
        return atlas.eval().requires_grad_(False)

    def run(self, model: ReadingModel) -> Run:
        """Return the run that was exported, with another model."""
        topics, safety = self.topics, self.topics["safety"]
        exemplars = {name: self.tensors[f"{_EXEMPLARS}{name}"] for name in ARRAYS}
        return Run(
            config=parse_config(topics["config"]), concepts=ConceptSet.from_tables(topics["concepts"]),
            classes=tuple(topics["classes"]), model=model,
            reference_scores=ReferenceScores(*(self.tensors[field.name] for field in fields(ReferenceScores))),
            exemplars=ExemplarFilms.of(exemplars, topics["exemplars"]),
            metrics=topics["metrics"], learnt_from=tuple(topics["learnt_from"]),
            safety=None if safety is None else SafetyThresholds(**safety),
            changes=tuple(Change(**change) for change in topics["changes"]),
            plugins=topics.get("own_parts", {}),
        )  # fmt: skip


class ExportedGrape:
    """A model that ONNX Runtime computes; it cannot be trained."""

    def __init__(self, graph: "ModelProto", record: ExportRecord) -> None:
        self._whole = _session(graph)
        self._head = _session(_head_of(graph))
        self._attends = any(output.name == ATTENTION for output in self._head.get_outputs())
        self.atlas: Atlas = record.atlas()
        self.head_concepts: int = record.topics["judged"]
        self.runtime = f"ONNX Runtime, {record.topics['precision']}"

    def patches(self, films: Float[Tensor, "b 1 side side"]) -> Float[Tensor, "b d h w"]:
        """Return every patch of the films in the space of prototypes."""
        return self._compute(films, "patches")["patches"]

    def classify(self, found: Float[Tensor, "b k m"]) -> Prediction:
        """Return the classes for score matrices: the head alone, without a film."""
        outputs = _run(self._head, [LOGITS, ATTENTION] if self._attends else [LOGITS], {SCORES: found.numpy()})
        return Prediction(outputs[LOGITS], found, outputs.get(ATTENTION))

    def predict_with_mean_maps(
        self, films: Float[Tensor, "b 1 side side"]
    ) -> tuple[Prediction, Float[Tensor, "b k h w"]]:
        """Return classes and mean maps, which suffice for bulk reading."""
        prediction, outputs = self._predict(films, "mean_maps")
        return prediction, outputs["mean_maps"]

    def predict_with_all_maps(self, films: Float[Tensor, "b 1 side side"]) -> tuple[Prediction, Maps]:
        """Return classes and all maps from one pass."""
        prediction, outputs = self._predict(films, "mean_maps", "strongest_maps", "cam_maps")
        return prediction, Maps(outputs["mean_maps"], outputs["strongest_maps"], outputs["cam_maps"])

    def _predict(self, films: Float[Tensor, "b 1 side side"], *maps: str) -> tuple[Prediction, Mapping[str, Tensor]]:
        outputs = self._compute(films, LOGITS, SCORES, *maps, *([ATTENTION] if self._attends else []))
        return Prediction(outputs[LOGITS], outputs[SCORES], outputs.get(ATTENTION)), outputs

    def _compute(self, films: Float[Tensor, "b 1 side side"], *names: str) -> dict[str, Tensor]:
        return _run(self._whole, names, {FILMS: films[:, 0].numpy()})


def load_readable(path: Path) -> LoadedRun:
    """Load the run in a folder, or the export in an .onnx file."""
    return load_export(path) if path.suffix == SUFFIX and not path.is_dir() else load_run(path)


def load_export(path: Path) -> LoadedRun:
    """Load the model in an .onnx file that ``medgrape export`` wrote, after verifying its seal."""
    graph = _parsed(path)
    properties = {prop.key: prop.value for prop in graph.metadata_props}
    if f"{PREFIX}format" not in properties:
        raise RunError(f"{path} is an ONNX file, but medgrape export did not make it; it cannot be read with.")
    if properties[f"{PREFIX}format"] != str(FORMAT):
        raise RunError(f"{path} is of another version of medgrape; export the run again.")
    if properties.get(SEAL) != seal_of(graph, properties):
        raise RunError(f"{path} was altered after it was exported; copy it again, or export the run again.")
    with run_errors(path):
        record = ExportRecord.of(properties)
        return LoadedRun(path, record.run(ExportedGrape(graph, record)), Manifest(**record.topics["manifest"]))


def seal_of(graph: "ModelProto", properties: Mapping[str, str]) -> str:
    """Return the checksum of every node, weight and property but the seal itself."""
    checksum = hashlib.sha256(graph.graph.SerializeToString(deterministic=True))
    for name in sorted(set(properties) - {SEAL}):
        checksum.update(f"\n{name}={properties[name]}".encode())
    return checksum.hexdigest()


def check_parts() -> None:
    """Raise an error if the packages for exports are missing."""
    try:
        import onnx  # noqa: F401 (slow to import)
        import onnxruntime  # noqa: F401 (slow to import)
    except ModuleNotFoundError as missing:
        raise RunError("Models in .onnx files need more packages: pip install 'medgrape[export]'.") from missing


def _parsed(path: Path) -> "ModelProto":
    """Parse the file; one that refers to other files is refused, so that no other file is ever opened."""
    check_parts()
    import onnx  # slow to import
    from google.protobuf.message import DecodeError

    if not path.is_file():
        raise RunError(f"There is no file {path}. Make one with: medgrape export.")
    if path.stat().st_size > LARGEST:
        raise RunError(f"{path} is larger than an ONNX file may be.")
    try:
        graph: ModelProto = onnx.load_model_from_string(path.read_bytes())
    except (DecodeError, ValueError) as error:
        raise RunError(f"{path} is no ONNX file, or incomplete; copy it again, or export the run again.") from error
    if any(weights.data_location == onnx.TensorProto.EXTERNAL for weights in graph.graph.initializer):
        raise RunError(f"{path} keeps its weights in another file, which is never opened; export the run again.")
    return graph


def _head_of(graph: "ModelProto") -> "ModelProto":
    """Return the graph from scores to classes, which classifies corrected scores without the film."""
    from onnx import ModelProto, helper  # slow to import

    outputs = [output for output in graph.graph.output if output.name in (LOGITS, ATTENTION)]
    needed, nodes = {output.name for output in outputs}, []
    for node in reversed(graph.graph.node):  # nodes are in topological order
        if needed & set(node.output) and SCORES not in node.output:
            nodes.append(node)
            needed |= set(node.input)
    weights = [tensor for tensor in graph.graph.initializer if tensor.name in needed]
    scores = [output for output in graph.graph.output if output.name == SCORES]
    head = helper.make_graph(nodes[::-1], "head", scores, outputs, weights)
    model: ModelProto = helper.make_model(head, opset_imports=graph.opset_import, ir_version=graph.ir_version)
    return model


def _session(graph: "ModelProto") -> "InferenceSession":
    """Open a session with as many threads as torch has."""
    from onnxruntime import InferenceSession, SessionOptions  # slow to import

    options = SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3  # no remarks on optimisation
    return InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _run(session: "InferenceSession", names: Sequence[str], inputs: dict[str, np.ndarray]) -> dict[str, Tensor]:
    outputs = session.run(list(names), inputs)
    return {name: torch.from_numpy(np.asarray(array)) for name, array in zip(names, outputs, strict=True)}
