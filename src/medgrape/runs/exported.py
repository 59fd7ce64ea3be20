"""A model in one ONNX file, computed by ONNX Runtime: the answers of torch, several times as fast on a CPU."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
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
from medgrape.runs.checkpoint import Change, ExemplarFilms, LoadedRun, Run, SafetyThresholds, UsualScores, load_run
from medgrape.runs.manifest import Manifest, RunError, fitting

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnxruntime import InferenceSession

FORMAT = 1
"""Counted up whenever an older version could not read an export any more."""
PREFIX = "medgrape."
SEAL = f"{PREFIX}seal"
"""The checksum of all the others, which alone is no JSON."""
NOTICE = "Research software, not a medical device."
_TENSORS, _PICTURES = "tensors", "exemplars."


def record(loaded: LoadedRun, precision: str, calibrated: Mapping[str, Any] | None) -> dict[str, str]:
    """All properties of a run; ``calibrated`` tells on which films int8 was calibrated."""
    run, atlas = loaded.run, loaded.run.model.atlas
    tensors = {"prototypes": atlas.prototypes, "kept": atlas.kept, "silent": atlas.silent, **_usual_tensors(run.usual)}
    tensors |= {f"{_PICTURES}{name}": tensor for name, tensor in run.exemplars.tensors.items()}
    topics = {
        "format": FORMAT,
        "notice": NOTICE,
        "precision": precision,
        "calibrated_on": calibrated,
        "classes": run.classes,
        "concepts": run.concepts.to_tables(),
        "preprocessing": run.config.preprocessing.model_dump(mode="json"),
        "config": run.config.model_dump(mode="json"),
        "judged": run.model.judged,
        "metrics": run.metrics,
        "learnt_from": run.learnt_from,
        "safety": None if run.safety is None else run.safety.to_json(),
        "changes": [asdict(change) for change in run.changes],
        "own_parts": run.own_parts,
        "exemplars": run.exemplars.names,
        "manifest": asdict(loaded.manifest),
    }
    told = {f"{PREFIX}{topic}": json.dumps(value) for topic, value in topics.items()}
    return told | {f"{PREFIX}{_TENSORS}": json.dumps(_packed(tensors))}


@dataclass(frozen=True)
class Record:
    """What ``record`` told."""

    topics: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "Record":
        """From the properties of a file; a ``KeyError`` names what is missing."""
        own = {name: text for name, text in properties.items() if name.startswith(PREFIX) and name != SEAL}
        told = {name.removeprefix(PREFIX): json.loads(text) for name, text in own.items()}
        return cls(told, load(base64.b64decode(told.pop(_TENSORS), validate=True)))

    @property
    def atlas(self) -> Atlas:
        """The prototypes, which learn nothing any more."""
        prototypes = self.tensors["prototypes"]
        atlas = Atlas(*prototypes.shape)
        atlas.place(prototypes)
        atlas.curated(self.tensors["kept"], self.tensors["silent"])
        return atlas.eval().requires_grad_(False)

    @property
    def manifest(self) -> Manifest:
        """Of the run that was exported."""
        return Manifest(**self.topics["manifest"])

    def run(self, model: ReadingModel) -> Run:
        """The run that was exported, with another model in its place."""
        told, safety = self.topics, self.topics["safety"]
        pictures = {name.removeprefix(_PICTURES): one for name, one in self.tensors.items() if _PICTURES in name}
        return Run(
            config=parse_config(told["config"]),
            concepts=ConceptSet.from_tables(told["concepts"]),
            classes=tuple(told["classes"]),
            model=model,
            usual=UsualScores(*(self.tensors[name] for name in ("absent", "absent_peak", "present_peak"))),
            exemplars=ExemplarFilms.of(pictures, told["exemplars"]),
            metrics=told["metrics"],
            learnt_from=tuple(told["learnt_from"]),
            safety=None if safety is None else SafetyThresholds(**safety),
            changes=tuple(Change(**change) for change in told["changes"]),
            own_parts=told.get("own_parts", {}),
        )


def _usual_tensors(usual: UsualScores) -> dict[str, Tensor]:
    return {"absent": usual.absent, "absent_peak": usual.absent_peak, "present_peak": usual.present_peak}


def _packed(tensors: Mapping[str, Tensor]) -> str:
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    return base64.b64encode(save(plain)).decode("ascii")


SUFFIX = ".onnx"
FILMS, SCORES, LOGITS, ATTENTION = "films", "scores", "logits", "attention"
LARGEST = 2**31 - 1
"""Bytes that an ONNX file may have."""


class ExportedGrape:
    """The graph of an export. It learns nothing."""

    def __init__(self, graph: "ModelProto", record: Record) -> None:
        self._sight = _session(graph)
        self._head = _session(_head_of(graph))
        self.atlas: Atlas = record.atlas
        self.judged: int = record.topics["judged"]
        self.runtime = f"ONNX Runtime, {record.topics['precision']}"

    def patches(self, films: Float[Tensor, "b 1 side side"]) -> Float[Tensor, "b d h w"]:
        """Every patch of the films, in the space of prototypes."""
        (patches,) = self._asked(films, "patches")
        return patches

    def judge(self, found: Float[Tensor, "b k m"]) -> Prediction:
        """Classes from score matrices: what a head does, without a film."""
        names = [output.name for output in self._head.get_outputs()]
        answers = _tensors(self._head.run(names, {SCORES: found.numpy()}))
        told = dict(zip(names, answers, strict=True))
        return Prediction(told[LOGITS], found, told.get(ATTENTION))

    def look(self, films: Float[Tensor, "b 1 side side"]) -> tuple[Prediction, Float[Tensor, "b k h w"]]:
        """Classes and mean maps: all that reading many films needs."""
        prediction, (mean,) = self._seen(films, "mean_maps")
        return prediction, mean

    def read(self, films: Float[Tensor, "b 1 side side"]) -> tuple[Prediction, Maps]:
        """Classes and maps from one pass."""
        prediction, maps = self._seen(films, "mean_maps", "strongest_maps", "cam_maps")
        return prediction, Maps(*maps)

    def _seen(self, films: Float[Tensor, "b 1 side side"], *maps: str) -> tuple[Prediction, Sequence[Tensor]]:
        attends = [ATTENTION] if ATTENTION in {output.name for output in self._head.get_outputs()} else []
        logits, scores, *rest = self._asked(films, LOGITS, SCORES, *maps, *attends)
        return Prediction(logits, scores, rest[len(maps)] if attends else None), rest[: len(maps)]

    def _asked(self, films: Float[Tensor, "b 1 side side"], *outputs: str) -> list[Tensor]:
        return _tensors(self._sight.run(list(outputs), {FILMS: films[:, 0].numpy()}))


def load_readable(path: Path) -> LoadedRun:
    """The run in a folder, or the export in an .onnx file: whatever films can be read with."""
    return load_export(path) if path.suffix == SUFFIX and not path.is_dir() else load_run(path)


def load_export(path: Path) -> LoadedRun:
    """The model in an .onnx file that ``medgrape export`` wrote, after its seal was compared."""
    graph = _parsed(path)
    properties = {one.key: one.value for one in graph.metadata_props}
    if f"{PREFIX}format" not in properties:
        raise RunError(f"{path} is an ONNX file, but not one that medgrape export made; it cannot be read with.")
    if properties[f"{PREFIX}format"] != str(FORMAT):
        raise RunError(f"{path} is of another version of medgrape; export the run again.")
    if properties.get(SEAL) != seal_of(graph, properties):
        raise RunError(f"{path} was altered after it was exported; copy it again, or export the run again.")
    with fitting(path):
        record = Record.of(properties)
        return LoadedRun(path, record.run(ExportedGrape(graph, record)), record.manifest)


def seal_of(graph: "ModelProto", properties: Mapping[str, str]) -> str:
    """A checksum over every node, every weight and every property but the seal itself."""
    whole = hashlib.sha256(graph.graph.SerializeToString(deterministic=True))
    for name in sorted(set(properties) - {SEAL}):
        whole.update(f"\n{name}={properties[name]}".encode())
    return whole.hexdigest()


def check_parts() -> None:
    """Refuse where the packages that exports need are missing."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ModuleNotFoundError as missing:
        raise RunError("Models in .onnx files need more packages: pip install 'medgrape[export]'.") from missing


def _parsed(path: Path) -> "ModelProto":
    """The file as it is; one that leads to other files is refused, so that nothing but itself is ever opened."""
    check_parts()
    import onnx
    from google.protobuf.message import DecodeError

    if not path.is_file():
        raise RunError(f"There is no file {path}. Make one with: medgrape export.")
    if path.stat().st_size > LARGEST:
        raise RunError(f"{path} has more bytes than an ONNX file may have.")
    try:
        graph: ModelProto = onnx.load_model_from_string(path.read_bytes())
    except (DecodeError, ValueError) as error:
        raise RunError(f"{path} is no ONNX file, or cut short; copy it again, or export the run again.") from error
    if any(weights.data_location == onnx.TensorProto.EXTERNAL for weights in graph.graph.initializer):
        raise RunError(f"{path} keeps its weights in another file, which is never opened; export the run again.")
    return graph


def _head_of(graph: "ModelProto") -> "ModelProto":
    """The last part alone, from scores to classes: corrected scores are judged without the film."""
    from onnx import ModelProto, helper

    outputs = [output for output in graph.graph.output if output.name in (LOGITS, ATTENTION)]
    wanted, nodes = {output.name for output in outputs}, []
    for node in reversed(graph.graph.node):  # they stand in the order in which they are computed
        if wanted & set(node.output) and SCORES not in node.output:
            nodes.append(node)
            wanted |= set(node.input)
    weights = [one for one in graph.graph.initializer if one.name in wanted]
    scores = [output for output in graph.graph.output if output.name == SCORES]
    head = helper.make_graph(nodes[::-1], "head", scores, outputs, weights)
    alone: ModelProto = helper.make_model(head, opset_imports=graph.opset_import, ir_version=graph.ir_version)
    return alone


def _session(graph: "ModelProto") -> "InferenceSession":
    """On as many threads as torch may use here."""
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3  # remarks on how it optimises are for nobody here
    return InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _tensors(arrays: Sequence[Any]) -> list[Tensor]:
    return [torch.from_numpy(np.asarray(array)) for array in arrays]
