"""Where a map, stretched over its film, is highest."""

import numpy as np
from jaxtyping import Float, Int

from medgrape.geometry import PatchGrid


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


def _beside_centres(pixels: int, patches: int) -> Int[np.ndarray, " n"]:
    """The last pixel before and the first pixel after each patch centre, in whole numbers so that none is missed."""
    above = (2 * np.arange(patches) + 1) * pixels - patches
    below = -(-above // (2 * patches))
    return np.unique(np.clip((above // (2 * patches), below), 0, pixels - 1))


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
