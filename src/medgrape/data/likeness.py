"""Films that are the same film twice, even when re-encoded, resized or differently exposed."""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float

from medgrape.data.cache import CachedFilms

SIDE = 32
SAME = 0.995
"""Correlation of two 32 x 32 thumbnails above which they are taken for one film.

Measured (docs/how-to/data-sets.md): different films, of one patient too, stay below 0.989; a film resized, saved
again as JPEG and brightened stays above 0.998.
"""
_ROWS = 1024


@dataclass(frozen=True)
class Pair:
    """Positions of two films that look the same, and how much."""

    first: int
    second: int
    exact: bool
    """The very same bytes, not only the same look."""


def find_pairs(films: CachedFilms, others: CachedFilms | None = None) -> list[Pair]:
    """Pairs within one set, or between two."""
    here, there = films.readable(), (others or films).readable()
    looks_here = thumbnails(films, here)
    looks_there = looks_here if others is None else thumbnails(others, there)
    pairs = []
    for start in range(0, len(here), _ROWS):
        alike = looks_here[start : start + _ROWS] @ looks_there.T >= SAME
        for row, column in zip(*np.nonzero(alike), strict=True):
            first, second = here[start + int(row)], there[int(column)]
            if others is not None or first < second:
                same = films.contents[first] == (others or films).contents[second]
                pairs.append(Pair(first, second, same))
    return pairs


def thumbnails(films: CachedFilms, positions: Sequence[int]) -> Float[np.ndarray, "films pixels"]:
    """Small pictures with brightness and contrast taken out, so that a dot product is a correlation."""
    small = [cv2.resize(films[position], (SIDE, SIDE), interpolation=cv2.INTER_AREA).ravel() for position in positions]
    looks = np.array(small, dtype=np.float32).reshape(-1, SIDE * SIDE)
    looks -= looks.mean(axis=1, keepdims=True)
    return np.asarray(looks / np.maximum(np.linalg.norm(looks, axis=1, keepdims=True), 1e-6))
