"""A run: a trained model with its settings, thresholds and exemplars, in one folder that is loaded strictly."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w
import torch
from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor

from medgrape.concepts import ConceptSet
from medgrape.config import Config, load_config
from medgrape.files import copied, whole_folder, write_tensors
from medgrape.model.backbones import Backbone
from medgrape.model.grape import Grape, ReadingModel, grow_head, head_sizes
from medgrape.model.graph import ConceptGraph
from medgrape.runs.exemplars import ExemplarFilms
from medgrape.runs.manifest import (
    OWN_PARTS,
    Manifest,
    Records,
    RunError,
    backup_path,
    keep_parts,
    refuse_changed,
    refuse_hub_copy,
    refuse_inside_run,
    refuse_missing,
    run_errors,
    seal,
    unseal,
)

ARCHITECTURE, METHOD = "architecture.json", "method"
"""The file that describes the model, and its key that only runs of methods other than GRAPE have."""
LOG_FILES = ("log.jsonl", "curves.png", "tensorboard")  # In every run; not read when it is loaded


@dataclass(frozen=True)
class SafetyThresholds:
    """Thresholds of the safety check, calibrated on the boxes of a data set."""

    by_concept: Mapping[str, float]  # Lead that another concept needs for a warning (eta), if there are enough boxes
    pooled: float  # The lead for all other concepts, from the boxes of all
    gate: float | None  # Highest variance U of the leading concept for a warning (theta_V); None: no limit
    max_false_alarms: float | None  # Bound on the false alarm rate; None if balanced without a bound
    confidence: float | None  # Confidence that the false alarm rate is below `max_false_alarms`
    boxes: Mapping[str, int]  # Number of patients with boxes of each concept
    data_set: Mapping[str, str]  # Name, checksum and split of the data set

    def lead(self, concept: str) -> float:
        """Return the lead over ``concept`` that another concept needs for a warning."""
        return self.by_concept.get(concept, self.pooled)

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class ReferenceScores:
    """Median scores on training films, as a reference for new films."""

    absent: Float[Tensor, "k m"]  # Each prototype on films without the concept; used for a rejected concept
    absent_peak: Float[Tensor, " k"]  # Peak of the mean map on films without the concept
    present_peak: Float[Tensor, " k"]  # Peak of the mean map on films with the concept

    def joined(self, added: "ReferenceScores") -> "ReferenceScores":
        """Return the scores of these concepts and of added ones."""
        return ReferenceScores(*map(torch.cat, zip(vars(self).values(), vars(added).values(), strict=True)))


@dataclass(frozen=True)
class Change:
    """A change of a run after training."""

    parent: str  # Fingerprint of the run before
    what: str  # Description, in one sentence


@dataclass(frozen=True)
class Run:
    """A trained model with everything that inference needs."""

    config: Config = field(repr=False)
    concepts: ConceptSet
    classes: tuple[str, ...]
    model: ReadingModel = field(repr=False)
    reference_scores: ReferenceScores = field(repr=False)
    exemplars: ExemplarFilms = field(repr=False)
    metrics: dict[str, Any] = field(repr=False)  # Validation, chosen epochs, untrained concepts, text encoder
    learnt_from: tuple[str, ...] = field(repr=False)  # Training and validation films, not to be tested on
    safety: SafetyThresholds | None = None  # None: not calibrated, the thresholds are those of the settings
    changes: tuple[Change, ...] = ()  # Changes after training, oldest first
    plugins: Records = field(default_factory=dict)  # The plugins that it was trained with

    @property
    def grape(self) -> Grape:
        """The model in torch, which is needed to train, change and save it."""
        if not isinstance(self.model, Grape):
            raise RunError(
                "This is an exported model, which cannot be trained or changed; change the run that it was exported "
                "from, and export that again."
            )
        return self.model

    def save(self, folder: Path, dataset: dict[str, str]) -> Manifest:
        """Write everything into a new folder, and the manifest last."""
        names, model = self.concepts.names, self.grape
        write_tensors(folder / "model.safetensors", model.state_dict())
        (folder / "config.toml").write_text(tomli_w.dumps(self.config.model_dump(mode="json")), "utf-8")
        architecture: dict[str, Any] = {
            "concepts": model.atlas.kept.shape[0], "judged_by_heads": head_sizes(model.head, model.head_concepts),
            "backbone": model.backbone.describe(),
            "text_width": None if model.anchors is None else model.anchors.text.shape[1],
            "background": model.atlas.ordinary is not None,
        }  # fmt: skip
        scores = self.reference_scores
        peaks = zip(names, scores.absent_peak.tolist(), scores.present_peak.tolist(), strict=True)
        documents: dict[str, object] = {
            "concepts.json": {"classes": self.classes, "concepts": self.concepts.to_tables()},
            ARCHITECTURE: architecture | keep_parts(self.plugins, model, self.config.preprocessing.size),
            "preprocessing.json": self.config.preprocessing.model_dump(mode="json"),
            "thresholds.json": {name: {"absent_peak": low, "present_peak": high} for name, low, high in peaks},
            "absent_scores.json": dict(zip(names, scores.absent.tolist(), strict=True)),
            "metrics.json": self.metrics,
            "learnt_from.json": {"films": self.learnt_from},
            "safety.json": {"calibrated": None if self.safety is None else self.safety.to_json()},
            "changes.json": {"changes": [asdict(change) for change in self.changes]},
        }
        for name, document in documents.items():
            (folder / name).write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", "utf-8")
        self.exemplars.save(folder)
        return seal(folder, dataset)


@dataclass(frozen=True)
class LoadedRun:
    """A run with the folder and the manifest that it was loaded from."""

    folder: Path
    run: Run
    manifest: Manifest = field(repr=False)
    unsaved: bool = False  # Whether the run was changed since it was loaded

    @property
    def name(self) -> str:
        """Its name in reports: the fingerprint of the weights on disk, and whether they were changed since."""
        if not self.manifest.files:
            return "never saved"
        return f"{self.manifest.fingerprint}{', changed and not saved' if self.unsaved else ''}"

    def changed(self, run: Run, what: str) -> "LoadedRun":
        """Return this run with a changed model; ``what`` describes the change in one sentence. Nothing is written."""
        changes = (*self.run.changes, Change(self.manifest.fingerprint, what))
        return replace(self, run=replace(run, changes=changes), unsaved=True)

    def save_changed(self, run: Run, out: Path) -> "LoadedRun":
        """Write the changed run to a new folder, or in place of this one; atomically in both cases."""
        _ = run.grape  # refuses an export before anything is written
        target = out.resolve()
        if self.folder.resolve() != target:
            refuse_inside_run(out)
            self._write(run, target)
            return load_run(out)
        refuse_hub_copy(target)
        changed = target.with_name(f".{target.name}.changed")
        shutil.rmtree(changed, ignore_errors=True)  # left by an attempt that was killed
        try:
            self._write(run, changed)
            _replace_folder(target, changed)
        finally:
            shutil.rmtree(changed, ignore_errors=True)
        return load_run(out)

    def _write(self, run: Run, folder: Path) -> None:
        with whole_folder(folder) as draft:
            for name in LOG_FILES:
                copied(self.folder / name, draft / name)
            run.save(draft, self.manifest.dataset)


def load_run(folder: Path) -> LoadedRun:
    """Load the run in ``folder`` after verifying every checksum."""
    manifest = unseal(folder)
    with run_errors(folder):
        architecture = _read(folder / ARCHITECTURE) if (folder / ARCHITECTURE).is_file() else {}
        if METHOD in architecture:
            raise RunError(
                f"{folder} is a run of {architecture[METHOD]}, which has no prototypes to read with, correct or "
                "extend; only medgrape evaluate takes it."
            )
        return LoadedRun(folder, _load(folder), manifest)


def _load(folder: Path) -> Run:
    vocabulary, architecture = _read(folder / "concepts.json"), _read(folder / ARCHITECTURE)
    config = load_config(folder / "config.toml")
    concepts, classes = ConceptSet.from_tables(vocabulary["concepts"]), tuple(vocabulary["classes"])
    refuse_missing(architecture)
    model = _build(config, len(classes), architecture)
    model.load_state_dict(load_file(folder / "model.safetensors"), strict=True)
    model.eval().requires_grad_(False)
    refuse_changed(architecture, model, config.preprocessing.size, folder)
    peaks, absent = _read(folder / "thresholds.json"), _read(folder / "absent_scores.json")
    rows = [(absent[name], peaks[name]["absent_peak"], peaks[name]["present_peak"]) for name in concepts.names]
    reference_scores = ReferenceScores(*(torch.tensor(column) for column in zip(*rows, strict=True)))
    calibrated = _read(folder / "safety.json")["calibrated"]
    return Run(
        config, concepts, classes, model, reference_scores,
        exemplars=ExemplarFilms.load(folder),
        metrics=_read(folder / "metrics.json"),
        learnt_from=tuple(_read(folder / "learnt_from.json")["films"]),
        safety=None if calibrated is None else SafetyThresholds(**calibrated),
        changes=tuple(Change(**change) for change in _read(folder / "changes.json")["changes"]),
        plugins=architecture.get(OWN_PARTS, {}),
    )  # fmt: skip


def _build(config: Config, classes: int, architecture: dict[str, Any]) -> Grape:
    """Build the model with weights to be overwritten."""
    concepts, text_width = architecture["concepts"], architecture["text_width"]
    trained, *grown = architecture["judged_by_heads"]
    backbone = Backbone.from_description(architecture["backbone"])
    graph = ConceptGraph(torch.zeros(trained, trained), config.model.tau)
    text = None if text_width is None else torch.zeros(concepts, text_width)
    background, later = architecture["background"], concepts - trained
    model = Grape(backbone, config.model, graph, classes, text, background=background, learnt_later=later)
    for size in grown:
        grow_head(model, config.model, torch.zeros(size, size), classes)
    return model


def _replace_folder(old: Path, new: Path) -> None:
    """Rename twice; between the two renames, and only there, the run has another name."""
    aside = backup_path(old)
    shutil.rmtree(aside, ignore_errors=True)  # left by an attempt that was killed at its very end
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8")))


@dataclass(frozen=True)
class SafetyRule:
    """When the safety check warns about a box."""

    lead: Callable[[str], float]  # eta: lead of a rival over this concept that may not be exceeded
    gate: float  # Highest variance of the leading concept for a warning (theta_V)
    untrained: frozenset[str] = frozenset()  # Concepts without training films never cause a warning
    calibrated: bool = False
    origin: str = "The thresholds are the paper's."  # Their source, in one sentence

    @classmethod
    def plain(cls, lead: float = 0.05, gate: float = 2e-4) -> "SafetyRule":
        """Return the paper's rule: one lead for all concepts."""
        return cls(lambda _: lead, gate)

    @classmethod
    def of(cls, run: Run) -> "SafetyRule":
        """Return the calibrated thresholds of the run, or those of its settings."""
        untaught = frozenset(run.metrics.get("untrained_concepts", ()))
        if run.safety is None:
            lead = run.config.safety.lead
            origin = "Nobody calibrated this run, so the thresholds are those of its settings."
            return cls(lambda _: lead, run.config.safety.gate, untaught, origin=origin)
        gate = float("inf") if run.safety.gate is None else run.safety.gate
        later = [concept.title for concept in run.concepts if concept.name not in {*run.safety.boxes, *untaught}]
        origin = "The thresholds were learnt from boxes on films like these."
        if later:
            origin = f"The thresholds were learnt before the model knew {', '.join(later)}; calibrate it again."
        return cls(run.safety.lead, gate, untaught, calibrated=not later, origin=origin)
