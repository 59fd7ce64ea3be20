"""A baseline's run on disk: weights, settings, names and figures, sealed as every run is. Only evaluating reads it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w
from safetensors.torch import load_file

from medgrape.baselines.methods import Baseline, BlackBox, ConceptBottleneck, PipNet
from medgrape.concepts import ConceptSet
from medgrape.config import Config, load_config
from medgrape.files import write_tensors
from medgrape.model.backbones import Backbone
from medgrape.runs.checkpoint import ARCHITECTURE, METHOD, LoadedRun
from medgrape.runs.exported import load_readable
from medgrape.runs.manifest import (
    OWN_PARTS,
    Manifest,
    Records,
    fitting,
    keep_parts,
    refuse_changed,
    refuse_missing,
    seal,
    unseal,
)


@dataclass(frozen=True)
class BaselineRun:
    """A trained baseline with all that belongs to it."""

    config: Config
    concepts: ConceptSet
    classes: tuple[str, ...]
    model: Baseline
    metrics: dict[str, Any]
    learnt_from: tuple[str, ...]
    """Fingerprints of the films it was trained and chosen on."""
    own_parts: Records = field(default_factory=dict)
    """Which parts of other packages it was trained with."""

    def save(self, folder: Path, dataset: dict[str, str]) -> Manifest:
        """Write everything into a folder of its own and seal it."""
        write_tensors(folder / "model.safetensors", self.model.state_dict())
        (folder / "config.toml").write_text(tomli_w.dumps(self.config.model_dump(mode="json")), "utf-8")
        told = {
            "concepts.json": {"classes": self.classes, "concepts": self.concepts.to_tables()},
            ARCHITECTURE: {METHOD: self.config.model.method, "backbone": self.model.backbone.describe()}
            | keep_parts(self.own_parts, self.model, self.config.preprocessing.size),
            "metrics.json": self.metrics,
            "learnt_from.json": {"films": self.learnt_from},
        }
        for name, data in told.items():
            (folder / name).write_text(json.dumps(data, indent=2, allow_nan=False) + "\n", "utf-8")
        return seal(folder, dataset)


@dataclass(frozen=True)
class LoadedBaseline:
    """A baseline's run as it was found on disk."""

    folder: Path
    run: BaselineRun
    manifest: Manifest


def build_baseline(config: Config, backbone: Backbone, concepts: int, classes: int) -> Baseline:
    """The method that the settings name, on that backbone."""
    match config.model.method:
        case "cbm":
            return ConceptBottleneck(backbone, concepts, classes)
        case "pip-net":
            return PipNet(backbone, concepts, classes, config.stages.pip_net_parts.parts)
    return BlackBox(backbone, concepts, classes)


def load_any(folder: Path) -> LoadedRun | LoadedBaseline:
    """A run of GRAPE, an export of one, or a run of a baseline, after every checksum was compared."""
    if not _is_baseline(folder):
        return load_readable(folder)
    manifest = unseal(folder)
    with fitting(folder):
        return LoadedBaseline(folder, _load(folder), manifest)


def _is_baseline(folder: Path) -> bool:
    """Whether it says so; a file that cannot be read says nothing, and its checksum tells what is wrong."""
    try:
        return METHOD in _read(folder / ARCHITECTURE)
    except (OSError, ValueError, TypeError, RecursionError):
        return False


def _load(folder: Path) -> BaselineRun:
    told, architecture = _read(folder / "concepts.json"), _read(folder / ARCHITECTURE)
    config = load_config(folder / "config.toml")
    concepts, classes = ConceptSet.from_tables(told["concepts"]), tuple(told["classes"])
    refuse_missing(architecture)
    model = build_baseline(config, Backbone.from_description(architecture["backbone"]), len(concepts), len(classes))
    model.load_state_dict(load_file(folder / "model.safetensors"), strict=True)
    model.eval().requires_grad_(False)
    refuse_changed(architecture, model, config.preprocessing.size, folder)
    learnt_from = tuple(_read(folder / "learnt_from.json")["films"])
    metrics, own = _read(folder / "metrics.json"), architecture.get(OWN_PARTS, {})
    return BaselineRun(config, concepts, classes, model, metrics, learnt_from, own)


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8")))
