"""Classes, calibration, where maps point, box energy and the prototypes' geometry, of one run on the test films."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.datasets.dataset import Dataset
from medgrape.evaluation.classification import ClassFigures, Classification, calibration, classify, detect
from medgrape.evaluation.dispersion import dispersion
from medgrape.evaluation.evaluate import Loaded, read_split
from medgrape.evaluation.localisation import Localisation, Pointing, box_energies, localise
from medgrape.evaluation.readings import Readings, true_classes
from medgrape.progress import Track
from medgrape.runs.checkpoint import Run

BINS = 80
"""Of the histograms of cosines, from -1 to 1."""


def measure_films(loaded: Loaded, data: Path, track: Track) -> dict[str, Any]:
    """All figures that one reading of the test films gives, and what was said of each film."""
    readings = read_split(loaded, Dataset.load(data), data, "test", track).readings
    classes, places = classify(readings), localise(readings)
    told: dict[str, Any] = dict(_classes(classes))
    probabilities = calibration(readings)
    told |= {
        "ece": probabilities.expected_error,
        "constant.ece": None if probabilities.constant is None else probabilities.constant.expected_error,
        "brier": probabilities.brier,
        "constant.brier": None if probabilities.constant is None else probabilities.constant.brier,
        "auc": detect(readings).mean_auc,
    }
    told |= dict(_pointing(places)) | _energy(readings)
    if isinstance(loaded.run, Run):
        told |= _geometry(loaded.run)
    return told | {"confusion": classes.confusion, "by_film": _by_film(readings, places)}


def _classes(found: Classification) -> Iterator[tuple[str, float | str | None]]:
    yield "films", found.films
    yield "majority", None if found.majority is None else found.majority.answer
    yield "macro_f1", found.macro_f1
    yield "accuracy", found.accuracy
    for name in ("macro_f1", "accuracy"):
        yield f"majority.{name}", None if found.majority is None else getattr(found.majority, name)
    for one in found.classes:
        yield f"f1.{one.name}", one.f1
        yield f"majority.f1.{one.name}", _majority_f1(found, one)


def _majority_f1(found: Classification, one: ClassFigures) -> float | None:
    """Of a class, where the answer is always the commonest of training."""
    if found.majority is None or not one.support:
        return None
    share = one.support / found.films
    return 2 * share / (1 + share) if one.name == found.majority.answer else 0.0


def _pointing(found: Localisation) -> Iterator[tuple[str, float | int | None]]:
    named = {"pair": found.per_pair, "film": found.per_film}
    named |= {f"concept.{one.name}": one.pointing for one in found.concepts}
    for name, pointing in named.items():
        if pointing is not None:
            yield from _shares(f"pointing.{name}", pointing)


def _shares(name: str, pointing: Pointing) -> Iterator[tuple[str, float | int | None]]:
    yield f"{name}.count", pointing.count
    yield f"{name}.hits", pointing.mean.hits
    yield f"{name}.mean", pointing.mean.share
    yield f"{name}.max", pointing.maximum.share
    yield f"{name}.cam", None if pointing.cam is None else pointing.cam.share
    yield f"{name}.chance", pointing.chance
    yield f"{name}.fixed", pointing.fixed


def _energy(readings: Readings) -> dict[str, float]:
    found = box_energies(readings)
    if not found:
        return {}
    return {
        "energy": float(np.mean([one.share for one in found])),
        "energy.flat": float(np.mean([o.area for o in found])),
    }


@torch.no_grad()
def _geometry(run: Run) -> dict[str, Any]:
    """How near prototypes of one concept are to each other, and to what the text says of it."""
    prototypes = run.grape.atlas.prototypes.detach()
    spread = dispersion(prototypes)
    told: dict[str, Any] = {
        "parameters.head": sum(weights.numel() for weights in run.grape.head.parameters()),
        "cosine.within": spread.within,
        "cosine.between": spread.between,
        "histogram.within": _histogram(_pairs(prototypes)),
    }
    if run.grape.anchors is not None:
        anchors = run.grape.anchors()[: len(prototypes)]
        cosines = torch.einsum("kmd,kd->km", prototypes, anchors).flatten()
        told |= {
            "cosine.anchor": float(cosines.mean()),
            "cosine.anchor.sd": float(cosines.std()),
            "histogram.anchor": _histogram(cosines),
        }
    return told


def _pairs(prototypes: Float[Tensor, "k m d"]) -> Float[Tensor, " pairs"]:
    products = torch.einsum("kmd,knd->kmn", prototypes, prototypes)
    above = torch.triu(torch.ones(products.shape[1:], dtype=torch.bool), diagonal=1)
    return products[:, above].flatten()


def _histogram(values: Float[Tensor, " n"]) -> list[float]:
    """Shares of the values in bins of equal width from -1 to 1."""
    counts = torch.histc(values.clamp(-1.0, 1.0), bins=BINS, min=-1.0, max=1.0)
    return [float(share) for share in counts / max(len(values), 1)]


def _by_film(readings: Readings, places: Localisation) -> dict[str, Any]:
    """What was said of each film, so that methods can be compared film by film."""
    answers = readings.probabilities.argmax(axis=1)
    return {
        "classes": readings.dataset.classes,
        "patients": [film.patient or film.id for film in readings.films],
        "truth": true_classes(readings).tolist(),
        "answers": answers.tolist(),
        "pairs": [
            {"film": pair.film, "concept": pair.concept, "hit": pair.mean.hit, "fixed": pair.fixed}
            for pair in places.pairs
        ],
        "films": [film.id for film in readings.films],
    }
