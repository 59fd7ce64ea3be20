"""From stored numbers to grey levels: rescale, then VOI LUT or window, then MONOCHROME1's inversion, in that order."""

from dataclasses import dataclass

import cv2
import numpy as np
from pydicom import Dataset
from pydicom.pixels.processing import apply_modality_lut, apply_voi_lut

from medgrape.data.film import FilmError, FilmFacts, Pixels, grey_range, refuse_constant, scaled


@dataclass(frozen=True)
class Window:
    """The stored values that become black and white, with straight grey between."""

    black: float
    white: float
    name: str


def grey_levels(dataset: Dataset, facts: FilmFacts, stored: np.ndarray) -> tuple[FilmFacts, Pixels]:
    """Stored values of a grey film as a person should see them."""
    if not np.isfinite(grey_range(stored)).all() or (stored.dtype.kind == "f" and not np.isfinite(stored).all()):
        raise FilmError("it holds values that are no numbers (NaN or infinity).")
    refuse_constant(stored)
    inverted = facts.photometric == "MONOCHROME1"
    bent = _bent(dataset, stored)
    if bent is None:
        window, facts = _window(dataset, facts, stored)
        grey = scaled(_narrow(stored, facts.bits), window.black, window.white, inverted=inverted)
        facts = facts.noting(applied=window.name)
    else:
        name, values = bent
        low, high = float(values.min()), float(values.max())
        grey = scaled(values, low, high, inverted=inverted)
        facts = facts.noting(applied=name)
    return (facts.noting(applied="MONOCHROME1 inverted") if inverted else facts), grey


def _narrow(stored: np.ndarray, bits: int) -> np.ndarray:
    """A type that OpenCV takes, with 8 bits kept only where the film has no more."""
    if stored.dtype == np.uint8 and bits <= 8:
        return stored
    if stored.dtype in (np.uint8, np.uint16, np.int16, np.float32):
        return stored.astype(np.uint16) if stored.dtype == np.uint8 else stored
    return stored.astype(np.float32)


def _bent(dataset: Dataset, stored: np.ndarray) -> tuple[str, np.ndarray] | None:
    """The values behind a lookup table or sigmoid, which no straight window can stand for; None where there is none.

    The curve is worked out once for each value that occurs, not for each pixel.
    """
    table = bool(dataset.get("VOILUTSequence"))
    sigmoid = str(dataset.get("VOILUTFunction", "LINEAR")) == "SIGMOID" and "WindowCenter" in dataset
    modality_table = bool(dataset.get("ModalityLUTSequence"))
    if not (table or sigmoid or modality_table) or stored.dtype.kind == "f":
        return None
    low, high = (int(edge) for edge in grey_range(stored))
    curve = apply_voi_lut(apply_modality_lut(np.arange(low, high + 1), dataset), dataset, prefer_lut=True)
    curve = np.asarray(curve, dtype=np.float32)
    if not np.isfinite(curve).all() or curve.min() == curve.max():
        raise FilmError("its lookup table makes every pixel the same, so there is nothing to read.")
    name = "VOI LUT" if table else "sigmoid window" if sigmoid else "modality LUT"
    return name, curve[stored.astype(np.intp) - low]


def _window(dataset: Dataset, facts: FilmFacts, stored: np.ndarray) -> tuple[Window, FilmFacts]:
    low, high = _grey_range_without_padding(dataset, stored)
    eight = stored.dtype == np.uint8
    full = (
        Window(0, 255, "8 bit greys as stored") if eight else Window(low, high, f"values {low:g} to {high:g} stretched")
    )
    asked = _asked_window(dataset)
    if asked is None:
        return full, facts
    if not np.isfinite((asked.black, asked.white)).all() or asked.white <= asked.black:
        return full, facts.noting(warning="its window makes no sense; all its values were shown instead")
    if asked.white <= low or asked.black >= high:
        return full, facts.noting(warning="its window shows none of its values; all were shown instead")
    return asked, facts


def _asked_window(dataset: Dataset) -> Window | None:
    """The header's first window, taken back through the rescale to stored values."""
    centre, width = _first(dataset, "WindowCenter"), _first(dataset, "WindowWidth")
    if centre is None or width is None:
        return None
    slope, intercept = _first(dataset, "RescaleSlope"), _first(dataset, "RescaleIntercept")
    slope, intercept = (1.0 if slope is None else slope), (0.0 if intercept is None else intercept)
    if slope <= 0:
        raise FilmError(f"its rescale slope is {slope:g}; it must be above 0.")
    exact = str(dataset.get("VOILUTFunction", "LINEAR")) == "LINEAR_EXACT"
    # DICOM PS3.3 C.11.2: LINEAR puts the centre between two values and counts both ends of the width.
    middle, half = (centre, width / 2) if exact else (centre - 0.5, max(width - 1, 1e-3) / 2)
    if width <= 0:
        half = -1.0
    black, white = ((edge - intercept) / slope for edge in (middle - half, middle + half))
    rescaled = "" if (slope, intercept) == (1.0, 0.0) else f"rescaled by {slope:g} and {intercept:+g}, "
    return Window(black, white, f"{rescaled}window {centre:g} / {width:g}")


def _first(dataset: Dataset, keyword: str) -> float | None:
    value = dataset.get(keyword)
    if value is None or value == "":
        return None
    return float(value[0]) if hasattr(value, "__len__") and not isinstance(value, str) else float(value)


def _grey_range_without_padding(dataset: Dataset, stored: np.ndarray) -> tuple[float, float]:
    padding = dataset.get("PixelPaddingValue")
    if padding is None:
        return grey_range(stored)
    inside = (stored != padding).astype(np.uint8)
    low, high, _, _ = cv2.minMaxLoc(stored, mask=inside)
    return (low, high) if high > low else grey_range(stored)
