"""Score matrices of all films, from one pass of a model, cached on disk.

A training keeps them beside its checkpoints, with the nearest training films of every prototype. A finished run keeps
them beside the data set, so that refitting a head reads every film only once: the name of that folder is a hash of
everything that the scores depend on.
"""

import hashlib
import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from einops import rearrange
from filelock import FileLock
from jaxtyping import Bool, Float, Int
from torch import Tensor

from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset, check_classes
from medgrape.files import ArrayWriter, mapped, whole_folder
from medgrape.geometry import PatchGrid
from medgrape.model.evidence import mean_maps
from medgrape.model.grape import Grape
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import Run
from medgrape.training.films import LEARNT, UNKNOWN_CLASS, TrainingError, TrainingFilms
from medgrape.training.stored_features import FilmInputs
from medgrape.vocabulary.curation import Usage

_VERSION = 1  # Increased whenever the same weights give other scores


@dataclass(frozen=True)
class TrainingScores:
    """Scores of a training, memory-mapped, in the order of ``TrainingFilms``."""

    scores: Float[np.ndarray, "views n k m"]
    peaks: Float[np.ndarray, "n k"]  # Maximum of each concept's mean map on the films themselves
    nearest_films: Int[np.ndarray, "k m"]  # The most similar training film with the concept; -1 if none may be shown
    nearest_patches: Int[np.ndarray, "k m"]  # The patch of that film, counted row by row
    nearest_similarity: Float[np.ndarray, "k m"]


@dataclass(frozen=True)
class KeptScores:
    """Scores of a finished run, memory-mapped, in the order of ``TrainingFilms``."""

    grid: tuple[int, int]
    scores: Float[np.ndarray, "views n k m"]
    where: Int[np.ndarray, "n k m"]  # The patch of each film itself with this score, counted row by row


def open_scores(
    model: Grape, inputs: FilmInputs, views: int, showable: Bool[Tensor, " n"], folder: Path, track: Track
) -> TrainingScores:
    """Open the scores of a training; compute them if needed."""
    if not folder.is_dir():
        with whole_folder(folder) as draft:
            _write(model, inputs, views if inputs.views.augment else 1, showable, draft, track)
    names = ("peaks", "nearest_films", "nearest_patches", "nearest_similarity")
    return TrainingScores(_by_view(folder, inputs.films), *(mapped(folder / f"{name}.npy") for name in names))


def _by_view(folder: Path, films: TrainingFilms) -> Float[np.ndarray, "views n k m"]:
    flat = mapped(folder / "scores.npy")
    return flat.reshape(-1, len(films), *flat.shape[1:])


@torch.no_grad()
def _write(
    model: Grape, inputs: FilmInputs, views: int, showable: Bool[Tensor, " n"], draft: Path, track: Track
) -> None:
    model.eval()
    prototypes, films = model.atlas.prototypes, inputs.films
    shape = model.atlas.kept.shape
    nearest, patch = torch.full(shape, -1), torch.zeros(shape, dtype=torch.long)
    similarity, peaks = torch.full(shape, -2.0), []
    in_training = torch.tensor([film.split == "train" for film in films.records])
    may_show = (films.labels == 1) & (in_training & showable).unsqueeze(1)
    with ArrayWriter(draft / "scores.npy", shape) as out:
        for number, positions, patches, scores, where in _scored_batches(model, inputs, views, track):
            out.append(scores.cpu().numpy())
            if number == 0:
                peaks.append(mean_maps(patches, prototypes).amax(dim=(-2, -1)).cpu().numpy())
                allowed = scores.cpu().masked_fill(~may_show[positions].unsqueeze(-1), -2.0)
                best, row = allowed.max(dim=0)
                better = best > similarity
                similarity = torch.where(better, best, similarity)
                nearest = torch.where(better, torch.tensor(positions)[row], nearest)
                patch = torch.where(better, where.cpu().gather(0, row.unsqueeze(0))[0], patch)
    np.save(draft / "peaks.npy", np.concatenate(peaks).astype(np.float32))
    np.save(draft / "nearest_films.npy", nearest.numpy())
    np.save(draft / "nearest_patches.npy", patch.numpy())
    np.save(draft / "nearest_similarity.npy", similarity.numpy())


def _scored_batches(
    model: Grape, inputs: FilmInputs, views: int, track: Track
) -> Iterator[tuple[int, list[int], Float[Tensor, "b d h w"], Float[Tensor, "b k m"], Int[Tensor, "b k m"]]]:
    """Yield the number of the view, the positions of the films, their patches and scores, and the patch of each score.

    Scores are computed concept by concept, to save memory.
    """
    jobs, prototypes = inputs.jobs(views), model.atlas.prototypes
    for number, positions in track(jobs, "scores of every film", len(jobs)):
        patches = model.projector.patches(inputs.features(model, positions, number))
        flat = rearrange(patches, "b d h w -> b d (h w)")
        best = [(vectors @ flat).max(dim=-1) for vectors in prototypes]
        scores, where = (torch.stack(tensors, dim=1) for tensors in zip(*best, strict=True))
        yield number, positions, patches, scores, where


def films_for(run: Run, data: Path, track: Track = quietly) -> TrainingFilms:
    """Open the training and validation films of a data set with the classes of a run; its concepts may differ."""
    dataset = Dataset.load(data)
    check_classes(run.classes, dataset, TrainingError)
    films = TrainingFilms.of(dataset, cached_films(run.config, dataset, data, track), *LEARNT)
    for split in LEARNT:
        if not (films.classes[films.positions(split)] != UNKNOWN_CLASS).any():
            raise TrainingError(f"{dataset.name!r} has no readable {split} films whose class is known.")
    return films


def kept_scores(
    run: Run, films: TrainingFilms, data: Path, *, device: str = "cpu", track: Track = quietly
) -> KeptScores:
    """Open the scores of a finished run; compute them if needed."""
    views = run.config.stages.head.views if run.config.stages.concepts.augment else 1
    folder = data / "cache" / "scores" / _name(run, films, views)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not folder.is_dir():
            with whole_folder(folder) as draft:
                _write_kept(run, films, views, draft, torch.device(device), track)
    grid = run.grape.backbone.grid(run.config.preprocessing.size)
    return KeptScores(grid, _by_view(folder, films), mapped(folder / "where.npy"))


@torch.no_grad()
def _write_kept(run: Run, films: TrainingFilms, views: int, draft: Path, device: torch.device, track: Track) -> None:
    model: Grape = deepcopy(run.grape).eval()
    inputs = FilmInputs.of(run.config, films, model.backbone, device)
    model.to(device)
    shape = model.atlas.kept.shape
    with (
        ArrayWriter(draft / "scores.npy", shape) as out,
        ArrayWriter(draft / "where.npy", shape, np.int32) as out_where,
    ):
        for number, _, _, scores, where in _scored_batches(model, inputs, views, track):
            out.append(scores.cpu().numpy())
            if number == 0:
                out_where.append(where.cpu().numpy())


def _name(run: Run, films: TrainingFilms, views: int) -> str:
    """Hash the weights before the head, how films are prepared and augmented, and the content of each film."""
    config, model, digest = run.config, run.config.model, hashlib.sha256()
    contents = [films.cached.contents[place] for place in films.places]
    settings = [
        _VERSION, views, config.stages.concepts.mirror, model.smooth, model.mirror, config.seed,
        config.preprocessing.model_dump(mode="json"), contents,
    ]  # fmt: skip
    digest.update(json.dumps(settings, sort_keys=True).encode())
    digest.update(json.dumps(run.grape.backbone.describe(), sort_keys=True, default=str).encode())
    weights = run.grape.backbone.state_dict() | run.grape.projector.state_dict(prefix="projector.")
    for name, tensor in sorted((weights | {"atlas": run.grape.atlas.vectors.detach()}).items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:32]


def usage_of(run: Run, data: Path, track: Track = quietly) -> Usage:
    """Count on which training films of a data set each prototype is used."""
    films = films_for(run, data, track)
    return usage_on(run, films, kept_scores(run, films, data, track=track))


def usage_on(run: Run, films: TrainingFilms, scores: KeptScores) -> Usage:
    """Count the same from scores that are already there."""
    training, concepts = films.positions("train"), films.dataset.concepts
    shape = scores.where.shape[1:]
    shown, strongest, in_box = np.zeros(shape[0], np.int64), np.zeros(shape, np.int64), np.full(shape, np.nan)
    for row, name in enumerate(run.concepts.names):
        if name not in concepts:
            continue
        showing = [film for film in training if films.labels[film, concepts.index(name)] == 1]
        shown[row], kept = len(showing), run.grape.atlas.kept[row].numpy()
        scores_in_use = np.where(kept, scores.scores[0][showing, row], -np.inf)
        strongest[row] = np.bincount(scores_in_use.argmax(axis=1), minlength=shape[1])
        in_box[row] = _in_box(films, scores, showing, row, name)
    return Usage(shown, strongest, in_box)


def _in_box(films: TrainingFilms, scores: KeptScores, showing: list[int], row: int, concept: str) -> np.ndarray:
    """For each prototype, the fraction of films with a box of the concept whose best patch touches one."""
    touches = []
    for film in showing:
        record = films.records[film]
        grid = PatchGrid(record.size, *scores.grid)
        boxes = [drawn.box for drawn in films.dataset.boxes_by_film.get(record.id, ()) if drawn.concept == concept]
        if boxes:
            touched = np.maximum.reduce([grid.overlap(box) for box in boxes]) > 0
            touches.append(touched.flatten()[scores.where[film, row]])
    return np.mean(touches, axis=0) if touches else np.full(scores.where.shape[2], np.nan)
