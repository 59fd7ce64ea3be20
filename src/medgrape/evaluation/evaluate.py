"""A model reads the films of a split: one pass, small batches, only what the figures need is kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from medgrape.baselines.methods import BaselineRun, LoadedBaseline
from medgrape.datasets.cache import CachedFilms, cached_films
from medgrape.datasets.dataset import SPLITS, Dataset, FilmRecord, check_concepts, checksum
from medgrape.evaluation.examples import example_films
from medgrape.evaluation.readings import EvaluationError, Readings
from medgrape.evaluation.report import Evaluation, ReportFiles, evaluate_readings, write_report
from medgrape.evaluation.safety_check import simulate_mistakes
from medgrape.model.grape import Grape, ReadingModel
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import LoadedRun, Run
from medgrape.runs.manifest import version_of
from medgrape.safety.boxes import known_films

BATCH = 32
Loaded = LoadedRun | LoadedBaseline
"""A run of GRAPE, or of a method that it is compared with."""


@dataclass(frozen=True)
class Read:
    """What was read, and what could not be."""

    readings: Readings
    refused: Mapping[str, str]
    films: CachedFilms


def evaluate_run(
    loaded: Loaded, data: Path, out: Path, *, split: str = "test", track: Track = quietly
) -> tuple[Evaluation, ReportFiles]:
    """Read the films of a split, count, and write the report."""
    dataset = Dataset.load(data)
    read = read_split(loaded, dataset, data, split, track)
    run = loaded.run
    evaluation = evaluate_readings(
        read.readings,
        run.model.atlas.prototypes.detach()[_rows(run, dataset)] if isinstance(run, Run) else None,
        _facts(loaded, data),
        run=loaded.folder.name,
        refused=read.refused,
        known_films=known_films(run.learnt_from, dataset, read.films, {film.id for film in read.readings.films}),
        interaction=simulate_mistakes(run, dataset, read.films, split, track) if isinstance(run, Run) else None,
    )
    places = {film.id: place for place, film in enumerate(dataset.pictured)}
    pictures = {film: read.films[places[film]] for film in example_films(evaluation.localisation)}
    return evaluation, write_report(evaluation, read.readings, out, pictures=pictures)


def read_split(loaded: Loaded, dataset: Dataset, data: Path, split: str, track: Track) -> Read:
    """All films of a split, as the model sees them."""
    _check_fit(loaded, dataset, split)
    cached = cached_films(loaded.run.config, dataset, data, track)
    wanted = [place for place, film in enumerate(dataset.pictured) if film.split == split]
    readable = [place for place in wanted if place not in cached.refused]
    if not readable:
        raise EvaluationError(f"No film of split {split!r} can be read; see medgrape data check {data}.")
    refused = {dataset.pictured[place].id: cached.refused[place] for place in wanted if place in cached.refused}
    return Read(_read(loaded.run, dataset, cached, readable, track), refused, cached)


def _read(run: Run | BaselineRun, dataset: Dataset, cached: CachedFilms, places: list[int], track: Track) -> Readings:
    batches, rows = [places[start : start + BATCH] for start in range(0, len(places), BATCH)], _rows(run, dataset)
    whole, done = list[np.ndarray](), 0
    for batch in track(batches, f"reading {len(places):,} films", len(batches)):
        parts = _batch(run, rows, cached, batch)
        whole = whole or [np.empty((len(places), *part.shape[1:]), part.dtype) for part in parts]
        for column, part in zip(whole, parts, strict=True):  # joined at the end, all would be in memory twice
            column[done : done + len(batch)] = part
        done += len(batch)
    probabilities, scores, mean, strongest, cam = whole
    films: list[FilmRecord] = [dataset.pictured[place] for place in places]
    trained = [name for name, row in zip(dataset.concepts.names, rows, strict=True) if row < cam.shape[1]]
    cam_maps = {name: cam[:, run.concepts.index(name)] for name in trained}
    return Readings(dataset, films, probabilities, scores, mean, strongest, cam_maps)


@torch.no_grad()
def _batch(run: Run | BaselineRun, rows: list[int], cached: CachedFilms, places: list[int]) -> tuple[np.ndarray, ...]:
    films = torch.from_numpy(np.stack([cached[place] for place in places])).unsqueeze(1).float() / 255.0
    if isinstance(run, BaselineRun):  # it has one map for each concept, and no CAM beside it
        logits, mean = run.model.read(films)
        strongest, cam = mean, mean[:, :0]
    else:
        prediction, maps = run.model.read(films)
        logits, mean, strongest, cam = prediction.logits, maps.mean, maps.strongest, maps.cam
    mean, strongest = mean[:, rows], strongest[:, rows]
    shares = logits.double().softmax(dim=-1)
    return tuple(part.numpy() for part in (shares, mean.amax(dim=(-2, -1)), mean, strongest, cam))


def _rows(run: Run | BaselineRun, dataset: Dataset) -> list[int]:
    """Which of the model's concepts the data set has, in the data set's order."""
    return [run.concepts.index(name) for name in dataset.concepts.names]


def _check_fit(loaded: Loaded, dataset: Dataset, split: str) -> None:
    """A model is judged on concepts that it knows, and on the classes that it knows in the same order."""
    run = loaded.run
    if split not in SPLITS:
        raise EvaluationError(f"A split is one of {', '.join(SPLITS)}, not {split!r}.")
    check_concepts(run.concepts, dataset)
    if dataset.classes != run.classes:
        raise EvaluationError(
            f"The model decides between {', '.join(run.classes)}; the data set between {', '.join(dataset.classes)}."
        )
    if not dataset.in_split(split):
        raise EvaluationError(f"{dataset.name!r} has no films in split {split!r}.")


def _facts(loaded: Loaded, data: Path) -> dict[str, object]:
    run, trained_on = loaded.run, loaded.manifest.dataset
    return {
        "version": version_of(loaded.folder),
        "weights": loaded.manifest.fingerprint,
        "method": run.config.model.method,
        "backbone": run.config.backbone.name,
        **(_own_facts(run) if isinstance(run, Run) else {}),
        "untrained concepts": run.metrics["untrained_concepts"],
        "trained on": trained_on["name"],
        "trained on this data set": trained_on["checksum"] == checksum(data),
        "versions": loaded.manifest.versions,
        "chosen on validation": {stage: _chosen(told) for stage, told in run.metrics["validation"].items()},
    }


def _own_facts(run: Run) -> dict[str, object]:
    """What only GRAPE has."""
    return {
        "head": run.config.model.head,
        **_counted(run.model),
        "computed by": run.model.runtime,
        "prototypes of each concept": run.config.model.prototypes,
        "patches": f"{run.exemplars.grid[0]} x {run.exemplars.grid[1]}",
        "text encoder": run.metrics["text_encoder"],
        "changed since training": [change.what for change in run.changes],
    }


def _counted(model: ReadingModel) -> dict[str, object]:
    """An exported head is a few operations among others, whose parameters nobody can tell apart any more."""
    if not isinstance(model, Grape):
        return {}
    return {"head parameters": sum(weights.numel() for weights in model.head.parameters())}


def _chosen(told: dict[str, Any]) -> str:
    return f"epoch {told['best_epoch']} of {told['epochs']}, {told['figure']} {told['score']:.3f}"
