"""Doubting a box by dropout at reading time: what the paper compares its safety check with (appendix N5).

A film is read thirty times, each time with other features set to zero. Variant A doubts a claim where the claimed
concept's similarity inside the box varies much from pass to pass; variant B doubts every box of a film whose class
probabilities, averaged over the passes, are undecided. The paper drops out inside its backbone; ours has no dropout
there, so features are dropped between backbone and projector. The backbone itself then runs once for each film.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

from medgrape.datasets.cache import CachedFilms
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.model.evidence import mean_maps, scores
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import Run
from medgrape.safety.boxes import boxed_films, boxes_on, within

PASSES = 30
DROPPED = 0.1


@dataclass(frozen=True)
class Doubt:
    """How undecided the passes are about each box, in the order of ``feedback.boxes.look``."""

    variance: Float[np.ndarray, "boxes k"]
    """Over the passes, of each of the run's concepts' mean similarity inside the box (variant A)."""
    entropy: Float[np.ndarray, " boxes"]
    """Of the film's mean class probabilities, in nats (variant B)."""
    truth: Int[np.ndarray, " boxes"]
    """Which of the run's concepts each box shows."""

    @property
    def variance_of_truth(self) -> Float[np.ndarray, " boxes"]:
        """What variant A says of right claims."""
        return np.asarray(self.variance[np.arange(len(self)), self.truth])

    def __len__(self) -> int:
        return len(self.entropy)


def doubt(
    run: Run, dataset: Dataset, cached: CachedFilms, split: str, track: Track = quietly, *, seed: int = 0
) -> Doubt:
    """Read the films of a split that have boxes many times."""
    variances: list[list[float]] = []
    entropies: list[float] = []
    truth: list[int] = []
    for films, greys in boxed_films(dataset, cached, split, track):
        for film, own in zip(films, run.grape.features(greys), strict=True):
            lot = torch.Generator().manual_seed(seed * 1_000_003 + len(entropies))
            in_boxes, entropy = doubt_film(run, dataset, film, own, lot)
            variances += in_boxes.tolist()
            entropies += [entropy] * len(in_boxes)
            truth += [run.concepts.index(drawn.concept) for drawn in boxes_on(dataset, film)]
    in_every_box = np.array(variances, dtype=np.float64).reshape(-1, len(run.concepts))
    return Doubt(in_every_box, np.array(entropies, dtype=np.float64), np.array(truth, dtype=np.int64))


@torch.no_grad()
def doubt_film(
    run: Run, dataset: Dataset, film: FilmRecord, features: Float[Tensor, "c h w"], lot: torch.Generator
) -> tuple[Float[Tensor, "boxes k"], float]:
    """Variance of every concept inside each box of one film, and the film's entropy."""
    model = run.grape
    patches = model.projector.patches(dropped(features, lot))
    maps = mean_maps(patches, model.atlas.in_use)
    flat = rearrange(maps, "passes k h w -> (passes k) h w")
    inner = torch.stack([within(flat, film, drawn.box) for drawn in boxes_on(dataset, film)])
    in_boxes = rearrange(inner, "boxes (passes k) -> passes boxes k", passes=len(maps))
    shares = model.judge(scores(patches, model.atlas.prototypes)).probabilities.mean(dim=0)
    return in_boxes.var(dim=0, correction=0), float(torch.special.entr(shares).sum())


def dropped(features: Float[Tensor, "c h w"], lot: torch.Generator) -> Float[Tensor, "passes c h w"]:
    """The same features thirty times, a tenth of them zero by lot and the others raised to make up for it."""
    kept = torch.rand((PASSES, *features.shape), generator=lot) >= DROPPED
    return features * kept / (1 - DROPPED)


def quantile_threshold(values: Float[np.ndarray, " boxes"], bound: float) -> float:
    """The smallest of the values that at most ``bound`` of them exceed."""
    above = math.floor(bound * len(values))
    return float(np.sort(values)[len(values) - above - 1])
