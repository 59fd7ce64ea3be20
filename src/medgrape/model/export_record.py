"""What an exported model knows beside its graph, as the text properties of an ONNX file, and back.

Every property is a line of JSON under a name of its own, so that a program that knows no medgrape can read what it
needs: ``medgrape.classes``, ``medgrape.concepts``, ``medgrape.preprocessing``. Tensors are safetensors in base64.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from safetensors.torch import load, save
from torch import Tensor

from medgrape.concepts import ConceptSet
from medgrape.config import parse_config
from medgrape.model.atlas import Atlas
from medgrape.model.checkpoint import Change, LoadedRun, Run, UsualScores
from medgrape.model.exemplars import ExemplarFilms
from medgrape.model.grape import ReadingModel
from medgrape.model.manifest import Manifest
from medgrape.model.safety_thresholds import SafetyThresholds

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
