"""Scores of a run's films, kept beside the data set: whoever changes a head, or an atlas, looks at every film once.

The folder's name is a hash of everything that scores depend on. So what lies there is right, or of another name.
"""

import hashlib
import json
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from jaxtyping import Float, Int

from medgrape.datasets.cache import FilmCache
from medgrape.datasets.dataset import Dataset
from medgrape.files import ArrayWriter, mapped, whole_folder
from medgrape.geometry import PatchGrid
from medgrape.model.grape import Grape
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import Run
from medgrape.training.building import grid_of
from medgrape.training.films import UNKNOWN_CLASS, TrainingError, TrainingFilms
from medgrape.training.scores import best_patches, every_patch
from medgrape.training.stored_features import Inputs, Views
from medgrape.vocabulary.curation import Usage

_VERSION = 1
"""Counted up whenever the same weights would give other scores."""


@dataclass(frozen=True)
class KeptScores:
    """Memory-mapped; films in the order of ``TrainingFilms``."""

    grid: tuple[int, int]
    scores: Float[np.ndarray, "views n k m"]
    where: Int[np.ndarray, "n k m"]
    """The patch of each film itself that gave the score, counted row by row."""


def films_for(run: Run, data: Path, track: Track = quietly) -> TrainingFilms:
    """The training and validation films of a data set with the run's classes; its concepts may be others."""
    dataset = Dataset.load(data)
    if dataset.classes != run.classes:
        raise TrainingError(
            f"The model decides between {', '.join(run.classes)}; the data set between {', '.join(dataset.classes)}."
        )
    paths = [dataset.film_path(film) for film in dataset.pictured]
    cached = FilmCache(data / "cache", run.config).films(paths, track=track)
    films = TrainingFilms.of(dataset, cached, "train", "val")
    for split in ("train", "val"):
        if not (films.classes[films.positions(split)] != UNKNOWN_CLASS).any():
            raise TrainingError(f"{dataset.name!r} has no readable {split} films whose class is known.")
    return films


def kept_scores(
    run: Run, films: TrainingFilms, data: Path, *, device: str = "cpu", track: Track = quietly
) -> KeptScores:
    """The scores of all films from disk; written there by one pass when they are not yet."""
    views = run.config.stages.head.views if run.config.stages.concepts.augment else 1
    folder = data / "cache" / "scores" / _name(run, films, views)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not folder.is_dir():
            with whole_folder(folder) as draft:
                _write(run, films, views, draft, torch.device(device), track)
    flat = mapped(folder / "scores.npy")
    scores = flat.reshape(-1, len(films), *flat.shape[1:])
    return KeptScores(grid_of(run.grape.backbone, run.config.preprocessing.size), scores, mapped(folder / "where.npy"))


@torch.no_grad()
def _write(run: Run, films: TrainingFilms, views: int, draft: Path, device: torch.device, track: Track) -> None:
    model: Grape = deepcopy(run.grape).to(device).eval()
    seen = Views.of(run.config)
    grid = grid_of(run.grape.backbone, run.config.preprocessing.size)
    inputs, prototypes = Inputs(films, model.backbone, seen, grid, device), model.atlas.prototypes
    shape = (prototypes.shape[0], prototypes.shape[1])
    with ArrayWriter(draft / "scores.npy", shape) as scores, ArrayWriter(draft / "where.npy", shape, np.int32) as where:
        for number, _, patches in every_patch(model, inputs, views, track):
            found, place = best_patches(patches, prototypes)
            scores.append(found.cpu().numpy())
            if number == 0:
                where.append(place.cpu().numpy())


def _name(run: Run, films: TrainingFilms, views: int) -> str:
    """Weights of all parts before the head, how films are prepared and viewed, and what is in each film's file."""
    told = hashlib.sha256()
    contents = [films.cached.contents[place] for place in films.places]
    settings, model = run.config, run.config.model
    prepared = [
        _VERSION, views, settings.stages.concepts.mirror, model.smooth, model.mirror, settings.seed,
        settings.preprocessing.model_dump(mode="json"), contents,
    ]  # fmt: skip
    told.update(json.dumps(prepared, sort_keys=True).encode())
    told.update(json.dumps(run.grape.backbone.describe(), sort_keys=True, default=str).encode())
    weights = run.grape.backbone.state_dict() | run.grape.projector.state_dict(prefix="projector.")
    for name, tensor in sorted((weights | {"atlas": run.grape.atlas.vectors.detach()}).items()):
        told.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        told.update(tensor.cpu().contiguous().numpy().tobytes())
    return told.hexdigest()[:32]


def usage_of(run: Run, data: Path, track: Track = quietly) -> Usage:
    """What the run's prototypes do on the training films of a data set."""
    films = films_for(run, data, track)
    return usage_on(run, films, kept_scores(run, films, data, track=track))


def usage_on(run: Run, films: TrainingFilms, found: KeptScores) -> Usage:
    """The same, from scores that are at hand."""
    learnt, concepts = films.positions("train"), films.dataset.concepts
    shape = found.where.shape[1:]
    shown, strongest, in_box = np.zeros(shape[0], np.int64), np.zeros(shape, np.int64), np.full(shape, np.nan)
    for row, name in enumerate(run.concepts.names):
        if name not in concepts:
            continue
        showing = [film for film in learnt if films.labels[film, concepts.index(name)] == 1]
        shown[row], kept = len(showing), run.grape.atlas.kept[row].numpy()
        answers = np.where(kept, found.scores[0][showing, row], -np.inf)
        strongest[row] = np.bincount(answers.argmax(axis=1), minlength=shape[1])
        in_box[row] = _in_box(films, found, showing, row, name)
    return Usage(shown, strongest, in_box)


def _in_box(films: TrainingFilms, found: KeptScores, showing: list[int], row: int, concept: str) -> np.ndarray:
    """For each prototype the share of films with a box of the concept on which its best patch touches one."""
    touches = []
    for film in showing:
        record = films.records[film]
        grid = PatchGrid(record.size, *found.grid)
        boxes = [drawn.box for drawn in films.dataset.boxes_by_film.get(record.id, ()) if drawn.concept == concept]
        if boxes:
            touched = np.maximum.reduce([grid.overlap(box) for box in boxes]) > 0
            touches.append(touched.flatten()[found.where[film, row]])
    return np.mean(touches, axis=0) if touches else np.full(found.where.shape[2], np.nan)
