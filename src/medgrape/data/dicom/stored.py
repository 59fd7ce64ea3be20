"""The numbers in a DICOM file, before they are greys."""

import cv2
import numpy as np
from jaxtyping import UInt8
from pydicom import Dataset
from pydicom.pixels.processing import apply_color_lut
from pydicom.uid import UID

from medgrape.data.dicom.values import first_number, rescale_of, whole_number
from medgrape.data.film import grey_range


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
