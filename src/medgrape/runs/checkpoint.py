"""A run on disk: one folder with weights, settings and everything that reading a film needs. Loads strictly, or not."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
import torch
from jaxtyping import Float, Int, UInt8
from safetensors.torch import load_file
from torch import Tensor

from medgrape.concepts import ConceptSet
from medgrape.config import Config, load_config
from medgrape.files import copied, whole_folder, write_tensors
from medgrape.model.backbones.backbone import Backbone
from medgrape.model.grape import Grape, ReadingModel
from medgrape.model.graph import ConceptGraph
from medgrape.model.grown_head import grow_head, head_sizes
from medgrape.runs.manifest import (
    Manifest,
    RunError,
    fitting,
    refuse_hub_copy,
    refuse_inside_run,
    seal,
    set_aside,
    unseal,
)
from medgrape.runs.plugin_record import OWN_PARTS, Records, keep_parts, refuse_changed, refuse_missing

TENSORS, NAMES = "exemplars.safetensors", "exemplars.json"


@dataclass(frozen=True)
class ExemplarFilms:
    """For each prototype a patch of a training film; pictures of each film once."""

    grid: tuple[int, int]
    films: tuple[str, ...]
    thumbnails: UInt8[np.ndarray, "films side side"]
    film: Int[np.ndarray, "k m"]
    """Which of ``films``; -1 where no film may be shown."""
    patch: Int[np.ndarray, "k m"]
    """Counted row by row on ``grid``."""
    similarity: Float[np.ndarray, "k m"]

    def save(self, folder: Path) -> None:
        """Two files."""
        write_tensors(folder / TENSORS, self.tensors)
        (folder / NAMES).write_text(json.dumps(self.names, indent=2) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path) -> "ExemplarFilms":
        """The inverse of ``save``."""
        return cls.of(load_file(folder / TENSORS), json.loads((folder / NAMES).read_text("utf-8")))

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All pixels and numbers."""
        return {
            "thumbnails": torch.from_numpy(self.thumbnails),
            "film": torch.from_numpy(self.film),
            "patch": torch.from_numpy(self.patch),
            "similarity": torch.from_numpy(self.similarity),
        }

    @property
    def names(self) -> dict[str, Any]:
        """All that is no tensor, as plain data."""
        return {"grid": list(self.grid), "films": list(self.films)}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], names: Mapping[str, Any]) -> "ExemplarFilms":
        """From both again."""
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        return cls((names["grid"][0], names["grid"][1]), tuple(names["films"]), **arrays)


@dataclass(frozen=True)
class SafetyThresholds:
    """Learnt on the boxes of a data set: so that few correct boxes raise a false alarm, or so that right claims are
    parted from wrong ones as well as can be."""

    by_concept: Mapping[str, float]
    """By how much another concept must lead, for each concept with enough boxes to learn it from."""
    pooled: float
    """The same for every other concept, learnt from the boxes of all."""
    gate: float | None
    """Highest variance U of the leading concept at which it is believed (theta_V); None: it is always believed."""
    max_false_alarms: float | None
    """None, and no confidence either, where right and wrong claims were balanced and no rate is promised."""
    confidence: float | None
    """How surely the share of false alarms stays below ``max_false_alarms``."""
    boxes: Mapping[str, int]
    """How many patients with boxes of each concept were learnt from."""
    data_set: Mapping[str, str]
    """Name, checksum and split of what was learnt from."""

    def lead(self, concept: str) -> float:
        """By how much another concept must lead over ``concept`` to be a warning."""
        return self.by_concept.get(concept, self.pooled)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


ARCHITECTURE, METHOD = "architecture.json", "method"
"""Where a run tells how it is built, and there the key that only runs of other methods than GRAPE have."""
KEEPSAKES = ("log.jsonl", "curves.png", "tensorboard")
"""How the model was trained: part of every run, and read by nobody here."""


@dataclass(frozen=True)
class UsualScores:
    """What scores are on training films, to judge a new film's by."""

    absent: Float[Tensor, "k m"]
    """The median on films without the concept: what rejecting the concept puts in its place."""
    absent_peak: Float[Tensor, " k"]
    """Median peak of the mean map on films without the concept."""
    present_peak: Float[Tensor, " k"]
    """The same on films with it."""


@dataclass(frozen=True)
class Change:
    """What somebody did to a run after it was trained."""

    parent: str
    """Fingerprint of the run that it was done to."""
    what: str
    """In one sentence."""


@dataclass(frozen=True)
class Run:
    """A trained model with all that belongs to it."""

    config: Config = field(repr=False)
    concepts: ConceptSet
    classes: tuple[str, ...]
    model: ReadingModel = field(repr=False)
    usual: UsualScores = field(repr=False)
    exemplars: ExemplarFilms = field(repr=False)
    metrics: dict[str, Any] = field(repr=False)
    """Validation figures, chosen epochs, untrained concepts, the text encoder's name."""
    learnt_from: tuple[str, ...] = field(repr=False)
    """Fingerprints of the films it was trained and chosen on: on these it cannot be tested."""
    safety: SafetyThresholds | None = None
    """None where nobody calibrated it; then the settings' own thresholds count."""
    changes: tuple[Change, ...] = ()
    """Since training, the first one first."""
    own_parts: Records = field(default_factory=dict)
    """Which parts of other packages it was trained with."""

    @property
    def grape(self) -> Grape:
        """The model in torch, which alone can learn, be changed and be saved."""
        if not isinstance(self.model, Grape):
            raise RunError(
                "This is an exported model, which can read but not learn or be changed; do that to the run that it was "
                "made from, and export that again."
            )
        return self.model

    def save(self, folder: Path, dataset: dict[str, str]) -> Manifest:
        """Write everything into a folder of its own and seal it."""
        write_tensors(folder / "model.safetensors", self.grape.state_dict())
        (folder / "config.toml").write_text(tomli_w.dumps(self.config.model_dump(mode="json")), "utf-8")
        _write(folder / "concepts.json", {"classes": self.classes, "concepts": self.concepts.to_tables()})
        _write(folder / ARCHITECTURE, _architecture(self.grape) | self._kept_parts())
        _write(folder / "preprocessing.json", self.config.preprocessing.model_dump(mode="json"))
        _write(folder / "thresholds.json", _rows(self.concepts, self.usual))
        _write(folder / "absent_scores.json", dict(zip(self.concepts.names, self.usual.absent.tolist(), strict=True)))
        _write(folder / "metrics.json", self.metrics)
        _write(folder / "learnt_from.json", {"films": self.learnt_from})
        _write(folder / "safety.json", {"calibrated": None if self.safety is None else self.safety.to_json()})
        _write(folder / "changes.json", {"changes": [asdict(change) for change in self.changes]})
        self.exemplars.save(folder)
        return seal(folder, dataset)

    def _kept_parts(self) -> dict[str, Any]:
        return keep_parts(self.own_parts, self.grape, self.config.preprocessing.size)


@dataclass(frozen=True)
class LoadedRun:
    """A run as it was found on disk."""

    folder: Path
    run: Run
    manifest: Manifest = field(repr=False)
    unsaved: bool = False
    """Whether the run was changed since it was found there."""

    @property
    def name(self) -> str:
        """What a report calls the model by: the fingerprint of its weights, as far as they are on disk."""
        if not self.manifest.files:
            return "never saved"
        return f"{self.manifest.fingerprint}{', changed and not saved' if self.unsaved else ''}"

    def changed(self, run: Run, what: str) -> "LoadedRun":
        """The same folder with another model; ``what`` says in one sentence what was done. Nothing is written."""
        change = Change(self.manifest.fingerprint, what)
        return replace(self, run=replace(run, changes=(*self.run.changes, change)), unsaved=True)

    def save_changed(self, run: Run, out: Path) -> "LoadedRun":
        """Write what became of this run, a new or the same folder; it is whole there, or as it was."""
        _ = run.grape  # an export is refused before anything is written
        target = out.resolve()
        if self.folder.resolve() != target:
            refuse_inside_run(out)
            self._write(run, target)
            return load_run(out)
        refuse_hub_copy(target)
        changed = target.with_name(f".{target.name}.changed")
        shutil.rmtree(changed, ignore_errors=True)  # of an attempt that was killed
        try:
            self._write(run, changed)
            _take_place(changed, target)
        finally:
            shutil.rmtree(changed, ignore_errors=True)
        return load_run(out)

    def _write(self, run: Run, folder: Path) -> None:
        with whole_folder(folder) as draft:
            for name in KEEPSAKES:
                copied(self.folder / name, draft / name)
            run.save(draft, self.manifest.dataset)


def load_run(folder: Path) -> LoadedRun:
    """Everything in ``folder``, after every checksum was compared."""
    manifest = unseal(folder)
    with fitting(folder):
        _refuse_baseline(folder)
        return LoadedRun(folder, _load(folder), manifest)


def _refuse_baseline(folder: Path) -> None:
    method = _read(folder / ARCHITECTURE).get(METHOD) if (folder / ARCHITECTURE).is_file() else None
    if method is not None:
        raise RunError(
            f"{folder} is a run of {method}, which has no prototypes to read by, correct or extend; only medgrape "
            "evaluate takes it."
        )


def _load(folder: Path) -> Run:
    told = _read(folder / "concepts.json")
    config, built = load_config(folder / "config.toml"), _read(folder / ARCHITECTURE)
    concepts, classes = ConceptSet.from_tables(told["concepts"]), tuple(told["classes"])
    refuse_missing(built)
    model = _bare_model(config, len(classes), built)
    model.load_state_dict(load_file(folder / "model.safetensors"), strict=True)
    peaks, absent = _read(folder / "thresholds.json"), _read(folder / "absent_scores.json")
    usual = UsualScores(
        torch.tensor([absent[name] for name in concepts.names]),
        torch.tensor([peaks[name]["absent_peak"] for name in concepts.names]),
        torch.tensor([peaks[name]["present_peak"] for name in concepts.names]),
    )
    model.eval().requires_grad_(False)
    refuse_changed(built, model, config.preprocessing.size, folder)
    metrics, learnt_from = _read(folder / "metrics.json"), tuple(_read(folder / "learnt_from.json")["films"])
    calibrated = _read(folder / "safety.json")["calibrated"]
    safety = None if calibrated is None else SafetyThresholds(**calibrated)
    changes = tuple(Change(**change) for change in _read(folder / "changes.json")["changes"])
    exemplars = ExemplarFilms.load(folder)
    own = built.get(OWN_PARTS, {})
    return Run(config, concepts, classes, model, usual, exemplars, metrics, learnt_from, safety, changes, own)


def _architecture(model: Grape) -> dict[str, Any]:
    return {
        "concepts": model.atlas.kept.shape[0],
        "judged_by_heads": head_sizes(model.head, model.judged),
        "backbone": model.backbone.describe(),
        "text_width": None if model.anchors is None else model.anchors.text.shape[1],
        "background": model.atlas.ordinary is not None,
    }


def _bare_model(config: Config, classes: int, told: dict[str, Any]) -> Grape:
    """The same parts with weights to be overwritten."""
    concepts, width = told["concepts"], told["text_width"]
    trained, *grown = told["judged_by_heads"]
    model = Grape(
        Backbone.from_description(told["backbone"]),
        config.model,
        ConceptGraph(torch.zeros(trained, trained), config.model.tau),
        classes,
        None if width is None else torch.zeros(concepts, width),
        background=told["background"],
        learnt_later=concepts - trained,
    )
    for size in grown:
        grow_head(model, config.model, torch.zeros(size, size), classes)
    return model


def _take_place(new: Path, old: Path) -> None:
    """Two renames: between them, and only there, the run is called by another name."""
    aside = set_aside(old)
    shutil.rmtree(aside, ignore_errors=True)  # of an attempt that was killed at its very end
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _rows(concepts: ConceptSet, usual: UsualScores) -> dict[str, dict[str, float]]:
    return {
        name: {"absent_peak": float(usual.absent_peak[row]), "present_peak": float(usual.present_peak[row])}
        for row, name in enumerate(concepts.names)
    }


def _write(path: Path, data: object) -> None:
    path.write_text(json.dumps(data, indent=2, allow_nan=False) + "\n", "utf-8")


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8")))
