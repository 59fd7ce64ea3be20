"""Drawing in unit coordinates: from shapes of the upright chest to layers of film pixels."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import cv2
import numpy as np
from jaxtyping import Float, Float32

SPAN_POINTS = 8  # points drawn per span of a spline
BLOB_POINTS = 40
_T = np.linspace(0, 1, SPAN_POINTS, endpoint=False)
# Catmull-Rom weights of the four points around each span
_WEIGHTS = 0.5 * np.stack(
    [-_T + 2 * _T**2 - _T**3, 2 - 5 * _T**2 + 3 * _T**3, _T + 4 * _T**2 - 3 * _T**3, -(_T**2) + _T**3], axis=1
)
Pair = tuple[float, float]
Points = Float[np.ndarray, "_ 2"]  # of any number; two such arguments need not agree
Layer = Float32[np.ndarray, "size size"]
Shapes = Sequence[Points] | Float[np.ndarray, "_ _ 2"]
FRACTION_BITS = 4  # of the coordinates handed to OpenCV
DETAIL = 2  # thin lines are drawn this much larger, then averaged down


def smooth(points: Sequence[Pair] | Points) -> Points:
    """Return an open curve through all points."""
    knots = np.asarray(points, np.float64)
    padded = np.concatenate([2 * knots[:1] - knots[1:2], knots, 2 * knots[-1:] - knots[-2:-1]])
    return np.concatenate([_spans(padded), knots[-1:]])


def smooth_closed(points: Sequence[Pair] | Points) -> Points:
    """Return a closed curve through all points."""
    knots = np.asarray(points, np.float64)
    return _spans(np.concatenate([knots[-1:], knots, knots[:2]]))


def ribbon(
    path: Float[np.ndarray, "*many n 2"], width: Float[np.ndarray, " n"] | float
) -> Float[np.ndarray, "*many m 2"]:
    """Return the closed outline of a band along each ``path``: first one edge, then the other."""
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
    """Return the outline of an ellipse with half axes ``across`` and ``down``."""
    circle = _circle(count) * (across, down)
    if angle:
        cosine, sine = np.cos(angle), np.sin(angle)
        circle = circle @ np.array([[cosine, sine], [-sine, cosine]])
    return np.asarray(circle + centre)


def blob(random: np.random.Generator, centre: Pair, across: float, down: float, roughness: float = 0.2) -> Points:
    """Return an irregular closed outline around ``centre``; its bumps are about ``roughness`` of its radius."""
    turn, circle = np.linspace(0, 2 * np.pi, BLOB_POINTS, endpoint=False), _circle(BLOB_POINTS)
    waves = np.arange(2, 7)
    height = random.normal(0, 0.5 * roughness, 5) * 1.6 / waves
    bumps = np.cos(turn[:, None] * waves + random.uniform(0, 2 * np.pi, 5)) @ height
    return np.asarray(circle * (1 + np.clip(bumps, -roughness, roughness))[:, None] * (across, down) + centre)


@cache
def _circle(count: int) -> Float[np.ndarray, "count 2"]:
    return polar(np.linspace(0, 2 * np.pi, count, endpoint=False))


def polar(
    angles: Float[np.ndarray, " count"], lengths: Float[np.ndarray, " count"] | float = 1.0
) -> Float[np.ndarray, "count 2"]:
    """Return vectors of the given directions and lengths."""
    return np.stack([np.cos(angles) * lengths, np.sin(angles) * lengths], axis=1)


def direction_to(start: Pair, goal: Pair) -> float:
    """Return the angle of the direction from one point to another."""
    return float(np.arctan2(goal[1] - start[1], goal[0] - start[0]))


def _spans(padded: Points) -> Points:
    windows = np.stack([padded[:-3], padded[1:-2], padded[2:-1], padded[3:]], axis=1)
    return np.asarray((_WEIGHTS @ windows).reshape(-1, 2))


@dataclass(frozen=True)
class Pose:
    """How the patient is placed in front of the detector, relative to the centre of the film."""

    tilt: float = 0.0
    zoom: float = 1.0
    shift: tuple[float, float] = (0.0, 0.0)

    def apply(self, points: Points) -> Points:
        """Map points of the upright chest to the film, both in unit coordinates."""
        cosine, sine = self.zoom * np.cos(self.tilt), self.zoom * np.sin(self.tilt)
        turn = np.array([[cosine, sine], [-sine, cosine]])
        return np.asarray((points - 0.5) @ turn + 0.5 + np.asarray(self.shift))


@dataclass(frozen=True)
class Canvas:
    """A square film of ``size`` pixels; every method returns a new layer, blurred by ``blur`` unit lengths."""

    size: int
    pose: Pose = field(default_factory=Pose)

    def blank(self) -> Layer:
        """Return a layer of zeros."""
        return np.zeros((self.size, self.size), np.float32)

    def fill(self, *outlines: Points, ink: Sequence[float] | None = None, blur: float = 0.0) -> Layer:
        """Return the coverage, 0 to 1, of the union of closed outlines, each with its ``ink``."""
        sheet = np.zeros((self.size, self.size), np.uint8)
        inks = [1.0] * len(outlines) if ink is None else ink
        for outline, share in zip(self._fixed_all(outlines, self.size), inks, strict=True):
            cv2.fillPoly(sheet, [outline], 255 * share, cv2.LINE_AA, FRACTION_BITS)
        return self.soften(_unit(sheet), blur)

    def strokes(self, paths: Shapes, width: float, *, closed: bool = False, blur: float = 0.0) -> Layer:
        """Draw lines of one width; a line thinner than a pixel is drawn fainter."""
        return self.graded_strokes([(paths, width, 1.0)], closed=closed, blur=blur)

    def graded_strokes(
        self, groups: Sequence[tuple[Shapes, float, float]], *, closed: bool = False, blur: float = 0.0
    ) -> Layer:
        """Draw groups of lines, each with a width and an ink, later groups over earlier ones."""
        large = self.size * DETAIL
        sheet = np.zeros((large, large), np.uint8)
        for paths, width, ink in groups:
            pixels = width * self.pose.zoom * large
            thickness = max(1, round(pixels))
            shade = int(255 * ink * min(1.0, pixels / thickness))
            # hair lines are many, faint and averaged down anyway
            quality = cv2.LINE_AA if pixels >= 1.5 else cv2.LINE_8
            cv2.polylines(sheet, self._fixed_all(paths, large), closed, shade, thickness, quality, FRACTION_BITS)
        return self.soften(_unit(cv2.resize(sheet, (self.size, self.size), interpolation=cv2.INTER_AREA)), blur)

    def dots(self, centres: Float[np.ndarray, "n 2"], radii: Float[np.ndarray, " n"], blur: float = 0.0) -> Layer:
        """Draw discs; a disc smaller than a pixel is drawn fainter."""
        large = self.size * DETAIL
        sheet = np.zeros((large, large), np.uint8)
        places = self._fixed(centres, large)
        for (x, y), radius in zip(places.tolist(), radii.tolist(), strict=True):
            pixels = radius * large
            ink = 255 if pixels >= 1 else int(255 * pixels)
            cv2.circle(sheet, (x, y), int(max(pixels, 1.0) * (1 << FRACTION_BITS)), ink, -1, cv2.LINE_AA, FRACTION_BITS)
        return self.soften(_unit(cv2.resize(sheet, (self.size, self.size), interpolation=cv2.INTER_AREA)), blur)

    def soften(self, layer: Layer, sigma: float) -> Layer:
        """Return a Gaussian blur of ``sigma`` unit lengths, at lower resolution where it is wide."""
        pixels = sigma * self.size
        if pixels < 0.3:
            return layer
        coarse = 1
        while pixels / coarse > 3.0 and self.size // (2 * coarse) >= 16:
            coarse *= 2
        small = layer if coarse == 1 else _resize(layer, self.size // coarse, cv2.INTER_AREA)
        blurred = cv2.GaussianBlur(small, (0, 0), pixels / coarse, borderType=cv2.BORDER_REPLICATE)
        return np.asarray(blurred if coarse == 1 else _resize(blurred, self.size, cv2.INTER_CUBIC), np.float32)

    def texture(self, random: np.random.Generator, coarsest: int = 8, octaves: int = 4) -> Layer:
        """Return smooth noise of mean 0 and standard deviation of about 1, the same at every film size."""
        total = random.standard_normal((coarsest, coarsest), np.float32)
        for octave in range(1, octaves):
            cells = coarsest << octave
            finer = random.standard_normal((cells, cells), np.float32)
            total = _resize(total, cells, cv2.INTER_CUBIC) + finer * np.float32(0.62**octave)
        return _resize(total, self.size, cv2.INTER_CUBIC)

    def _fixed(self, points: Points, size: int) -> np.ndarray:
        """Fixed-point pixel coordinates as OpenCV takes them."""
        return np.round((self.pose.apply(points) * size - 0.5) * (1 << FRACTION_BITS)).astype(np.int32)

    def _fixed_all(self, shapes: Shapes, size: int) -> list[np.ndarray]:
        """The same for many shapes: transforming all points at once is far cheaper."""
        if not len(shapes):
            return []
        if isinstance(shapes, np.ndarray):
            return list(self._fixed(shapes.reshape(-1, 2), size).reshape(shapes.shape))
        ends = np.cumsum([len(shape) for shape in shapes]).tolist()
        points = self._fixed(np.concatenate(shapes), size)
        return [points[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@cache
def keep_memory() -> None:
    """Make glibc reuse the memory of freed layers, which saves a quarter of the drawing time.

    It keeps freed blocks up to the size of the largest one it has seen freed.
    """
    np.empty(1 << 24, np.uint8)


def _unit(sheet: np.ndarray) -> Layer:
    return np.asarray(np.multiply(sheet, np.float32(1 / 255), dtype=np.float32))


def _resize(layer: np.ndarray, size: int, interpolation: int) -> Layer:
    return np.asarray(cv2.resize(layer, (size, size), interpolation=interpolation), np.float32)
