"""Where things are: boxes in film pixels, and the grid of patches that a model sees.

This is the only module in which coordinates change their frame. A film's frame is that of the upright film as a person
sees it, in its original pixels: x to the right, y down, (0, 0) the outer corner of the first pixel. A box
``x1 y1 x2 y2`` covers the half-open range from x1 up to x2, so its width is ``x2 - x1``.
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
    """A box or a size that makes no sense."""


class BoxOutsideError(UserError):
    """A box that lies beside the film."""


@dataclass(frozen=True)
class FilmSize:
    """Width and height in pixels."""

    width: int
    height: int

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise GeometryError(f"A film needs at least one pixel each way; this one is {self}.")

    def __str__(self) -> str:
        return f"{self.width} x {self.height}"

    @property
    def pixels(self) -> int:
        """How many pixels the film has."""
        return self.width * self.height

    def is_shaped_like(self, other: "FilmSize") -> bool:
        """Whether one may be the other resized: by the same factor both ways, but for 2 % and what rounding does."""
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
        """A box as COCO and NIH write it."""
        return cls(x, y, x + width, y + height)

    @classmethod
    def around(cls, mask: Bool[np.ndarray, "height width"]) -> "Box":
        """The smallest box that holds every true pixel of ``mask``."""
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        if rows.size == 0:
            raise GeometryError("An empty mask has no box around it.")
        return cls(float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))

    @classmethod
    def holding(cls, points: Iterable[tuple[float, float]]) -> "Box":
        """The smallest box that holds every point, each as x and y."""
        across, down = zip(*points, strict=True)
        return cls(min(across), min(down), max(across), max(down))

    @property
    def corners(self) -> tuple[float, float, float, float]:
        """x1, y1, x2, y2."""
        return self.x1, self.y1, self.x2, self.y2

    @property
    def corner_and_size(self) -> tuple[float, float, float, float]:
        """x, y, width and height from which ``from_corner_and_size`` makes this very box, to the last bit on a film."""
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
        """In square pixels."""
        return self.width * self.height

    @property
    def centre(self) -> tuple[float, float]:
        """x and y of the middle."""
        return (self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2

    def contains(self, x: float, y: float) -> bool:
        """Whether the point lies inside."""
        return self.x1 <= x < self.x2 and self.y1 <= y < self.y2

    def within(self, film: FilmSize, slack: float = 0.0) -> bool:
        """Whether the whole box lies on the film, give or take ``slack`` pixels."""
        return (
            self.x1 >= -slack and self.y1 >= -slack and self.x2 <= film.width + slack and self.y2 <= film.height + slack
        )

    def clipped(self, film: FilmSize) -> "Box | None":
        """The part of the box that lies on the film, or None where there is none."""
        x1, y1 = max(self.x1, 0.0), max(self.y1, 0.0)
        x2, y2 = min(self.x2, float(film.width)), min(self.y2, float(film.height))
        return Box(x1, y1, x2, y2) if x2 > x1 and y2 > y1 else None

    def moved(self, source: FilmSize, target: FilmSize) -> "Box":
        """The same place after the film was stretched from ``source`` to ``target``."""
        across, down = target.width / source.width, target.height / source.height
        return Box(self.x1 * across, self.y1 * down, self.x2 * across, self.y2 * down)

    def turned(self, degrees: float, x: float, y: float) -> "Box":
        """The box around this one after it was turned clockwise about a point."""
        across, down = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        corners = [(one - x, other - y) for one in (self.x1, self.x2) for other in (self.y1, self.y2)]
        return Box.holding((x + one * across - other * down, y + one * down + other * across) for one, other in corners)


def _extent(start: float, end: float) -> float:
    """The extent that added to ``start`` gives ``end`` again; the plain difference may miss it by a last digit."""
    plain = end - start
    near = (plain, math.nextafter(plain, math.inf), math.nextafter(plain, -math.inf))
    return next((extent for extent in near if start + extent == end), plain)


@dataclass(frozen=True)
class Turn:
    """How stored pixels become the upright film: quarter turns clockwise, then perhaps a flip left to right."""

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
        """The turn that undoes this one; a flip between two equal turns undoes itself."""
        return Turn(self.quarters % 4 if self.flipped else -self.quarters % 4, self.flipped)

    def pixels(self, stored: Shaped[np.ndarray, "height width"]) -> Shaped[np.ndarray, "turned_height turned_width"]:
        """The stored pixels, turned."""
        turned = np.rot90(stored, -self.quarters)
        return np.ascontiguousarray(turned[:, ::-1] if self.flipped else turned)

    def size(self, stored: FilmSize) -> FilmSize:
        """The stored size, turned."""
        return FilmSize(stored.height, stored.width) if self.quarters % 2 else stored

    def point(self, x: float, y: float, stored: FilmSize) -> tuple[float, float]:
        """Where a point of a film of size ``stored`` comes to lie."""
        width, height = stored.width, stored.height
        for _ in range(self.quarters % 4):
            x, y, width, height = height - y, x, height, width
        return (width - x if self.flipped else x), y

    def box(self, box: Box, stored: FilmSize) -> Box:
        """Where a box on a film of size ``stored`` comes to lie."""
        (x1, y1), (x2, y2) = self.point(box.x1, box.y1, stored), self.point(box.x2, box.y2, stored)
        return Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))


@dataclass(frozen=True)
class PatchGrid:
    """A model's map of ``rows`` x ``columns`` patches, stretched over a whole film."""

    film: FilmSize
    rows: int
    columns: int

    def __post_init__(self) -> None:
        if self.rows < 1 or self.columns < 1:
            raise GeometryError(f"A grid needs at least one patch each way; got {self.rows} x {self.columns}.")

    def overlap(self, box: Box) -> Float[np.ndarray, "rows columns"]:
        """How much of each patch, from 0 to 1, the box covers."""
        return _overlap(self, box).copy()

    def patch(self, row: int, column: int) -> Box:
        """The part of the film that one patch stands for."""
        if not (0 <= row < self.rows and 0 <= column < self.columns):
            raise GeometryError(f"Patch ({row}, {column}) is not on a {self.rows} x {self.columns} grid.")
        wide, high = self.film.width / self.columns, self.film.height / self.rows
        return Box(column * wide, row * high, (column + 1) * wide, (row + 1) * high)

    def spread(self, values: Shaped[np.ndarray, "rows columns"]) -> Shaped[np.ndarray, "height width"]:
        """Every pixel of the film with the value of the patch that its middle lies in: no finer than the map is."""
        down = (2 * np.arange(self.film.height) + 1) * self.rows // (2 * self.film.height)
        across = (2 * np.arange(self.film.width) + 1) * self.columns // (2 * self.film.width)
        return np.ascontiguousarray(values[down][:, across])


@lru_cache(maxsize=4096)
def _overlap(grid: PatchGrid, box: Box) -> Float[np.ndarray, "rows columns"]:
    """A corrected film asks for the same boxes again with every further one."""
    across = _share(box.x1, box.x2, np.linspace(0, grid.film.width, grid.columns + 1))
    down = _share(box.y1, box.y2, np.linspace(0, grid.film.height, grid.rows + 1))
    return np.outer(down, across)


def _share(start: float, end: float, edges: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n-1"]:
    """How much of each interval between neighbouring ``edges`` lies between ``start`` and ``end``."""
    covered = np.minimum(end, edges[1:]) - np.maximum(start, edges[:-1])
    return np.asarray(np.clip(covered, 0.0, None) / np.diff(edges), dtype=np.float64)


def peak(scores: Float[np.ndarray, "rows columns"], grid: PatchGrid) -> tuple[float, float]:
    """The middle of the highest pixel of the map after bilinear upsampling to film size, as x and y in film pixels.

    The film-sized map is never made. Between four patch centres the upsampled map is linear in x and in y, so no
    pixel there is higher than the outermost ones of that field, and those lie beside a patch centre. It is enough to
    look at the pixels on either side of every centre.

    Beyond the outermost centres the map only repeats itself up to the film's edge; of these equal pixels the one
    beside the centre counts, so that a map mirrored points at the mirrored place. Among other equal pixels it is the
    first one, row by row: a map that is the same everywhere points at its first patch.
    """
    rows, columns = _beside_centres(grid.film.height, grid.rows), _beside_centres(grid.film.width, grid.columns)
    values = scores.astype(np.float64)
    values = _between(values, rows, grid.film.height)
    values = _between(values.T, columns, grid.film.width).T
    row, column = np.unravel_index(int(values.argmax()), values.shape)
    return float(columns[column]) + 0.5, float(rows[row]) + 0.5


@lru_cache(maxsize=1024)
def _beside_centres(pixels: int, patches: int) -> Int[np.ndarray, " n"]:
    """The last pixel before and the first pixel after each patch centre, in whole numbers so that none is missed.

    Films of one size ask for the same ones again with every map.
    """
    above = (2 * np.arange(patches) + 1) * pixels - patches
    below = -(-above // (2 * patches))
    found = np.unique(np.clip((above // (2 * patches), below), 0, pixels - 1))
    found.flags.writeable = False
    return found


def _between(
    values: Float[np.ndarray, "patches others"], pixels: Int[np.ndarray, " n"], length: int
) -> Float[np.ndarray, "n others"]:
    """``values`` read between patch centres at the middle of each of ``pixels``; the outermost repeat to the edge."""
    patches = len(values)
    place = np.clip((2 * pixels + 1) * patches - length, 0, (patches - 1) * 2 * length)
    before, rest = np.divmod(place, 2 * length)
    after = np.minimum(before + 1, patches - 1)
    share = (rest / (2 * length))[:, None]
    return np.asarray(values[before] + share * (values[after] - values[before]))


def on_film(box: Box, grid: PatchGrid) -> Box:
    """The part of a box that lies on the film; a box beside it is refused."""
    part = box.clipped(grid.film)
    if part is None:
        raise BoxOutsideError(
            f"The box {box.corners} lies outside the film of {grid.film} pixels; draw it on the film."
        )
    return part
