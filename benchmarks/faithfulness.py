"""Insertion and deletion against Quantus' PixelFlipping, on the same films and the same small network, on one core."""

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from benchmarks.cores import one_core
from benchmarks.ratio import Ratio, race
from medgrape.errors import UserError
from medgrape.evaluation.faithfulness import STEPS, blurred, faithfulness, random_order
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.film import draw

TARGET = 10.0
FILMS, SIDE = 32, 224
FEW, SMALL = 2, 56
"""Number of films for one pixel a step, which takes a pass through the network for every pixel of every film."""
GRID, CLASSES = (7, 7), 3


def bench_faithfulness(rounds: int = 3) -> Iterator[Ratio]:
    """Yield both curves of each film: with the same steps, and with the default of Quantus, one pixel a step."""
    quantus, network = _quantus(), _network()
    with one_core():
        yield _race(quantus, network, _films(FILMS, SIDE), SIDE * SIDE // STEPS, rounds)
        yield _race(quantus, network, _films(FEW, SMALL), 1, rounds)


def _race(
    quantus: Any,  # noqa: ANN401 (GPL, so never a dependency: its types are unknown here)
    network: nn.Module,
    films: Float[Tensor, "n 1 side side"],
    step: int,
    rounds: int,
) -> Ratio:
    """Compare with Quantus when it changes ``step`` pixels at a time."""
    count, _, side, _ = films.shape
    saliency = random_order(count, GRID)
    theirs = _pixel_flipping(quantus, network, films, saliency, step)
    timed = race(lambda: faithfulness(_answer(network), films, saliency), theirs, rounds)
    what = f"insertion and deletion in {STEPS} steps, {count} films of {side} x {side}"
    named = f"PixelFlipping in {side * side // step:,} steps" + (", as it comes" if step == 1 else "")
    return Ratio(what, named, *timed, TARGET, at_most=False)


def _quantus() -> Any:  # noqa: ANN401
    try:
        return import_module("quantus")
    except ModuleNotFoundError as missing:
        raise UserError("The faithfulness benchmark runs Quantus (GPL), which needs: pip install quantus.") from missing


def _network() -> nn.Module:
    """A network with random weights, so small that most of the time is spent on changing films."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, CLASSES),
    ).eval()  # fmt: skip


def _answer(network: nn.Module) -> Callable[[Tensor], Tensor]:
    return lambda films: network(films).softmax(dim=-1)


def _films(count: int, side: int) -> Float[Tensor, "n 1 side side"]:
    pixels = np.stack([draw(sitting, side).pixels for sitting in plan("tb", count, seed=0)])
    return torch.from_numpy(pixels).unsqueeze(1).float() / 255.0


def _pixel_flipping(
    quantus: Any,  # noqa: ANN401
    network: nn.Module,
    films: Float[Tensor, "n 1 side side"],
    saliency: Float[Tensor, "n h w"],
    step: int,
) -> Callable[[], object]:
    """Compute the same with Quantus, which has deletion only; its insertion deletes by writing the film's pixels."""
    sharp, soft = films.numpy(), blurred(films).numpy()
    wide = F.interpolate(saliency.unsqueeze(1), size=films.shape[-2:], mode="bilinear").numpy()
    with torch.no_grad():
        classes = network(films).argmax(dim=-1).numpy()
    rows, flat = np.arange(len(sharp))[:, None], sharp.reshape(len(sharp), -1)

    def sharpened(arr: np.ndarray, indices: np.ndarray, **_: object) -> np.ndarray:
        arr = arr.copy()
        arr[rows, indices] = flat[rows, indices]
        return arr

    options = {"features_in_step": step, "normalise": False, "disable_warnings": True}
    delete = quantus.PixelFlipping(perturb_baseline="mean", **options)
    insert = quantus.PixelFlipping(perturb_func=sharpened, **options)

    def run() -> None:
        with warnings.catch_warnings(action="ignore"):  # that one pixel of thousands changed little
            delete(network, sharp, classes, wide), insert(network, soft, classes, wide)

    return run
