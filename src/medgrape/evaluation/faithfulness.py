"""Does the prediction depend on the salient pixels? Insertion and deletion, as in RISE (Petsiuk et al., 2018)."""

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

STEPS = 28  # 8 rows of a film of 224 x 224 in each
BATCH = 8  # on a CPU the memory traffic of larger batches costs more than it saves; on a GPU take 64 or more
BLUR = 5 / 224  # standard deviation of the blur, relative to the film's side: the 5 pixels of RISE
Answer = Callable[[Float[Tensor, "b 1 side side"]], Float[Tensor, "b classes"]]
"""Returns the class probabilities of films with greys from 0 to 1."""


@dataclass(frozen=True)
class Faithfulness:
    """The probability of the class predicted for the untouched film, while its pixels are changed step by step.

    A curve begins with no pixel changed and ends with all of them; its area is from 0 to 1.
    """

    deletion: Float[np.ndarray, " films"]  # area while the most salient pixels turn grey first: lower is better
    insertion: Float[np.ndarray, " films"]
    """Area while the most salient pixels of a blurred film become sharp first: higher is better."""
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
    """Compute insertion and deletion; every step changes the same number of pixels, up to one.

    Deletion replaces pixels by the mean grey of the untouched film. Insertion replaces those of the blurred film by
    the original ones. A batch holds a few steps of several films, so memory does not grow with the number of films.
    """
    _check(films, saliency, steps)
    parts = list(zip(torch.split(films, batch), torch.split(saliency, batch), strict=True))
    curves = [
        _curves(answer, *part, steps, batch) for part in track(parts, f"changing {len(films):,} films", len(parts))
    ]
    deletion, insertion = (torch.cat(column).double().cpu().numpy() for column in zip(*curves, strict=True))
    return Faithfulness(_area(deletion), _area(insertion), deletion, insertion)


def random_order(films: int, grid: tuple[int, int], seed: int = 0) -> Float[Tensor, "films h w"]:
    """Return random saliency, the trivial baseline: the patches of each film in random order."""
    return torch.rand(films, *grid, generator=torch.Generator().manual_seed(seed))


def answer_of(model: ReadingModel | Baseline) -> Answer:
    """Return the function that computes a model's class probabilities."""
    _check_mode(model)
    if isinstance(model, Baseline):
        return lambda films: model.predict_with_all_maps(films).logits.softmax(dim=-1)
    return lambda films: model.predict_with_mean_maps(films)[0].probabilities


@torch.no_grad()
def saliency_of(
    model: ReadingModel | Baseline, films: Float[Tensor, "n 1 side side"], *, batch: int = BATCH
) -> Float[Tensor, "n h w"]:
    """Return the maximum of a model's maps over all concepts, for GRAPE also over their prototypes in use."""
    _check_mode(model)
    parts = torch.split(films, batch)
    if isinstance(model, Baseline):
        maps = [model.predict_with_all_maps(part).maps for part in parts]
    else:
        maps = [strongest_maps(model.patches(part), model.atlas.in_use) for part in parts]
    return reduce(torch.cat(maps), "n k h w -> n h w", "max")


def blurred(films: Float[Tensor, "n 1 side side"]) -> Float[Tensor, "n 1 side side"]:
    """Blur the films with a Gaussian that is cut off at the edges, so that a constant film does not change."""
    places = torch.arange(films.shape[-1], dtype=films.dtype, device=films.device)
    distance = (places[:, None] - places) / (BLUR * len(places))
    weights = (-(distance**2) / 2).softmax(dim=-1)
    return weights @ films @ weights.T


def _curves(
    answer: Answer, films: Float[Tensor, "n 1 side side"], saliency: Float[Tensor, "n h w"], steps: int, batch: int
) -> tuple[Float[Tensor, "n points"], Float[Tensor, "n points"]]:
    """Return the curves of deletion and of insertion; they share the untouched film, which is predicted once."""
    untouched, classes = answer(films).max(dim=-1)
    count, turns = len(films), _turns(saliency.to(films.device), films.shape[-1], steps)

    def probabilities(start: Tensor, end: Tensor, after_steps: Int[Tensor, " s"]) -> Float[Tensor, "n s"]:
        """Predict after each step, while ``start`` turns into ``end``; a batch holds a few steps of all films."""
        columns = []
        for part in torch.split(after_steps, max(batch // count, 1)):
            turned = turns <= rearrange(part, "s -> s 1 1 1")
            changed = torch.where(turned, end.unsqueeze(1), start.unsqueeze(1))
            answers = answer(rearrange(changed, "n s c y x -> (n s) c y x"))
            by_film = rearrange(answers, "(n s) classes -> n s classes", n=count)
            columns.append(by_film[torch.arange(count, device=classes.device), :, classes])
        return torch.cat(columns, dim=1)

    grey = reduce(films, "n c y x -> n c 1 1", "mean").expand_as(films)
    numbers = torch.arange(steps, dtype=turns.dtype, device=films.device)
    deleted, inserted = probabilities(films, grey, numbers + 1), probabilities(blurred(films), films, numbers)
    return torch.cat([untouched[:, None], deleted], dim=1), torch.cat([inserted, untouched[:, None]], dim=1)


def _turns(saliency: Float[Tensor, "n h w"], side: int, steps: int) -> Int[Tensor, "n 1 1 side side"]:
    """Return the step, from 1 on, in which each pixel of the upsampled map is changed; ties go row by row."""
    down, across = (_bilinear(side, patches).to(saliency.device) for patches in saliency.shape[1:])
    order = (down @ saliency.double() @ across.T).flatten(1).argsort(dim=-1, descending=True, stable=True)
    pixels = side * side
    turn = torch.arange(pixels, device=saliency.device) * steps // pixels + 1
    turns = torch.empty_like(order, dtype=torch.int32).scatter_(1, order, turn.int().expand(len(order), -1))
    return rearrange(turns, "n (y x) -> n 1 1 y x", y=side)


def _bilinear(pixels: int, patches: int) -> Float[Tensor, "pixels patches"]:
    """Return the weight of each patch at the centre of each pixel, multiplied by twice the number of pixels.

    The weights are whole numbers, so sums of single-precision values are exact in double precision, and rounding makes
    no difference between pixels that are equally salient.
    """
    centres = ((2 * torch.arange(pixels) + 1) * patches - pixels).clamp(0, 2 * pixels * (patches - 1))
    distance = (centres[:, None] - 2 * pixels * torch.arange(patches)).abs()
    return (2 * pixels - distance).clamp_min(0).double()


def _area(curves: Float[np.ndarray, "films points"]) -> Float[np.ndarray, " films"]:
    """Integrate by the trapezoidal rule."""
    return np.asarray((curves[:, 1:] + curves[:, :-1]).mean(axis=1) / 2)


def _check(films: Tensor, saliency: Tensor, steps: int) -> None:
    pixels = films.shape[-1] * films.shape[-2]
    if not 1 <= steps <= pixels:
        raise EvaluationError(f"A film of {pixels:,} pixels can be changed in 1 to {pixels:,} steps, not in {steps:,}.")
    if not len(films) == len(saliency) > 0:
        raise EvaluationError(f"Every film needs one map; there are {len(films):,} films and {len(saliency):,} maps.")
    if not saliency.isfinite().all():
        raise EvaluationError("The saliency maps contain values that are not finite; correct the maps.")


def _check_mode(model: ReadingModel | Baseline) -> None:
    if isinstance(model, nn.Module) and model.training:
        raise EvaluationError("The model is in training mode, so its answers are random; call model.eval() first.")
