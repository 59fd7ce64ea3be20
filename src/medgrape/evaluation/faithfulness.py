"""Does the model need what its map calls important? Insertion and deletion, as in RISE (Petsiuk et al., 2018)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from einops import rearrange, reduce
from jaxtyping import Float, Int
from torch import Tensor, nn

from medgrape.baselines.methods import Baseline
from medgrape.evaluation.readings import EvaluationError
from medgrape.model.evidence import strongest_maps
from medgrape.model.grape import ReadingModel
from medgrape.progress import Track, quietly

STEPS = 28
"""On a film of 224 x 224: 8 rows' worth of pixels in each."""
BATCH = 8
"""On a CPU, what a larger one needs in memory costs more time than it saves; on a GPU take 64 or more."""
BLUR = 5 / 224
"""Standard deviation of the blur, in sides of a film: the 5 pixels of RISE."""
Answer = Callable[[Float[Tensor, "b 1 side side"]], Float[Tensor, "b classes"]]
"""Class probabilities of films whose greys run from 0 to 1."""


@dataclass(frozen=True)
class Faithfulness:
    """The probability of the class that each untouched film is given, while its pixels go or come.

    A curve begins with no pixel changed and ends with all of them; an area is that under the curve, from 0 to 1.
    """

    deletion: Float[np.ndarray, " films"]
    """Area while the most salient pixels turn grey first: low where the map is right."""
    insertion: Float[np.ndarray, " films"]
    """Area while the most salient pixels of a blurred film turn sharp first: high where the map is right."""
    deletion_curves: Float[np.ndarray, "films points"]
    insertion_curves: Float[np.ndarray, "films points"]


@torch.no_grad()
def faithfulness(
    answer: Answer,
    films: Float[Tensor, "n 1 side side"],
    saliency: Float[Tensor, "n h w"],
    *,
    steps: int = STEPS,
    batch: int = BATCH,
    track: Track = quietly,
) -> Faithfulness:
    """Change every film in ``steps`` of equally many pixels (to within one), and ask for its class after each.

    Deletion changes pixels to the mean grey of the untouched film; insertion changes those of a blurred film to the
    film's own. A batch holds a few steps of several films, and memory does not grow with their number.
    """
    _check(films, saliency, steps)
    parts = list(zip(torch.split(films, batch), torch.split(saliency, batch), strict=True))
    label = f"changing {len(films):,} films"
    found = [_curves(answer, *part, steps, batch) for part in track(parts, label, len(parts))]
    deleted, inserted = (torch.cat(curves).double().cpu().numpy() for curves in zip(*found, strict=True))
    return Faithfulness(_area(deleted), _area(inserted), deleted, inserted)


def random_order(films: int, grid: tuple[int, int], seed: int = 0) -> Float[Tensor, "films h w"]:
    """Saliency of somebody who never saw the films: their patches in an order drawn by lot. What a map must beat."""
    return torch.rand(films, *grid, generator=torch.Generator().manual_seed(seed))


def answer_of(model: ReadingModel | Baseline) -> Answer:
    """A model's class probabilities."""
    _check_mode(model)
    if isinstance(model, Baseline):
        return lambda films: model.read(films).logits.softmax(dim=-1)
    return lambda films: model.look(films)[0].probabilities


@torch.no_grad()
def saliency_of(
    model: ReadingModel | Baseline, films: Float[Tensor, "n 1 side side"], *, batch: int = BATCH
) -> Float[Tensor, "n h w"]:
    """How much each patch looks like any concept: the highest of the concepts' maps, whatever the method."""
    if not isinstance(model, Baseline):
        return strongest_saliency(model, films, batch=batch)
    _check_mode(model)
    found = [reduce(model.read(part).maps, "n k h w -> n h w", "max") for part in torch.split(films, batch)]
    return torch.cat(found)


@torch.no_grad()
def strongest_saliency(
    model: ReadingModel, films: Float[Tensor, "n 1 side side"], *, batch: int = BATCH
) -> Float[Tensor, "n h w"]:
    """How much each patch looks like any concept: the maximum over concepts and their prototypes in use."""
    _check_mode(model)
    prototypes = model.atlas.in_use
    found = [strongest_maps(model.patches(part), prototypes) for part in torch.split(films, batch)]
    return reduce(torch.cat(found), "n k h w -> n h w", "max")


def blurred(films: Float[Tensor, "n 1 side side"]) -> Float[Tensor, "n 1 side side"]:
    """The films through a Gaussian that is cut off at their edges, so that an even film stays as it is."""
    places = torch.arange(films.shape[-1], dtype=films.dtype, device=films.device)
    apart = (places[:, None] - places) / (BLUR * len(places))
    weights = (-(apart**2) / 2).softmax(dim=-1)
    return weights @ films @ weights.T


@dataclass(frozen=True)
class _Change:
    """Films that turn into others."""

    start: Float[Tensor, "n 1 side side"]
    end: Float[Tensor, "n 1 side side"]
    turns: Int[Tensor, "n 1 side side"]
    """In which step each pixel becomes that of ``end``."""

    def after(self, steps: Int[Tensor, " s"]) -> Float[Tensor, "changed 1 side side"]:
        """Every film after each of the steps, film by film."""
        start, end, turns = (rearrange(one, "n c y x -> n 1 c y x") for one in (self.start, self.end, self.turns))
        turned = turns <= rearrange(steps, "s -> s 1 1 1")
        return rearrange(torch.where(turned, end, start), "n s c y x -> (n s) c y x")


def _curves(
    answer: Answer, films: Float[Tensor, "n 1 side side"], saliency: Float[Tensor, "n h w"], steps: int, batch: int
) -> tuple[Float[Tensor, "n points"], Float[Tensor, "n points"]]:
    """Of deletion and of insertion; the untouched film, which both have in common, is asked about once."""
    untouched, classes = answer(films).max(dim=-1)
    turns = _turns(saliency.to(films.device), films.shape[-1], steps)
    grey = reduce(films, "n c y x -> n c 1 1", "mean").expand_as(films)
    numbers = torch.arange(steps, dtype=turns.dtype, device=films.device)
    deleted = _ask(answer, _Change(films, grey, turns), classes, numbers + 1, batch)
    inserted = _ask(answer, _Change(blurred(films), films, turns), classes, numbers, batch)
    return torch.cat([untouched[:, None], deleted], dim=1), torch.cat([inserted, untouched[:, None]], dim=1)


def _turns(saliency: Float[Tensor, "n h w"], side: int, steps: int) -> Int[Tensor, "n 1 side side"]:
    """The step, from 1, in which each pixel of the upsampled map has its turn; of equal ones the first comes first."""
    down, across = (_bilinear(side, patches).to(saliency.device) for patches in saliency.shape[1:])
    order = (down @ saliency.double() @ across.T).flatten(1).argsort(dim=-1, descending=True, stable=True)
    pixels = side * side
    turn = torch.arange(pixels, device=saliency.device) * steps // pixels + 1
    turns = torch.empty_like(order, dtype=torch.int32).scatter_(1, order, turn.int().expand(len(order), -1))
    return rearrange(turns, "n (y x) -> n 1 y x", y=side)


def _bilinear(pixels: int, patches: int) -> Float[Tensor, "pixels patches"]:
    """What each patch weighs at the middle of each pixel, in parts of twice the pixels.

    With whole numbers for weights, sums of single precision values are exact in double precision: rounding makes no
    difference between pixels that are equally salient.
    """
    middles = ((2 * torch.arange(pixels) + 1) * patches - pixels).clamp(0, 2 * pixels * (patches - 1))
    apart = (middles[:, None] - 2 * pixels * torch.arange(patches)).abs()
    return (2 * pixels - apart).clamp_min(0).double()


def _ask(
    answer: Answer, change: _Change, classes: Int[Tensor, " n"], steps: Int[Tensor, " s"], batch: int
) -> Float[Tensor, "n s"]:
    """Probability of each film's class after each of the steps; a batch holds a few steps of all the films."""
    films = len(classes)
    found = []
    for some in torch.split(steps, max(batch // films, 1)):
        answers = rearrange(answer(change.after(some)), "(n s) classes -> n s classes", n=films)
        found.append(answers[torch.arange(films, device=classes.device), :, classes])
    return torch.cat(found, dim=1)


def _area(curves: Float[np.ndarray, "films points"]) -> Float[np.ndarray, " films"]:
    """By trapezia."""
    return np.asarray((curves[:, 1:] + curves[:, :-1]).mean(axis=1) / 2)


def _check(films: Tensor, saliency: Tensor, steps: int) -> None:
    pixels = films.shape[-1] * films.shape[-2]
    if not 1 <= steps <= pixels:
        raise EvaluationError(f"A film of {pixels:,} pixels can be changed in 1 to {pixels:,} steps, not in {steps:,}.")
    if not len(films) == len(saliency) > 0:
        raise EvaluationError(f"Every film needs one map; there are {len(films):,} films and {len(saliency):,} maps.")
    if not saliency.isfinite().all():
        raise EvaluationError("A map with values that are no numbers has no most salient pixel; mend the maps.")


def _check_mode(model: ReadingModel | Baseline) -> None:
    if isinstance(model, nn.Module) and model.training:
        raise EvaluationError("A model that is still learning answers at random; call model.eval() first.")
