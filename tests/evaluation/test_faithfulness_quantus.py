"""A second opinion, for developers who have Quantus (GPL, never a dependency): pip install quantus."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from medgrape.evaluation.faithfulness import blurred, faithfulness, random_order
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.film import draw
from oracles import faithfulness as slow

quantus = pytest.importorskip("quantus")

SIDE, STEPS = 56, 28
SETTINGS = {"features_in_step": SIDE * SIDE // STEPS, "normalise": False, "disable_warnings": True}


@pytest.fixture(scope="module")
def films():
    pixels = np.stack([draw(sitting, SIDE).pixels for sitting in plan("tb", 4, seed=3)])
    return torch.from_numpy(pixels).unsqueeze(1).float() / 255


@pytest.fixture(scope="module")
def network():
    """Random weights, and so sure of itself that a curve has somewhere to go."""
    torch.manual_seed(2)
    eye = nn.Sequential(nn.Conv2d(1, 8, 5, 2, 2), nn.ReLU(), nn.Conv2d(8, 8, 5, 2, 2), nn.ReLU(), nn.Flatten())
    network = nn.Sequential(eye, nn.Linear(8 * 14 * 14, 3)).eval()
    with torch.no_grad():
        network[1].weight *= 40
    return network


def flipped(network, film, one_map, **settings):
    """Quantus' curve for one film: it begins after the first step."""
    with torch.no_grad():
        asked = network(film[None]).argmax(dim=-1).numpy()
    start = settings.pop("start", film)
    flipping = quantus.PixelFlipping(**SETTINGS, **settings)
    return np.array(flipping(network, start[None].numpy(), asked, one_map[None, None].numpy())[0])


def places(one_map):
    """The upsampled map with its values replaced by their places: Quantus sorts equal ones as it happens."""
    wide = F.interpolate(one_map.double()[None, None], size=(SIDE, SIDE), mode="bilinear").numpy()
    order = np.argsort(-wide.ravel(), kind="stable")
    return torch.from_numpy(-np.argsort(order).astype(np.float32).reshape(SIDE, SIDE))


def asked_ourselves(network, films, saliency):
    return faithfulness(lambda some: network(some).softmax(dim=-1), films, saliency, steps=STEPS)


@pytest.mark.parametrize("grid", [(SIDE, SIDE), (7, 7)], ids=["a value for each pixel", "patches"])
def test_deletion_is_pixel_flipping_to_the_mean_of_the_untouched_film(films, network, grid):
    saliency = random_order(len(films), grid)
    ours = asked_ourselves(network, films, saliency)
    for number, film in enumerate(films):
        theirs = flipped(network, film, places(saliency[number]), perturb_baseline=float(film.mean()))
        first, *curve = ours.deletion_curves[number]
        assert np.ptp(ours.deletion_curves[number]) > 0.05
        assert curve == pytest.approx(theirs, abs=1e-3)
        assert ours.deletion[number] == pytest.approx(slow.area([first, *theirs]), abs=1e-3)


def test_insertion_is_pixel_flipping_from_the_blurred_film_to_the_original(films, network):
    saliency = random_order(len(films), (SIDE, SIDE))
    ours, soft = asked_ourselves(network, films, saliency), blurred(films)

    for number, film in enumerate(films):
        flat = film.numpy().reshape(1, -1)

        def sharpened(arr, indices, flat=flat, **_):
            arr = arr.copy()
            arr[0, indices[0]] = flat[0, indices[0]]
            return arr

        theirs = flipped(network, film, saliency[number], start=soft[number], perturb_func=sharpened)
        assert ours.insertion_curves[number][1:] == pytest.approx(theirs, abs=1e-3)
