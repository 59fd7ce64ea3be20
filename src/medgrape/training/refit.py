"""Fit the head again after prototypes were discarded or a concept was added; all other parts are frozen."""

from collections.abc import Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from jaxtyping import Float
from lightning_fabric import Fabric

from medgrape.datasets.cache import in_order
from medgrape.datasets.dataset import checksum
from medgrape.model.evidence import mean_maps
from medgrape.model.grape import Grape
from medgrape.progress import Track, Watch, quietly, unwatched
from medgrape.reader import Reader
from medgrape.records import Record
from medgrape.runs.checkpoint import ReferenceScores, Run
from medgrape.training.assessment import ValidationFilms, ValidationMetrics
from medgrape.training.film_scores import KeptScores, films_for, kept_scores
from medgrape.training.films import TrainingFilms
from medgrape.training.head_stage import train_head
from medgrape.training.loop import TrainingContext
from medgrape.training.processes import one_device
from medgrape.training.training_log import TrainingLog

_SAMPLE, _BATCH = 64, 16  # Number of films with and without a concept on which its reference peaks are measured again


class RefitFigures(Record):
    """Validation metrics before and after a refit."""

    data_set: str
    its_own: bool  # Whether the run was trained on this data set
    films: int  # Number of validation films with a known class
    before: ValidationMetrics  # The run before any change
    unfitted: ValidationMetrics  # After prototypes or concepts were changed, with the old head
    after: ValidationMetrics
    trivial: ValidationMetrics  # Metrics of always predicting the most frequent class of the training films
    trivial_answer: str
    changed: int  # Number of films with another predicted class after than before
    best_epoch: int


@dataclass(frozen=True)
class Refit:
    """A reader with a new head; nothing is written to disk."""

    reader: Reader
    figures: RefitFigures


def refit(
    reader: Reader, data: Path, *, original: Reader | None = None, track: Track = quietly, watch: Watch = unwatched
) -> Refit:
    """Fit the head on the training films of ``data`` and choose the epoch on its validation films.

    ``original`` is the reader before prototypes were discarded or restored, to compare with.
    """
    run, original = reader.loaded.run, original or reader
    films = films_for(run, data, track)
    fabric = one_device("cpu" if run.config.training.device == "cpu" else "auto")
    scores = kept_scores(run, films, data, device=str(fabric.device), track=track)
    model, best_epoch = _fit_head(run, scores, films, fabric, watch)
    validation = ValidationFilms.of(films)
    models = (original.loaded.run.grape, run.grape, model)
    before, unfitted, after = (validation.answers(grape, scores) for grape in models)
    its_own = reader.loaded.manifest.dataset["checksum"] == checksum(data)
    figures = RefitFigures(
        data_set=films.dataset.name, its_own=its_own, films=len(validation), best_epoch=best_epoch,
        before=validation.metrics(before), unfitted=validation.metrics(unfitted), after=validation.metrics(after),
        trivial=validation.trivial, trivial_answer=validation.trivial_answer, changed=int((before != after).sum()),
    )  # fmt: skip
    reference_scores = _reference_peaks(run, films, _curated(reader, original, films), track)
    learnt_from = tuple(sorted({*run.learnt_from, *films.fingerprints}))
    metrics = run.metrics | {"refit": figures.to_json()}
    fitted = replace(run, model=model, reference_scores=reference_scores, metrics=metrics, learnt_from=learnt_from)
    where = "its own data set" if figures.its_own else "another data set than it was trained on"
    return Refit(reader.changed(fitted, f"Fitted the head again on {figures.data_set!r}, {where}."), figures)


def _fit_head(run: Run, scores: KeptScores, films: TrainingFilms, fabric: Fabric, watch: Watch) -> tuple[Grape, int]:
    """Train the head of a copy of the model, with the loop, schedule and seed of stage 4."""
    model = deepcopy(run.grape).to(fabric.device)
    with TemporaryDirectory() as folder, closing(TrainingLog(Path(folder))) as log:
        log.begin([])
        context = TrainingContext(fabric, Path(folder), run.config.seed, log, watch)
        state = train_head(model, scores, films, run.config, context)
    return model.cpu().eval().requires_grad_(False), state.best_epoch


def _curated(reader: Reader, original: Reader, films: TrainingFilms) -> list[str]:
    """Return the concepts of the data set with discarded prototypes, or with others than before: their peaks change."""
    now, before = (version.loaded.run.grape.atlas.kept for version in (reader, original))
    curated = (~now).any(dim=1)
    curated[: len(before)] |= (now[: len(before)] != before).any(dim=1)  # a concept may have been added since
    return [name for name in compress(reader.concepts.names, curated.tolist()) if name in films.dataset.concepts]


def _reference_peaks(run: Run, films: TrainingFilms, concepts: Sequence[str], track: Track) -> ReferenceScores:
    """Measure the reference peaks of concepts with changed prototypes again, on a sample of the training films."""
    low, high = run.reference_scores.absent_peak.clone(), run.reference_scores.present_peak.clone()
    training = np.array(films.positions("train"))
    for name in concepts:
        known = films.labels[training.tolist(), films.dataset.concepts.index(name)]
        row = run.concepts.index(name)
        for value, peaks in ((0, low), (1, high)):
            positions = training[(known == value).numpy()].tolist()
            sample = positions[:: max(len(positions) // _SAMPLE, 1)][:_SAMPLE]
            if sample:
                peaks[row] = float(np.median(_peaks(run, films, sample, row, track)))
    return replace(run.reference_scores, absent_peak=low, present_peak=high)


@torch.no_grad()
def _peaks(run: Run, films: TrainingFilms, positions: list[int], row: int, track: Track) -> Float[np.ndarray, " n"]:
    prototypes, batches = [run.model.atlas.in_use[row]], list(in_order(positions, _BATCH))
    tracked = track(batches, f"reference peaks of {run.concepts.names[row]}", len(batches))
    maps = (mean_maps(run.model.patches(films.pixels(batch)), prototypes) for batch in tracked)
    return np.concatenate([mean.amax(dim=(-2, -1))[:, 0].numpy() for mean in maps])
