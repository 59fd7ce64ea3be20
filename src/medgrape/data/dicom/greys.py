"""From stored numbers to grey levels: rescale, then VOI LUT or window, then MONOCHROME1's inversion, in that order."""

import numpy as np
from pydicom import Dataset

from medgrape.data.dicom.curves import curve_through, has_curve
from medgrape.data.dicom.values import Rescale, Window, rescale_of, window_of
from medgrape.data.film import FilmError, FilmFacts, Pixels, grey_range, refuse_constant, scaled


def grey_levels(dataset: Dataset, facts: FilmFacts, stored: np.ndarray) -> tuple[FilmFacts, Pixels]:
    """Stored values of a grey film as a person should see them."""
    if stored.dtype.kind == "f" and not np.isfinite(stored).all():
        raise FilmError("it holds values that are no numbers (NaN or infinity).")
    refuse_constant(stored)
    inverted = facts.photometric == "MONOCHROME1"
    bent = has_curve(dataset) and stored.dtype.kind in "ui"
    facts, grey = (_bent if bent else _straight)(dataset, facts, stored, inverted)
    return (facts.noting(applied="MONOCHROME1 inverted") if inverted else facts), grey


def _bent(dataset: Dataset, facts: FilmFacts, stored: np.ndarray, inverted: bool) -> tuple[FilmFacts, Pixels]:
    low, high = (int(edge) for edge in grey_range(stored))
    name, curve = curve_through(dataset, low, high)
    if not np.isfinite(curve).all():
        raise FilmError("its lookup table or window gives no numbers; correct its header or export it again.")
    table = np.rint(65535 * np.clip(1 - curve if inverted else curve, 0, 1)).astype(np.uint16)
    grey = table[stored.astype(np.intp) - low]
    refuse_constant(grey)
    return facts.noting(applied=name), grey


def _straight(dataset: Dataset, facts: FilmFacts, stored: np.ndarray, inverted: bool) -> tuple[FilmFacts, Pixels]:
    rescale = rescale_of(dataset)
    window, facts = _window(dataset, facts, stored, rescale)
    falling = window.black > window.white  # a negative slope: what is stored large is dark
    low, high = sorted((window.black, window.white))
    grey = scaled(stored, low, high, inverted=inverted != falling)
    return facts.noting(applied=f"{rescale}, {window.name}" if rescale else window.name), grey


def _window(dataset: Dataset, facts: FilmFacts, stored: np.ndarray, rescale: Rescale) -> tuple[Window, FilmFacts]:
    """The header's window in stored values, or one that shows all of them."""
    full = _all_values(facts, stored, rescale)
    asked = window_of(dataset)
    if asked is None:
        return full, facts
    if not asked.black < asked.white:  # NaN included
        return full, facts.noting(warning="its window makes no sense; all its values were shown instead")
    black, white = rescale.undone(asked.black), rescale.undone(asked.white)
    low, high = grey_range(stored)
    if max(black, white) <= low or min(black, white) >= high:
        return full, facts.noting(warning="its window shows none of its values; all were shown instead")
    return Window(black, white, asked.name), facts


def _all_values(facts: FilmFacts, stored: np.ndarray, rescale: Rescale) -> Window:
    """8 bit films are shown as they are stored, deeper ones from their darkest value to their brightest."""
    if stored.dtype == np.uint8:
        low, high, name = 0.0, 2.0**facts.bits - 1, f"{facts.bits} bit greys as stored"
    else:
        low, high = grey_range(stored)
        name = f"values {low:g} to {high:g} stretched"
    return Window(low, high, name) if rescale.slope > 0 else Window(high, low, name)
