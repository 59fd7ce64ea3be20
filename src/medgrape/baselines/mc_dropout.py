"""MC-dropout as a safety check: the baseline that the paper compares its check with (appendix N5).

Every film is read thirty times, each time with other features set to zero. Variant A warns if the similarity of the
claimed concept inside the box varies much between the passes. Variant B warns for every box of a film whose mean class
probabilities have a high entropy. The paper applies dropout inside its backbone. Our backbone has none, so dropout is
applied to its features, and the backbone runs once for each film.
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
DROPPED = 0.1  # fraction of the features that each pass sets to zero


@dataclass(frozen=True)
class BoxUncertainty:
    """Uncertainty at each box, in the order of ``safety.boxes.measure_boxes``."""

    variance: Float[np.ndarray, "boxes k"]  # variance over the passes of each concept's mean inside the box (variant A)
    entropy: Float[np.ndarray, " boxes"]  # entropy of the film's mean class probabilities, in nats (variant B)
    truth: Int[np.ndarray, " boxes"]  # index of the concept that each box shows

    @property
    def variance_of_truth(self) -> Float[np.ndarray, " boxes"]:
        """Variance of the concept that each box shows: variant A for correct claims."""
        return np.asarray(self.variance[np.arange(len(self)), self.truth])

    def __len__(self) -> int:
        return len(self.entropy)


def box_uncertainty(
    run: Run, dataset: Dataset, cached: CachedFilms, split: str, track: Track = quietly, *, seed: int = 0
) -> BoxUncertainty:
    """Measure the uncertainty at every box of a split."""
    variances: list[list[float]] = []
    entropies: list[float] = []
    truth: list[int] = []
    for films, greys in boxed_films(dataset, cached, split, track):
        for film, features in zip(films, run.grape.features(greys), strict=True):
            generator = torch.Generator().manual_seed(seed * 1_000_003 + len(entropies))
            variance, entropy = _film_uncertainty(run, dataset, film, features, generator)
            variances += variance.tolist()
            entropies += [entropy] * len(variance)
            truth += [run.concepts.index(drawn.concept) for drawn in boxes_on(dataset, film)]
    variance_of_boxes = np.array(variances, dtype=np.float64).reshape(-1, len(run.concepts))
    return BoxUncertainty(variance_of_boxes, np.array(entropies, dtype=np.float64), np.array(truth, dtype=np.int64))


@torch.no_grad()
def _film_uncertainty(
    run: Run, dataset: Dataset, film: FilmRecord, features: Float[Tensor, "c h w"], generator: torch.Generator
) -> tuple[Float[Tensor, "boxes k"], float]:
    """Variance of every concept inside each box of a film, and the entropy of the film."""
    model = run.grape
    patches = model.projector.patches(dropped(features, generator))
    maps = mean_maps(patches, model.atlas.in_use)
    flat = rearrange(maps, "passes k h w -> (passes k) h w")
    inner = torch.stack([within(flat, film, drawn.box) for drawn in boxes_on(dataset, film)])
    in_boxes = rearrange(inner, "boxes (passes k) -> passes boxes k", passes=len(maps))
    probabilities = model.classify(scores(patches, model.atlas.prototypes)).probabilities.mean(dim=0)
    return in_boxes.var(dim=0, correction=0), float(torch.special.entr(probabilities).sum())


def dropped(features: Float[Tensor, "c h w"], generator: torch.Generator) -> Float[Tensor, "passes c h w"]:
    """Return thirty copies, each with a random tenth set to zero and the others scaled up to make up for it."""
    kept = torch.rand((PASSES, *features.shape), generator=generator) >= DROPPED
    return features * kept / (1 - DROPPED)


def quantile_threshold(values: Float[np.ndarray, " boxes"], bound: float) -> float:
    """Return the smallest of the values that at most a fraction ``bound`` of them exceed."""
    above = math.floor(bound * len(values))
    return float(np.sort(values)[len(values) - above - 1])
