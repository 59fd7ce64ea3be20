"""Smooth lines through a few points."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from jaxtyping import Float

STEPS = 8  # points drawn per span of a spline
BLOB_POINTS = 40
_T = np.linspace(0, 1, STEPS, endpoint=False)
# Catmull-Rom weights of the four points around each span
_WEIGHTS = 0.5 * np.stack(
    [-_T + 2 * _T**2 - _T**3, 2 - 5 * _T**2 + 3 * _T**3, _T + 4 * _T**2 - 3 * _T**3, -(_T**2) + _T**3], axis=1
)

Pair = tuple[float, float]
Points = Float[np.ndarray, "_ 2"]  # of any number; two such arguments need not agree


def smooth(points: Sequence[Pair] | Points) -> Points:
    """An open curve through all points."""
    knots = np.asarray(points, np.float64)
    padded = np.concatenate([2 * knots[:1] - knots[1:2], knots, 2 * knots[-1:] - knots[-2:-1]])
    return np.concatenate([_spans(padded), knots[-1:]])


def smooth_closed(points: Sequence[Pair] | Points) -> Points:
    """A closed curve through all points."""
    knots = np.asarray(points, np.float64)
    return _spans(np.concatenate([knots[-1:], knots, knots[:2]]))


def ribbon(
    path: Float[np.ndarray, "*many n 2"], width: Float[np.ndarray, " n"] | float
) -> Float[np.ndarray, "*many m 2"]:
    """The closed outline of a band along each ``path``; its first half is one edge, its second the other."""
    along = np.empty_like(path)
    along[..., 1:-1, :] = path[..., 2:, :] - path[..., :-2, :]
    along[..., 0, :] = path[..., 1, :] - path[..., 0, :]
    along[..., -1, :] = path[..., -1, :] - path[..., -2, :]
    length = np.hypot(along[..., 0], along[..., 1]) + 1e-9
    half = np.asarray(width) / (2 * length)
    across = np.stack([-along[..., 1] * half, along[..., 0] * half], axis=-1)
    return np.concatenate([path - across, (path + across)[..., ::-1, :]], axis=-2)


def ellipse(
    centre: Pair, across: float, down: float, angle: float = 0.0, count: int = 28
) -> Float[np.ndarray, "count 2"]:
    """The outline of an ellipse with half axes ``across`` and ``down``."""
    circle = _circle(count) * (across, down)
    if angle:
        cosine, sine = np.cos(angle), np.sin(angle)
        circle = circle @ np.array([[cosine, sine], [-sine, cosine]])
    return np.asarray(circle + centre)


def blob(random: np.random.Generator, centre: Pair, across: float, down: float, roughness: float = 0.2) -> Points:
    """A closed, irregular outline around ``centre`` whose bumps are about ``roughness`` of its radius."""
    turn, circle = _angles(BLOB_POINTS), _circle(BLOB_POINTS)
    waves = np.arange(2, 7)
    height = random.normal(0, 0.5 * roughness, 5) * 1.6 / waves
    bumps = np.cos(turn[:, None] * waves + random.uniform(0, 2 * np.pi, 5)) @ height
    return np.asarray(circle * (1 + np.clip(bumps, -roughness, roughness))[:, None] * (across, down) + centre)


@cache
def _angles(count: int) -> Float[np.ndarray, " count"]:
    return np.linspace(0, 2 * np.pi, count, endpoint=False)


@cache
def _circle(count: int) -> Float[np.ndarray, "count 2"]:
    turn = _angles(count)
    return np.stack([np.cos(turn), np.sin(turn)], axis=1)


def _spans(padded: Points) -> Points:
    windows = np.stack([padded[:-3], padded[1:-2], padded[2:-1], padded[3:]], axis=1)
    return np.asarray((_WEIGHTS @ windows).reshape(-1, 2))
