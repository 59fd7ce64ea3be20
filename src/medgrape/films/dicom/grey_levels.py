"""From stored numbers to grey levels: rescale, then VOI LUT or window, then MONOCHROME1's inversion, in that order."""

from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float, UInt8
from pydicom import Dataset
from pydicom.pixels.processing import apply_color_lut
from pydicom.uid import UID

from medgrape.films.film import FilmError, FilmFacts, Pixels, grey_range, refuse_constant, scaled


def first_number(dataset: Dataset, keyword: str) -> float | None:
    """The first number of an entry, or None where there is none."""
    value = dataset.get(keyword)
    if isinstance(value, str) or not hasattr(value, "__len__"):
        return None if value in (None, "") else float(value)
    return float(value[0]) if len(value) > 0 else None


def whole_number(dataset: Dataset, keyword: str, absent: int) -> int:
    """The first number of an entry as a whole one."""
    value = first_number(dataset, keyword)
    return absent if value is None else int(value)


@dataclass(frozen=True)
class Rescale:
    """What stored numbers mean: ``slope * stored + intercept``."""

    slope: float
    intercept: float

    def __str__(self) -> str:
        return f"rescaled by {self.slope:g} and {self.intercept:+g}"

    def __bool__(self) -> bool:
        return (self.slope, self.intercept) != (1.0, 0.0)

    def undone(self, value: float) -> float:
        """The stored number that means ``value``."""
        return (value - self.intercept) / self.slope


def rescale_of(dataset: Dataset) -> Rescale:
    """The header's rescale; one that would make all pixels alike is refused."""
    slope, intercept = first_number(dataset, "RescaleSlope"), first_number(dataset, "RescaleIntercept")
    rescale = Rescale(1.0 if slope is None else slope, 0.0 if intercept is None else intercept)
    if rescale.slope == 0 or not np.isfinite((rescale.slope, rescale.intercept)).all():
        raise FilmError(
            f"it cannot be {rescale}: every pixel would be the same; correct its header or export it again."
        )
    return rescale


@dataclass(frozen=True)
class Window:
    """The values that become black and white, with straight grey between; ``black`` may be the larger one."""

    black: float
    white: float
    name: str


def window_function(dataset: Dataset) -> str:
    """What the header says of the way from black to white, in capitals; empty where it says nothing."""
    return str(dataset.get("VOILUTFunction") or "").strip().upper()


def window_of(dataset: Dataset) -> Window | None:
    """The header's first window, in rescaled values; DICOM PS3.3 C.11.2."""
    centre, width = first_number(dataset, "WindowCenter"), first_number(dataset, "WindowWidth")
    if centre is None or width is None:
        return None
    exact = window_function(dataset) == "LINEAR_EXACT"
    # LINEAR puts the centre between two values and counts both ends of the width.
    middle, half = (centre, width / 2) if exact else (centre - 0.5, (width - 1) / 2)
    if width >= 1 and half == 0:
        half = 1e-3  # a width of 1 is a step
    return Window(middle - half, middle + half, f"window {centre:g} / {width:g}")


Values = Float[np.ndarray, " n"]


@dataclass(frozen=True)
class LookupTable:
    """What a LUT sequence holds; values before its first and behind its last entry take those."""

    first: int
    entries: Values
    top: float
    """The largest output that its declared bits allow."""

    def __call__(self, values: Values) -> Values:
        """The entry of each value."""
        places = np.clip(np.rint(values) - self.first, 0, len(self.entries) - 1)
        return np.asarray(self.entries[places.astype(np.intp)])


def has_curve(dataset: Dataset) -> bool:
    """Whether the header asks for more than a rescale and a straight window."""
    sigmoid = str(dataset.get("VOILUTFunction", "")) == "SIGMOID" and window_of(dataset) is not None
    return sigmoid or bool(dataset.get("ModalityLUTSequence")) or bool(dataset.get("VOILUTSequence"))


def curve_through(dataset: Dataset, low: int, high: int) -> tuple[str, Values]:
    """What was applied, and the grey from 0 to 1 of every stored value from ``low`` to ``high``.

    The curve is worked out once for each value that may occur, not for each pixel.
    """
    name, values = _rescaled(dataset, np.arange(low, high + 1, dtype=np.float64))
    if dataset.get("VOILUTSequence"):
        table = _table(dataset.VOILUTSequence[0], dataset)
        return f"{name}VOI LUT", table(values) / table.top
    window = window_of(dataset)
    if window is None:
        return f"{name}values stretched", (values - values.min()) / max(float(np.ptp(values)), 1e-9)
    if str(dataset.get("VOILUTFunction", "")) == "SIGMOID":
        centre, width = first_number(dataset, "WindowCenter") or 0.0, first_number(dataset, "WindowWidth") or 1.0
        return f"{name}sigmoid {window.name}", 1 / (1 + np.exp(-4 * (values - centre) / width))
    return f"{name}{window.name}", np.clip((values - window.black) / (window.white - window.black), 0, 1)


def _rescaled(dataset: Dataset, stored: Values) -> tuple[str, Values]:
    if dataset.get("ModalityLUTSequence"):
        return "modality LUT, ", _table(dataset.ModalityLUTSequence[0], dataset)(stored)
    rescale = rescale_of(dataset)
    return f"{rescale}, " if rescale else "", rescale.slope * stored + rescale.intercept


def _table(item: Dataset, dataset: Dataset) -> LookupTable:
    count, first, bits = (int(number) for number in item.LUTDescriptor)
    count = count or 65536  # DICOM has no room for this count and writes 0
    if int(dataset.get("PixelRepresentation", 0) or 0) == 1 and first > 32767:
        first -= 65536
    data = item.LUTData
    if isinstance(data, bytes):
        data = np.frombuffer(data, "<u2" if len(data) >= 2 * count else np.uint8)
    entries = np.asarray(data, dtype=np.float64)[:count]
    return LookupTable(first, entries, max(2.0**bits - 1, float(entries.max())))


def grey_values(dataset: Dataset) -> np.ndarray:
    """A grey film's numbers, copied only where there is a need to.

    Old films hide overlays in the bits above those stored; pydicom clears them at the cost of two copies, so it is
    asked to only when a number is too large to be a grey.
    """
    bits, signed = whole_number(dataset, "BitsStored", 16), whole_number(dataset, "PixelRepresentation", 0)
    unused = whole_number(dataset, "HighBit", bits - 1) - (bits - 1)
    stored = _bytes_as_numbers(dataset, signed)
    if stored is None:
        dataset.pixel_array_options(view_only=True, correct_unused_bits=False)
        stored = np.asarray(dataset.pixel_array)
        stored = stored.astype(stored.dtype.newbyteorder("="), copy=False)
    if stored.dtype.kind in "ui" and unused > 0:
        # The greys do not begin at the lowest bit; bits on either side of them are none, and the sign is their own.
        stored = (stored << (8 * stored.itemsize - unused - bits)) >> (8 * stored.itemsize - bits)
    elif stored.dtype.kind in "ui" and _exceeds(stored, bits, signed):
        dataset.pixel_array_options()
        stored = np.asarray(dataset.pixel_array)
    # 32 bit integers are rare; OpenCV has no resizing for them.
    known = stored if stored.dtype in (np.uint8, np.uint16, np.int16, np.float32) else stored.astype(np.float64)
    return _without_padding(dataset, known)


def _bytes_as_numbers(dataset: Dataset, signed: int) -> np.ndarray | None:
    """An uncompressed film needs no decoder; None where it does."""
    syntax, allocated = UID(str(dataset.file_meta.TransferSyntaxUID)), whole_number(dataset, "BitsAllocated", 0)
    if syntax.is_encapsulated or not syntax.is_little_endian or "PixelData" not in dataset or allocated not in (8, 16):
        return None
    rows, columns = int(dataset.Rows), int(dataset.Columns)
    kind = np.dtype(f"<{'i' if signed else 'u'}{allocated // 8}")
    return np.frombuffer(dataset.PixelData, kind, rows * columns).reshape(rows, columns)


def _exceeds(stored: np.ndarray, bits: int, signed: int) -> bool:
    if stored.itemsize > 2:
        return True
    low, high = grey_range(stored)
    return bool(low < -(2 ** (bits - 1)) * signed or high >= 2 ** (bits - signed))


def _without_padding(dataset: Dataset, stored: np.ndarray) -> np.ndarray:
    """Padding around the film becomes its darkest grey: it must neither darken the rest nor shine."""
    value = first_number(dataset, "PixelPaddingValue")
    if value is None:
        return stored
    limit = first_number(dataset, "PixelPaddingRangeLimit")
    ends = sorted((value, value if limit is None else limit))
    padding = (stored >= ends[0]) & (stored <= ends[1])
    if not padding.any() or padding.all():
        return stored
    low, high, _, _ = cv2.minMaxLoc(stored, mask=(~padding).astype(np.uint8))
    dark_is_high = (dataset.PhotometricInterpretation == "MONOCHROME1") != (rescale_of(dataset).slope < 0)
    return np.where(padding, np.asarray(high if dark_is_high else low, stored.dtype), stored)


def colour_values(dataset: Dataset) -> UInt8[np.ndarray, "height width 3"]:
    """A colour film's channels in 8 bits, palettes looked up."""
    stored = np.asarray(dataset.pixel_array)
    if dataset.PhotometricInterpretation == "PALETTE COLOR":
        stored = apply_color_lut(stored, dataset)
    if stored.dtype != np.uint8:
        top = float(stored.max()) or 1.0
        stored = (stored * (255.0 / top)).astype(np.uint8)
    return np.ascontiguousarray(stored)


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
