"""Boxes in film pixels, the orientation of stored pixels, and the patch grid of a model.

This is the only module that converts coordinates between frames. The film frame is the upright film in its original
pixels: x to the right, y down, (0, 0) the outer corner of the first pixel. A box ``x1 y1 x2 y2`` covers the half-open
range from x1 to x2, so its width is ``x2 - x1``.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from medgrape.errors import UserError

_SAME_SHAPE = 0.02


class GeometryError(UserError):
    """An invalid box or size."""


class BoxOutsideError(UserError):
    """A box that lies outside the film."""


@dataclass(frozen=True)
class FilmSize:
    """Width and height in pixels."""

    width: int
    height: int

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise GeometryError(f"A film needs a width and a height of at least one pixel; this one is {self}.")

    def __str__(self) -> str:
        return f"{self.width} x {self.height}"

    @property
    def pixels(self) -> int:
        """Number of pixels."""
        return self.width * self.height

    def is_shaped_like(self, other: "FilmSize") -> bool:
        """Whether one may be the other resized: same aspect ratio up to 2 % and rounding."""
        across, down = other.width / self.width, other.height / self.height
        rounding = 1 / min(self.width, other.width) + 1 / min(self.height, other.height)
        return max(across, down) / min(across, down) <= 1 + _SAME_SHAPE + rounding


@dataclass(frozen=True)
class Box:
    """A rectangle in the pixels of the original film."""

    x1: float
    y1: float
    x2: float
    y2: float

    def __post_init__(self) -> None:
        if not np.isfinite((self.x1, self.y1, self.x2, self.y2)).all():
            raise GeometryError(f"A box needs four numbers; got {self.corners}.")
        if self.x2 <= self.x1 or self.y2 <= self.y1:
            raise GeometryError(f"A box needs x1 < x2 and y1 < y2; got {self.corners}.")

    @classmethod
    def from_corner_and_size(cls, x: float, y: float, width: float, height: float) -> "Box":
        """Make a box from x, y, width and height, as COCO and NIH store it."""
        return cls(x, y, x + width, y + height)

    @classmethod
    def around(cls, mask: Bool[np.ndarray, "height width"]) -> "Box":
        """Return the bounding box of the true pixels of ``mask``."""
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        if rows.size == 0:
            raise GeometryError("An empty mask has no bounding box.")
        return cls(float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))

    @classmethod
    def holding(cls, points: Iterable[tuple[float, float]]) -> "Box":
        """Return the bounding box of points, each as x and y."""
        xs, ys = zip(*points, strict=True)
        return cls(min(xs), min(ys), max(xs), max(ys))

    @property
    def corners(self) -> tuple[float, float, float, float]:
        """x1, y1, x2, y2."""
        return self.x1, self.y1, self.x2, self.y2

    @property
    def corner_and_size(self) -> tuple[float, float, float, float]:
        """x, y, width and height, from which ``from_corner_and_size`` makes the identical box."""
        return self.x1, self.y1, _extent(self.x1, self.x2), _extent(self.y1, self.y2)

    @property
    def width(self) -> float:
        """Extent along x."""
        return self.x2 - self.x1

    @property
    def height(self) -> float:
        """Extent along y."""
        return self.y2 - self.y1

    @property
    def area(self) -> float:
        """Area in square pixels."""
        return self.width * self.height

    @property
    def centre(self) -> tuple[float, float]:
        """x and y of the centre."""
        return (self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2

    def contains(self, x: float, y: float) -> bool:
        """Whether the point lies inside."""
        return self.x1 <= x < self.x2 and self.y1 <= y < self.y2

    def within(self, film: FilmSize, slack: float = 0.0) -> bool:
        """Whether the whole box lies on the film, with a tolerance of ``slack`` pixels."""
        return (
            self.x1 >= -slack and self.y1 >= -slack and self.x2 <= film.width + slack and self.y2 <= film.height + slack
        )

    def clipped(self, film: FilmSize) -> "Box | None":
        """Return the part of the box that lies on the film, or None if there is none."""
        x1, y1 = max(self.x1, 0.0), max(self.y1, 0.0)
        x2, y2 = min(self.x2, float(film.width)), min(self.y2, float(film.height))
        return Box(x1, y1, x2, y2) if x2 > x1 and y2 > y1 else None

    def moved(self, source: FilmSize, target: FilmSize) -> "Box":
        """Return the same region after the film was resized from ``source`` to ``target``."""
        scale_x, scale_y = target.width / source.width, target.height / source.height
        return Box(self.x1 * scale_x, self.y1 * scale_y, self.x2 * scale_x, self.y2 * scale_y)

    def turned(self, degrees: float, x: float, y: float) -> "Box":
        """Return the bounding box of this box rotated clockwise about a point."""
        cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        corners = [(corner_x - x, corner_y - y) for corner_x in (self.x1, self.x2) for corner_y in (self.y1, self.y2)]
        return Box.holding((x + dx * cos - dy * sin, y + dx * sin + dy * cos) for dx, dy in corners)


def _extent(start: float, end: float) -> float:
    """Return the extent for which ``start + extent == end`` exactly; the plain difference may be off by one ulp."""
    difference = end - start
    candidates = (difference, math.nextafter(difference, math.inf), math.nextafter(difference, -math.inf))
    return next((extent for extent in candidates if start + extent == end), difference)


@dataclass(frozen=True)
class Turn:
    """How stored pixels become the upright film: clockwise quarter turns, then an optional left-right flip."""

    quarters: int = 0
    flipped: bool = False

    def __bool__(self) -> bool:
        return self.quarters % 4 != 0 or self.flipped

    def __str__(self) -> str:
        steps = []
        if self.quarters % 4:
            steps.append(f"rotated {90 * (self.quarters % 4)} degrees clockwise")
        if self.flipped:
            steps.append("flipped left to right")
        return " and ".join(steps) or "left as it is"

    @property
    def back(self) -> "Turn":
        """The inverse turn; a turn with a flip is its own inverse."""
        return Turn(self.quarters % 4 if self.flipped else -self.quarters % 4, self.flipped)

    def pixels(self, stored: Shaped[np.ndarray, "height width"]) -> Shaped[np.ndarray, "turned_height turned_width"]:
        """Turn the stored pixels."""
        turned = np.rot90(stored, -self.quarters)
        return np.ascontiguousarray(turned[:, ::-1] if self.flipped else turned)

    def size(self, stored: FilmSize) -> FilmSize:
        """Turn the stored size."""
        return FilmSize(stored.height, stored.width) if self.quarters % 2 else stored

    def point(self, x: float, y: float, stored: FilmSize) -> tuple[float, float]:
        """Turn a point of a film of size ``stored``."""
        width, height = stored.width, stored.height
        for _ in range(self.quarters % 4):
            x, y, width, height = height - y, x, height, width
        return (width - x if self.flipped else x), y

    def box(self, box: Box, stored: FilmSize) -> Box:
        """Turn a box on a film of size ``stored``."""
        return Box.holding((self.point(box.x1, box.y1, stored), self.point(box.x2, box.y2, stored)))


@dataclass(frozen=True)
class PatchGrid:
    """A map of ``rows`` x ``columns`` patches that covers a whole film."""

    film: FilmSize
    rows: int
    columns: int

    def __post_init__(self) -> None:
        if self.rows < 1 or self.columns < 1:
            raise GeometryError(f"A grid needs at least one row and one column; got {self.rows} x {self.columns}.")

    def overlap(self, box: Box) -> Float[np.ndarray, "rows columns"]:
        """Return the fraction of each patch, from 0 to 1, that the box covers."""
        return _overlap(self, box).copy()

    def patch(self, row: int, column: int) -> Box:
        """Return the region of the film that a patch covers."""
        if not (0 <= row < self.rows and 0 <= column < self.columns):
            raise GeometryError(f"Patch ({row}, {column}) is not on a {self.rows} x {self.columns} grid.")
        width, height = self.film.width / self.columns, self.film.height / self.rows
        return Box(column * width, row * height, (column + 1) * width, (row + 1) * height)

    def spread(self, values: Shaped[np.ndarray, "rows columns"]) -> Shaped[np.ndarray, "height width"]:
        """Upsample a map to film size by nearest neighbour."""
        rows = (2 * np.arange(self.film.height) + 1) * self.rows // (2 * self.film.height)
        columns = (2 * np.arange(self.film.width) + 1) * self.columns // (2 * self.film.width)
        return np.ascontiguousarray(values[rows][:, columns])


@lru_cache(maxsize=4096)
def _overlap(grid: PatchGrid, box: Box) -> Float[np.ndarray, "rows columns"]:
    """Cached, as every correction of a film asks for its earlier boxes again."""

    def covered(start: float, end: float, length: int, patches: int) -> Float[np.ndarray, " n"]:
        edges = np.linspace(0, length, patches + 1)
        overlap = np.minimum(end, edges[1:]) - np.maximum(start, edges[:-1])
        return np.asarray(np.clip(overlap, 0.0, None) / np.diff(edges), dtype=np.float64)

    rows = covered(box.y1, box.y2, grid.film.height, grid.rows)
    return np.outer(rows, covered(box.x1, box.x2, grid.film.width, grid.columns))


def peak(scores: Float[np.ndarray, "rows columns"], grid: PatchGrid) -> tuple[float, float]:
    """Return the centre of the highest pixel of the map, bilinearly upsampled to film size, as x and y in film pixels.

    The film-sized map is never computed. Between four patch centres the upsampled map is linear in x and in y, so its
    maximum there is at an outermost pixel, and those lie next to a patch centre. It suffices to evaluate the pixels on
    both sides of every centre.

    Beyond the outermost centres the map is constant up to the film's edge; of these equal pixels the one next to the
    centre counts, so that a mirrored map has its peak at the mirrored place. Other ties go to the first pixel, row by
    row: a constant map has its peak at the first patch.
    """
    rows, columns = _beside_centres(grid.film.height, grid.rows), _beside_centres(grid.film.width, grid.columns)
    values = scores.astype(np.float64)
    values = _interpolated(values, rows, grid.film.height)
    values = _interpolated(values.T, columns, grid.film.width).T
    row, column = np.unravel_index(int(values.argmax()), values.shape)
    return float(columns[column]) + 0.5, float(rows[row]) + 0.5


@lru_cache(maxsize=1024)
def _beside_centres(pixels: int, patches: int) -> Int[np.ndarray, " n"]:
    """Return the last pixel before and the first pixel after each patch centre, in exact integer arithmetic.

    Cached, as all maps of films of one size need the same pixels.
    """
    numerator = (2 * np.arange(patches) + 1) * pixels - patches
    before, after = numerator // (2 * patches), -(-numerator // (2 * patches))
    beside = np.unique(np.clip((before, after), 0, pixels - 1))
    beside.flags.writeable = False
    return beside


def _interpolated(
    values: Float[np.ndarray, "patches others"], pixels: Int[np.ndarray, " n"], length: int
) -> Float[np.ndarray, "n others"]:
    """Interpolate ``values``, which lie at patch centres, linearly at the centres of ``pixels``."""
    patches = len(values)
    position = np.clip((2 * pixels + 1) * patches - length, 0, (patches - 1) * 2 * length)
    before, rest = np.divmod(position, 2 * length)
    after = np.minimum(before + 1, patches - 1)
    weight = (rest / (2 * length))[:, None]
    return np.asarray(values[before] + weight * (values[after] - values[before]))


def on_film(box: Box, grid: PatchGrid) -> Box:
    """Return the part of a box that lies on the film; a box outside it is an error."""
    part = box.clipped(grid.film)
    if part is None:
        raise BoxOutsideError(
            f"The box {box.corners} lies outside the film of {grid.film} pixels; draw it on the film."
        )
    return part
