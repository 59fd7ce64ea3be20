"""The baselines: a black box, a concept bottleneck model and PIP-Net, with their losses and their runs on disk.

PIP-Net (Nauta et al., 2023) assigns every patch to one of few parts: its prototypes are channels, and a softmax over
them at every patch says which part the patch is. A film has a part if any of its patches is that part. A sparse layer
of non-negative weights leads from parts to classes. Two views of a film teach patches to be the same part in both
(alignment), and parts to occur at all (tanh loss).
"""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w
import torch
import torch.nn.functional as F
from einops import reduce
from jaxtyping import Float, Int
from safetensors.torch import load_file
from torch import Tensor, nn

from medgrape.concepts import ConceptSet
from medgrape.config import Config, load_config
from medgrape.files import write_tensors
from medgrape.model.backbones import Backbone
from medgrape.model.cam import CamHead, pool
from medgrape.runs.checkpoint import ARCHITECTURE, METHOD, LoadedRun
from medgrape.runs.exported import load_readable
from medgrape.runs.manifest import (
    OWN_PARTS,
    Manifest,
    Records,
    keep_parts,
    refuse_changed,
    refuse_missing,
    run_errors,
    seal,
    unseal,
)

ABSENT = 0.1  # when films are read, a part with less presence than this counts as absent
HEAD_PACE = 100.0  # learning rate of the class weights relative to the others: 0.05 against 0.0005, as published
EPSILON = 1e-8


class BaselineOutput(NamedTuple):
    """Output for a batch of films. A named tuple, because Lightning does not accept frozen dataclasses."""

    logits: Float[Tensor, "b classes"]
    maps: Float[Tensor, "b k h w"]  # a map of each concept, on a scale of its own: compare values within one map only


class Baseline(nn.Module, ABC):
    """A backbone with the head of a method."""

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    @abstractmethod
    def classify(self, features: Float[Tensor, "b c h w"]) -> BaselineOutput:
        """Compute classes and maps from the features of the backbone."""

    def forward(self, activations: Float[Tensor, "b c1 h1 w1"]) -> BaselineOutput:
        """Compute classes and maps from the output of the backbone's frozen parts."""
        return self.classify(self.backbone.forward_trainable(activations))

    def predict_with_all_maps(self, films: Float[Tensor, "b 1 side side"]) -> BaselineOutput:
        """Compute classes and maps from films."""
        return self.classify(self.backbone(films))


class BlackBox(Baseline):
    """A linear layer on every patch, then the mean over patches: equal to a linear layer on the mean, and gives a CAM.

    It does not know concepts: the map of every concept is that of the predicted class.
    """

    def __init__(self, backbone: Backbone, concepts: int, classes: int) -> None:
        super().__init__(backbone)
        self._concepts = concepts
        self.classifier = CamHead(backbone.features, classes)

    def classify(self, features: Float[Tensor, "b c h w"]) -> BaselineOutput:
        """Compute the classes; the map of the predicted class stands for every concept."""
        maps = self.classifier(features)
        logits = pool(maps, "mean")
        predicted = maps[torch.arange(len(maps)), logits.argmax(dim=1)]
        repeated: Tensor = predicted.unsqueeze(1).expand(-1, self._concepts, -1, -1)
        return BaselineOutput(logits, repeated)


class ConceptBottleneck(Baseline):
    """One logit for each concept, and a linear layer from these logits to the classes."""

    def __init__(self, backbone: Backbone, concepts: int, classes: int) -> None:
        super().__init__(backbone)
        self.findings = CamHead(backbone.features, concepts)
        self.classifier = nn.Linear(concepts, classes)

    def classify(self, features: Float[Tensor, "b c h w"]) -> BaselineOutput:
        """Compute the classes from the bottleneck, and the class activation maps of the concepts."""
        maps = self.findings(features)
        return BaselineOutput(self.classifier(self.bottleneck(maps)), maps)

    @staticmethod
    def bottleneck(maps: Float[Tensor, "b k h w"]) -> Float[Tensor, "b k"]:
        """Return the logit of each concept, the only input of the classifier."""
        return pool(maps, "mean")


class PipNet(Baseline):
    """PIP-Net. Its parts have no names: the map of a concept is the sum of the maps of correlated parts."""

    goes_with: Tensor

    def __init__(self, backbone: Backbone, concepts: int, classes: int, parts: int) -> None:
        super().__init__(backbone)
        self.parts = nn.Conv2d(backbone.features, parts, kernel_size=1) if parts else nn.Identity()
        count = parts or backbone.features
        self.votes = nn.Parameter(torch.empty(classes, count).normal_(1.0, 0.1) / HEAD_PACE)
        self.register_buffer("goes_with", torch.zeros(concepts, count))

    @property
    def weights(self) -> Float[Tensor, "classes parts"]:
        """Non-negative weights from parts to classes. AdamW ignores scale, so scaling them up makes steps longer."""
        return F.relu(HEAD_PACE * self.votes)

    def which_part(self, features: Float[Tensor, "b c h w"]) -> Float[Tensor, "b parts h w"]:
        """Return how much each patch is each part; the sum over parts is 1."""
        return torch.softmax(self.parts(features), dim=1)

    def classes(self, present: Float[Tensor, "b parts"]) -> Float[Tensor, "b classes"]:
        """Compute the logits: the log of the squared votes, by which small weights vanish (published Eq. 5)."""
        return torch.log1p((present @ self.weights.T) ** 2)

    def classify(self, features: Float[Tensor, "b c h w"]) -> BaselineOutput:
        """Compute the classes from the parts that are present, and the maps of the concepts."""
        where = self.which_part(features)
        present = presence(where)
        if not self.training:
            present = torch.where(present < ABSENT, torch.zeros_like(present), present)
        return BaselineOutput(self.classes(present), torch.einsum("kp,bphw->bkhw", self.goes_with, where))

    def name_parts(self, present: Float[Tensor, "n parts"], labels: Float[Tensor, "n k"]) -> None:
        """Assign parts to concepts by their positive correlation over films."""
        self.goes_with.copy_(torch.stack([_correlation(present, column) for column in labels.T]).clamp_min(0.0))


def _correlation(present: Float[Tensor, "n parts"], label: Float[Tensor, " n"]) -> Float[Tensor, " parts"]:
    """Correlation of each part with a concept over films with a known label; 0 where either is constant."""
    known = ~label.isnan()
    shown, there = label[known], present[known]
    if len(shown) == 0:
        return present.new_zeros(present.shape[1])
    shown, there = shown - shown.mean(), there - there.mean(dim=0)
    spread = shown.norm() * there.norm(dim=0)
    return torch.where(spread > EPSILON, shown @ there / spread.clamp_min(EPSILON), torch.zeros_like(spread))


def classes_loss(
    logits: Float[Tensor, "b classes"], classes: Int[Tensor, " b"], weights: Float[Tensor, " classes"], unknown: int
) -> Float[Tensor, ""]:
    """Weighted cross-entropy; 0 for a batch without any known class."""
    if not bool((classes != unknown).any()):
        return 0.0 * logits.sum()
    return F.cross_entropy(logits, classes, weight=weights, ignore_index=unknown)


def presence(where: Float[Tensor, "b parts h w"]) -> Float[Tensor, "b parts"]:
    """Return how much each part is present on each film, from 0 to 1: the maximum over patches."""
    return reduce(where, "b parts h w -> b parts", "max")


def alignment_loss(first: Float[Tensor, "b parts h w"], second: Float[Tensor, "b parts h w"]) -> Float[Tensor, ""]:
    """Loss for patches at the same place of two views that are different parts; each view learns from the other."""

    def difference(view: Tensor, target: Tensor) -> Tensor:
        return -torch.log(reduce(view * target, "b parts h w -> b h w", "sum") + EPSILON).mean()

    return (difference(first, second.detach()) + difference(second, first.detach())) / 2


def presence_loss(present: Float[Tensor, "b parts"]) -> Float[Tensor, ""]:
    """Loss for parts that no film of the batch has (the tanh loss); without it one part could be all patches."""
    return -torch.log(torch.tanh(reduce(present, "b parts -> parts", "sum")) + EPSILON).mean()


@dataclass(frozen=True)
class BaselineRun:
    """A trained baseline with everything that belongs to it."""

    config: Config
    concepts: ConceptSet
    classes: tuple[str, ...]
    model: Baseline
    metrics: dict[str, Any]
    learnt_from: tuple[str, ...]  # fingerprints of the training and validation films
    plugins: Records = field(default_factory=dict)  # The plugins that the model was trained with

    def save(self, folder: Path, dataset: dict[str, str]) -> Manifest:
        """Write the run into an empty folder and seal it."""
        write_tensors(folder / "model.safetensors", self.model.state_dict())
        (folder / "config.toml").write_text(tomli_w.dumps(self.config.model_dump(mode="json")), "utf-8")
        files = {
            "concepts.json": {"classes": self.classes, "concepts": self.concepts.to_tables()},
            ARCHITECTURE: {METHOD: self.config.model.method, "backbone": self.model.backbone.describe()}
            | keep_parts(self.plugins, self.model, self.config.preprocessing.size),
            "metrics.json": self.metrics,
            "learnt_from.json": {"films": self.learnt_from},
        }
        for name, payload in files.items():
            (folder / name).write_text(json.dumps(payload, indent=2, allow_nan=False) + "\n", "utf-8")
        return seal(folder, dataset)


@dataclass(frozen=True)
class LoadedBaseline:
    """The run of a baseline, loaded from a folder."""

    folder: Path
    run: BaselineRun
    manifest: Manifest


def build_baseline(config: Config, backbone: Backbone, concepts: int, classes: int) -> Baseline:
    """Build the method of the settings on a backbone."""
    match config.model.method:
        case "cbm":
            return ConceptBottleneck(backbone, concepts, classes)
        case "pip-net":
            return PipNet(backbone, concepts, classes, config.stages.pip_net_parts.parts)
    return BlackBox(backbone, concepts, classes)


def load_any(folder: Path) -> LoadedRun | LoadedBaseline:
    """Load a run of GRAPE, an export of one, or the run of a baseline, after comparing every checksum."""
    try:
        is_baseline = METHOD in _read(folder / ARCHITECTURE)
    except (OSError, ValueError, TypeError, RecursionError):  # its checksum will tell what is wrong with it
        is_baseline = False
    if not is_baseline:
        return load_readable(folder)
    manifest = unseal(folder)
    with run_errors(folder):
        return LoadedBaseline(folder, _load(folder), manifest)


def _load(folder: Path) -> BaselineRun:
    names, architecture = _read(folder / "concepts.json"), _read(folder / ARCHITECTURE)
    config = load_config(folder / "config.toml")
    concepts, classes = ConceptSet.from_tables(names["concepts"]), tuple(names["classes"])
    refuse_missing(architecture)
    model = build_baseline(config, Backbone.from_description(architecture["backbone"]), len(concepts), len(classes))
    model.load_state_dict(load_file(folder / "model.safetensors"), strict=True)
    model.eval().requires_grad_(False)
    refuse_changed(architecture, model, config.preprocessing.size, folder)
    learnt_from = tuple(_read(folder / "learnt_from.json")["films"])
    metrics, plugins = _read(folder / "metrics.json"), architecture.get(OWN_PARTS, {})
    return BaselineRun(config, concepts, classes, model, metrics, learnt_from, plugins)


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8")))
