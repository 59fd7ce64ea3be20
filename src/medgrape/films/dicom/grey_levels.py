"""From stored numbers to grey levels: rescale, then VOI LUT or window, then MONOCHROME1's inversion, in that order."""

from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float, UInt8
from pydicom import Dataset
from pydicom.pixels.processing import apply_color_lut
from pydicom.uid import UID

from medgrape.films.film import FilmError, FilmFacts, Pixels, grey_range, refuse_constant, stretch_greys

Values = Float[np.ndarray, " n"]


def first_number(dataset: Dataset, keyword: str) -> float | None:
    """Return the first number of an element, or None where there is none."""
    value = dataset.get(keyword)
    if isinstance(value, str) or not hasattr(value, "__len__"):
        return None if value in (None, "") else float(value)
    return float(value[0]) if len(value) > 0 else None


def whole_number(dataset: Dataset, keyword: str, default: int) -> int:
    """Return the first number of an element as an integer."""
    value = first_number(dataset, keyword)
    return default if value is None else int(value)


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
        """Return the stored number that means ``value``."""
        return (value - self.intercept) / self.slope


def rescale_of(dataset: Dataset) -> Rescale:
    """Return the header's rescale; refuse one that would make all pixels the same."""
    slope, intercept = first_number(dataset, "RescaleSlope"), first_number(dataset, "RescaleIntercept")
    rescale = Rescale(1.0 if slope is None else slope, 0.0 if intercept is None else intercept)
    if rescale.slope == 0 or not np.isfinite((rescale.slope, rescale.intercept)).all():
        raise FilmError(
            f"it cannot be {rescale}: every pixel would be the same; correct its header or export it again."
        )
    return rescale


@dataclass(frozen=True)
class Window:
    """The values that become black and white, with a straight line between; ``black`` may be the larger one."""

    black: float
    white: float
    name: str


def window_function(dataset: Dataset) -> str:
    """Return the header's VOI LUT function in capitals; empty where it has none."""
    return str(dataset.get("VOILUTFunction") or "").strip().upper()


def window_of(dataset: Dataset) -> Window | None:
    """Return the header's first window, in rescaled values (DICOM PS3.3 C.11.2)."""
    centre, width = first_number(dataset, "WindowCenter"), first_number(dataset, "WindowWidth")
    if centre is None or width is None:
        return None
    exact = window_function(dataset) == "LINEAR_EXACT"
    # LINEAR puts the centre between two values and counts both ends of the width.
    middle, half = (centre, width / 2) if exact else (centre - 0.5, (width - 1) / 2)
    if width >= 1 and half == 0:
        half = 1e-3  # a width of 1 is a step
    return Window(middle - half, middle + half, f"window {centre:g} / {width:g}")


@dataclass(frozen=True)
class LookupTable:
    """The table of a LUT sequence; values beyond its ends take its first or last entry."""

    first: int
    entries: Values
    top: float  # the largest output that its declared bits allow

    @classmethod
    def of(cls, item: Dataset, dataset: Dataset) -> "LookupTable":
        """Read the table of one item of a sequence."""
        count, first, bits = (int(number) for number in item.LUTDescriptor)
        count = count or 65536  # DICOM has no room for this count and writes 0
        if int(dataset.get("PixelRepresentation", 0) or 0) == 1 and first > 32767:
            first -= 65536
        data = item.LUTData
        if isinstance(data, bytes):
            data = np.frombuffer(data, "<u2" if len(data) >= 2 * count else np.uint8)
        entries = np.asarray(data, dtype=np.float64)[:count]
        return cls(first, entries, max(2.0**bits - 1, float(entries.max())))

    def __call__(self, values: Values) -> Values:
        """Return the entry of each value."""
        places = np.clip(np.rint(values) - self.first, 0, len(self.entries) - 1)
        return np.asarray(self.entries[places.astype(np.intp)])


def curve_through(dataset: Dataset, low: int, high: int) -> tuple[str, Values]:
    """Return what was applied, and the grey from 0 to 1 of every stored value from ``low`` to ``high``.

    The curve is computed once for each value that may occur, not for each pixel.
    """
    values = np.arange(low, high + 1, dtype=np.float64)
    if dataset.get("ModalityLUTSequence"):
        name, values = "modality LUT, ", LookupTable.of(dataset.ModalityLUTSequence[0], dataset)(values)
    else:
        rescale = rescale_of(dataset)
        name, values = f"{rescale}, " if rescale else "", rescale.slope * values + rescale.intercept
    if dataset.get("VOILUTSequence"):
        table = LookupTable.of(dataset.VOILUTSequence[0], dataset)
        return f"{name}VOI LUT", table(values) / table.top
    window = window_of(dataset)
    if window is None:
        return f"{name}values stretched", (values - values.min()) / max(float(np.ptp(values)), 1e-9)
    if str(dataset.get("VOILUTFunction", "")) == "SIGMOID":
        centre, width = first_number(dataset, "WindowCenter") or 0.0, first_number(dataset, "WindowWidth") or 1.0
        return f"{name}sigmoid {window.name}", 1 / (1 + np.exp(-4 * (values - centre) / width))
    return f"{name}{window.name}", np.clip((values - window.black) / (window.white - window.black), 0, 1)


def grey_values(dataset: Dataset) -> np.ndarray:
    """Return the stored numbers of a grey film, copied only where necessary.

    Old films hide overlays in the bits above those stored. pydicom clears them at the cost of two copies, so it is
    asked to only when a number is too large to be a grey.
    """
    bits, signed = whole_number(dataset, "BitsStored", 16), whole_number(dataset, "PixelRepresentation", 0)
    unused = whole_number(dataset, "HighBit", bits - 1) - (bits - 1)
    stored = _uncompressed_values(dataset, signed)
    if stored is None:
        dataset.pixel_array_options(view_only=True, correct_unused_bits=False)
        stored = np.asarray(dataset.pixel_array)
        stored = stored.astype(stored.dtype.newbyteorder("="), copy=False)
    if stored.dtype.kind in "ui" and unused > 0:
        # The greys do not begin at the lowest bit; the bits on either side are not part of them, the sign is.
        stored = (stored << (8 * stored.itemsize - unused - bits)) >> (8 * stored.itemsize - bits)
    elif stored.dtype.kind in "ui" and (stored.itemsize > 2 or not _fits(grey_range(stored), bits, signed)):
        dataset.pixel_array_options()
        stored = np.asarray(dataset.pixel_array)
    if stored.dtype not in (np.uint8, np.uint16, np.int16, np.float32):
        stored = stored.astype(np.float64)  # OpenCV cannot resize 32 bit integers, which are rare
    return _without_padding(dataset, stored)


def _uncompressed_values(dataset: Dataset, signed: int) -> np.ndarray | None:
    """The numbers of an uncompressed film, which needs no decoder; None where it does."""
    syntax, allocated = UID(str(dataset.file_meta.TransferSyntaxUID)), whole_number(dataset, "BitsAllocated", 0)
    if syntax.is_encapsulated or not syntax.is_little_endian or "PixelData" not in dataset or allocated not in (8, 16):
        return None
    rows, columns = int(dataset.Rows), int(dataset.Columns)
    kind = np.dtype(f"<{'i' if signed else 'u'}{allocated // 8}")
    return np.frombuffer(dataset.PixelData, kind, rows * columns).reshape(rows, columns)


def _fits(greys: tuple[float, float], bits: int, signed: int) -> bool:
    return greys[0] >= -(2.0 ** (bits - 1)) * signed and greys[1] < 2.0 ** (bits - signed)


def _without_padding(dataset: Dataset, stored: np.ndarray) -> np.ndarray:
    """The values with the padding around the film set to its darkest grey, so that it does not change the window."""
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
    """Return a colour film's channels in 8 bits, palettes looked up."""
    stored = np.asarray(dataset.pixel_array)
    if dataset.PhotometricInterpretation == "PALETTE COLOR":
        stored = apply_color_lut(stored, dataset)
    if stored.dtype != np.uint8:
        top = float(stored.max()) or 1.0
        stored = (stored * (255.0 / top)).astype(np.uint8)
    return np.ascontiguousarray(stored)


def grey_levels(dataset: Dataset, facts: FilmFacts, stored: np.ndarray) -> tuple[FilmFacts, Pixels]:
    """Return the greys of a film as they should be displayed."""
    if stored.dtype.kind == "f" and not np.isfinite(stored).all():
        raise FilmError("it holds values that are no numbers (NaN or infinity).")
    refuse_constant(stored)
    inverted = facts.photometric == "MONOCHROME1"
    sigmoid = str(dataset.get("VOILUTFunction", "")) == "SIGMOID" and window_of(dataset) is not None
    curved = sigmoid or bool(dataset.get("ModalityLUTSequence")) or bool(dataset.get("VOILUTSequence"))
    apply = _curved_greys if curved and stored.dtype.kind in "ui" else _straight_greys
    facts, grey = apply(dataset, facts, stored, inverted)
    return (facts.noting(applied="MONOCHROME1 inverted") if inverted else facts), grey


def _curved_greys(dataset: Dataset, facts: FilmFacts, stored: np.ndarray, inverted: bool) -> tuple[FilmFacts, Pixels]:
    low, high = (int(edge) for edge in grey_range(stored))
    name, curve = curve_through(dataset, low, high)
    if not np.isfinite(curve).all():
        raise FilmError("its lookup table or window gives no numbers; correct its header or export it again.")
    table = np.rint(65535 * np.clip(1 - curve if inverted else curve, 0, 1)).astype(np.uint16)
    grey = table[stored.astype(np.intp) - low]
    refuse_constant(grey)
    return facts.noting(applied=name), grey


def _straight_greys(dataset: Dataset, facts: FilmFacts, stored: np.ndarray, inverted: bool) -> tuple[FilmFacts, Pixels]:
    rescale = rescale_of(dataset)
    window, facts = _stored_window(dataset, facts, stored, rescale)
    falling = window.black > window.white  # a negative slope: large stored numbers are dark
    low, high = sorted((window.black, window.white))
    grey = stretch_greys(stored, low, high, inverted=inverted != falling)
    return facts.noting(applied=f"{rescale}, {window.name}" if rescale else window.name), grey


def _stored_window(
    dataset: Dataset, facts: FilmFacts, stored: np.ndarray, rescale: Rescale
) -> tuple[Window, FilmFacts]:
    """The header's window in stored values, or one that shows all of them.

    8 bit films without a window are shown as they are stored, deeper ones from their darkest value to their brightest.
    """
    low, high = grey_range(stored)
    if stored.dtype == np.uint8:
        black, white, name = 0.0, 2.0**facts.bits - 1, f"{facts.bits} bit greys as stored"
    else:
        black, white, name = low, high, f"values {low:g} to {high:g} stretched"
    full = Window(black, white, name) if rescale.slope > 0 else Window(white, black, name)
    window = window_of(dataset)
    if window is None:
        return full, facts
    if not window.black < window.white:  # NaN included
        return full, facts.noting(warning="its window makes no sense; all its values were shown instead")
    black, white = rescale.undone(window.black), rescale.undone(window.white)
    if max(black, white) <= low or min(black, white) >= high:
        return full, facts.noting(warning="its window shows none of its values; all were shown instead")
    return Window(black, white, window.name), facts
