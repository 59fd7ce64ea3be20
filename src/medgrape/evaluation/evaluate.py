"""Read the films of a split with a model, batch by batch, and evaluate the readings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from medgrape.baselines.methods import BaselineRun, LoadedBaseline
from medgrape.datasets.cache import CachedFilms, cached_films
from medgrape.datasets.dataset import Dataset, check_classes, check_concepts, check_split, checksum
from medgrape.evaluation.examples import example_films
from medgrape.evaluation.readings import EvaluationError, Readings
from medgrape.evaluation.report import Evaluation, ReportFiles, evaluate_readings, write_report
from medgrape.evaluation.safety_check import simulate_mistakes
from medgrape.model.grape import Grape
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import LoadedRun, Run
from medgrape.runs.manifest import version_of
from medgrape.safety.boxes import known_films

BATCH = 32
Loaded = LoadedRun | LoadedBaseline
"""A run of GRAPE or of a baseline."""


@dataclass(frozen=True)
class SplitReadings:
    """The readings of a split, and the films that could not be read."""

    readings: Readings
    refused: Mapping[str, str]
    films: CachedFilms


def evaluate_run(
    loaded: Loaded, data: Path, out: Path, *, split: str = "test", track: Track = quietly
) -> tuple[Evaluation, ReportFiles]:
    """Read the films of a split, compute all figures, and write the report."""
    dataset, run = Dataset.load(data), loaded.run
    read = read_split(loaded, dataset, data, split, track)
    evaluation = evaluate_readings(
        read.readings,
        run.model.atlas.prototypes.detach()[_concept_rows(run, dataset)] if isinstance(run, Run) else None,
        dict(_facts(loaded, data)),
        run=loaded.folder.name,
        refused=read.refused,
        known_films=known_films(run.learnt_from, dataset, read.films, {film.id for film in read.readings.films}),
        interaction=simulate_mistakes(run, dataset, read.films, split, track) if isinstance(run, Run) else None,
    )
    places = {film.id: place for place, film in enumerate(dataset.pictured)}
    pictures = {film: read.films[places[film]] for film in example_films(evaluation.localisation)}
    return evaluation, write_report(evaluation, read.readings, out, pictures=pictures)


def read_split(loaded: Loaded, dataset: Dataset, data: Path, split: str, track: Track) -> SplitReadings:
    """Read all films of a split that can be read."""
    _check_fit(loaded, dataset, split)
    cached = cached_films(loaded.run.config, dataset, data, track)
    places = [place for place, film in enumerate(dataset.pictured) if film.split == split]
    readable = [place for place in places if place not in cached.refused]
    if not readable:
        raise EvaluationError(f"No film of split {split!r} can be read; see medgrape data check {data}.")
    refused = {dataset.pictured[place].id: cached.refused[place] for place in places if place in cached.refused}
    return SplitReadings(_read(loaded.run, dataset, cached, readable, track), refused, cached)


def _read(run: Run | BaselineRun, dataset: Dataset, cached: CachedFilms, places: list[int], track: Track) -> Readings:
    rows, arrays, done = _concept_rows(run, dataset), list[np.ndarray](), 0
    for batch, films in cached.batches(places, BATCH, f"reading {len(places):,} films", track):
        parts = _read_batch(run, rows, torch.from_numpy(films))
        arrays = arrays or [np.empty((len(places), *part.shape[1:]), part.dtype) for part in parts]
        for array, part in zip(arrays, parts, strict=True):  # concatenation would need twice the memory
            array[done : done + len(batch)] = part
        done += len(batch)
    probabilities, scores, mean, strongest, cam = arrays
    trained = [name for name, row in zip(dataset.concepts.names, rows, strict=True) if row < cam.shape[1]]
    cam_maps = {name: cam[:, run.concepts.index(name)] for name in trained}
    films_read = [dataset.pictured[place] for place in places]
    return Readings(dataset, films_read, probabilities, scores, mean, strongest, cam_maps)


@torch.no_grad()
def _read_batch(run: Run | BaselineRun, rows: list[int], films: torch.Tensor) -> tuple[np.ndarray, ...]:
    if isinstance(run, BaselineRun):  # it has one map for each concept and no CAM
        logits, mean = run.model.predict_with_all_maps(films)
        strongest, cam = mean, mean[:, :0]
    else:
        prediction, maps = run.model.predict_with_all_maps(films)
        logits, mean, strongest, cam = prediction.logits, maps.mean, maps.strongest, maps.cam
    mean, strongest = mean[:, rows], strongest[:, rows]
    probabilities = logits.double().softmax(dim=-1)
    return tuple(part.numpy() for part in (probabilities, mean.amax(dim=(-2, -1)), mean, strongest, cam))


def _concept_rows(run: Run | BaselineRun, dataset: Dataset) -> list[int]:
    """Return the model's index of each concept of the data set."""
    return [run.concepts.index(name) for name in dataset.concepts.names]


def _check_fit(loaded: Loaded, dataset: Dataset, split: str) -> None:
    """Raise unless the model knows the concepts, and the classes in the same order."""
    run = loaded.run
    check_split(split, EvaluationError)
    check_concepts(run.concepts, dataset)
    check_classes(run.classes, dataset, EvaluationError)
    if not dataset.in_split(split):
        raise EvaluationError(f"{dataset.name!r} has no films in split {split!r}.")


def _facts(loaded: Loaded, data: Path) -> Iterator[tuple[str, object]]:
    run, trained_on = loaded.run, loaded.manifest.dataset
    yield "version", version_of(loaded.folder)
    yield "weights", loaded.manifest.fingerprint
    yield "method", run.config.model.method
    yield "backbone", run.config.backbone.name
    if isinstance(run, Run):
        yield "head", run.config.model.head
        if isinstance(run.model, Grape):  # the parameters of an exported head cannot be told from others
            yield "head parameters", sum(weights.numel() for weights in run.model.head.parameters())
        yield "computed by", run.model.runtime
        yield "prototypes of each concept", run.config.model.prototypes
        yield "patches", f"{run.exemplars.grid[0]} x {run.exemplars.grid[1]}"
        yield "text encoder", run.metrics["text_encoder"]
        yield "changed since training", [change.what for change in run.changes]
    yield "untrained concepts", run.metrics["untrained_concepts"]
    yield "trained on", trained_on["name"]
    yield "trained on this data set", trained_on["checksum"] == checksum(data)
    yield "versions", loaded.manifest.versions
    chosen = {
        stage: f"epoch {metrics['best_epoch']} of {metrics['epochs']}, {metrics['figure']} {metrics['score']:.3f}"
        for stage, metrics in run.metrics["validation"].items()
    }
    yield "chosen on validation", chosen
