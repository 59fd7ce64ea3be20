"""Class probabilities of many films, as one array."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float

from medgrape.baselines.checkpoint import BaselineRun
from medgrape.data.decoder import DecoderPool, Request
from medgrape.data.film import FilmError
from medgrape.model.checkpoint import Run

_BATCH = 16


def probabilities(run: Run | BaselineRun, films: Iterable[Path]) -> Float[np.ndarray, "films classes"]:
    """Every film once, decoded in processes that may die; one that cannot be read is an error that names it."""
    limits, preprocessing = run.config.limits, run.config.preprocessing
    with DecoderPool() as decoders:
        pixels = _readable(decoders, (Request(film, limits, preprocessing) for film in films))
        found = [_asked(run, batch) for batch in _batches(pixels)]
    return np.concatenate(found) if found else np.empty((0, len(run.classes)))


def _readable(decoders: DecoderPool, requests: Iterable[Request]) -> Iterator[np.ndarray]:
    for film in decoders.read_all(requests):
        if isinstance(film, FilmError):
            raise film
        yield film.pixels


def _batches(pixels: Iterator[np.ndarray]) -> Iterator[list[np.ndarray]]:
    while batch := list(islice(pixels, _BATCH)):
        yield batch


@torch.no_grad()
def _asked(run: Run | BaselineRun, batch: list[np.ndarray]) -> np.ndarray:
    films = torch.from_numpy(np.stack(batch)).unsqueeze(1).float().div(255.0)
    logits = run.model.read(films)[0] if isinstance(run, BaselineRun) else run.model.look(films)[0].logits
    return np.asarray(logits.double().softmax(dim=-1).numpy())
