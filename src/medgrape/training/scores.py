"""One pass of the finished model over every film and view: score matrices for the head, kept on disk.

On the way it notes what a run has to know for good: how high each concept peaks on each film, and which training film
lies nearest to each prototype.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor

from medgrape.files import ArrayWriter, mapped, whole_folder
from medgrape.model.evidence import mean_maps
from medgrape.model.grape import Grape
from medgrape.progress import Track
from medgrape.training.films import TrainingFilms, in_order
from medgrape.training.stored_features import BATCH, Inputs


@dataclass(frozen=True)
class Scores:
    """Memory-mapped; films in the order of ``TrainingFilms``."""

    scores: Float[np.ndarray, "views n k m"]
    peaks: Float[np.ndarray, "n k"]
    """The highest point of each concept's mean map, on the films themselves."""
    nearest_films: Int[np.ndarray, "k m"]
    """For each prototype the training film that shows the concept and lies nearest; -1 where none may be shown."""
    nearest_patches: Int[np.ndarray, "k m"]
    """Which patch of that film, counted row by row."""
    nearest_similarity: Float[np.ndarray, "k m"]


def open_scores(
    model: Grape, inputs: Inputs, views: int, showable: Bool[Tensor, " n"], folder: Path, track: Track
) -> Scores:
    """The scores of all films, from disk; written there by one pass when they are not yet."""
    if not folder.is_dir():
        with whole_folder(folder) as draft:
            _write(model, inputs, views if inputs.views.augment else 1, showable, draft, track)
    names = ("peaks", "nearest_films", "nearest_patches", "nearest_similarity")
    flat = mapped(folder / "scores.npy")
    stacked = flat.reshape(-1, len(inputs.films), *flat.shape[1:])
    return Scores(stacked, *(mapped(folder / f"{name}.npy") for name in names))


@torch.no_grad()
def _write(model: Grape, inputs: Inputs, views: int, showable: Bool[Tensor, " n"], draft: Path, track: Track) -> None:
    model.eval()
    prototypes = model.atlas.prototypes
    nearest, peaks = _Nearest(prototypes.shape[0], prototypes.shape[1]), []
    with ArrayWriter(draft / "scores.npy", tuple(prototypes.shape[:2])) as out:
        for number, positions, patches in every_patch(model, inputs, views, track):
            found, where = best_patches(patches, prototypes)
            out.append(found.cpu().numpy())
            if number == 0:
                peaks.append(mean_maps(patches, prototypes).amax(dim=(-2, -1)).cpu().numpy())
                nearest.see(found.cpu(), where.cpu(), positions, _may_be_shown(inputs.films, positions, showable))
    np.save(draft / "peaks.npy", np.concatenate(peaks).astype(np.float32))
    np.save(draft / "nearest_films.npy", nearest.films.numpy())
    np.save(draft / "nearest_patches.npy", nearest.patches.numpy())
    np.save(draft / "nearest_similarity.npy", nearest.similarity.numpy())


def every_patch(
    model: Grape, inputs: Inputs, views: int, track: Track
) -> Iterator[tuple[int, list[int], Float[Tensor, "b d h w"]]]:
    """All films of each view in turn: number of the view, positions of the films, their patches."""
    everyone = range(len(inputs.films))
    jobs = [(number, positions) for number in range(views) for positions in in_order(everyone, BATCH)]
    for number, positions in track(jobs, "scores of every film", len(jobs)):
        yield number, positions, model.projector.patches(inputs.features(model, positions, number))


def best_patches(
    patches: Float[Tensor, "b d h w"], prototypes: Float[Tensor, "k m d"]
) -> tuple[Float[Tensor, "b k m"], Int[Tensor, "b k m"]]:
    """Scores, and the patch that gave each; one concept at a time."""
    flat = rearrange(patches, "b d h w -> b d (h w)")
    best = [(one @ flat).max(dim=-1) for one in prototypes]
    return torch.stack([b.values for b in best], dim=1), torch.stack([b.indices for b in best], dim=1)


def _may_be_shown(films: TrainingFilms, positions: list[int], showable: Bool[Tensor, " n"]) -> Bool[Tensor, "b k"]:
    """Training films that show the concept and that nobody withholds."""
    trained = torch.tensor([films.records[position].split == "train" for position in positions])
    return (films.labels[positions] == 1) & (trained & showable[positions]).unsqueeze(1)


class _Nearest:
    """The best film so far for each prototype."""

    def __init__(self, concepts: int, prototypes: int) -> None:
        self.films = torch.full((concepts, prototypes), -1)
        self.patches = torch.zeros((concepts, prototypes), dtype=torch.long)
        self.similarity = torch.full((concepts, prototypes), -2.0)

    def see(
        self,
        scores: Float[Tensor, "b k m"],
        where: Int[Tensor, "b k m"],
        positions: list[int],
        shown: Bool[Tensor, "b k"],
    ) -> None:
        """Look at one more batch."""
        allowed = scores.masked_fill(~shown.unsqueeze(-1), -2.0)
        best, row = allowed.max(dim=0)
        better = best > self.similarity
        self.similarity = torch.where(better, best, self.similarity)
        self.films = torch.where(better, torch.tensor(positions)[row], self.films)
        self.patches = torch.where(better, where.gather(0, row.unsqueeze(0))[0], self.patches)
