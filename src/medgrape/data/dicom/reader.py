"""A DICOM file's bytes as a film."""

import io
import zlib
from typing import BinaryIO

import numpy as np
from pydicom import Dataset, dcmread
from pydicom.filereader import read_dataset
from pydicom.pixels.processing import apply_color_lut
from pydicom.uid import DeflatedExplicitVRLittleEndian

from medgrape.config import FilmLimits
from medgrape.data.dicom.greys import grey_levels
from medgrape.data.dicom.header import (
    check_pixels,
    facts_from,
    name_transfer_syntax,
    read_layout,
    refuse_other_examinations,
)
from medgrape.data.dicom.orientation import turn_upright
from medgrape.data.film import Film, FilmError, file_size, grey_range, refuse_constant
from medgrape.data.picture import grey_from_colour
from medgrape.data.shrinking import AS_STORED, Shrink

_PREAMBLE = 128
_LONGEST_META = 65536


def read_dicom(file: BinaryIO, limits: FilmLimits, shrink: Shrink = AS_STORED) -> Film:
    """The film in a DICOM file, its stored pixels shrunk first."""
    _check_deflated(file, limits)
    dataset = dcmread(file, force=True)
    name_transfer_syntax(dataset)
    refuse_other_examinations(dataset)
    layout = read_layout(dataset)
    check_pixels(dataset, layout, limits)
    facts = facts_from(dataset, layout)
    stored = shrink(_stored_pixels(dataset))
    if layout.samples == 3 or layout.photometric == "PALETTE COLOR":
        film = grey_from_colour(facts, _colours(dataset, stored))
        facts, grey = film.facts, film.pixels
        refuse_constant(grey)
    else:
        facts, grey = grey_levels(dataset, facts, stored)
    return Film(*turn_upright(dataset, facts, grey))


def _stored_pixels(dataset: Dataset) -> np.ndarray:
    """The numbers in the file, copied only where there is a need to.

    Old films hide overlays in the bits above those stored; pydicom clears them at the cost of two copies, so it is
    asked to only when a number is too large to be a grey.
    """
    bits, signed = int(dataset.get("BitsStored", 16)), int(dataset.get("PixelRepresentation", 0))
    dataset.pixel_array_options(view_only=True, correct_unused_bits=False)
    stored = np.asarray(dataset.pixel_array)
    if stored.dtype.kind in "ui":
        low, high = grey_range(stored.reshape(stored.shape[0], -1)) if stored.itemsize <= 2 else (0, 2.0**64)
        if low < -(2 ** (bits - 1)) * signed or high >= 2 ** (bits - signed):
            dataset.pixel_array_options()
            stored = np.asarray(dataset.pixel_array)
    # 32 bit integers are rare; OpenCV has no resizing for them.
    return stored if stored.dtype in (np.uint8, np.uint16, np.int16, np.float32) else stored.astype(np.float64)


def _colours(dataset: Dataset, stored: np.ndarray) -> np.ndarray:
    if dataset.PhotometricInterpretation == "PALETTE COLOR":
        stored = apply_color_lut(stored, dataset)
    if stored.dtype != np.uint8:
        top = float(stored.max()) or 1.0
        stored = (stored * (255.0 / top)).astype(np.uint8)
    return np.ascontiguousarray(stored)


def _check_deflated(file: BinaryIO, limits: FilmLimits) -> None:
    """pydicom inflates such a file whole while opening it, so what comes out is measured first."""
    size = file_size(file)
    start = file.read(_PREAMBLE + 4 + _LONGEST_META)
    file.seek(0)
    if start[_PREAMBLE : _PREAMBLE + 4] != b"DICM":
        return
    after_mark = io.BytesIO(start[_PREAMBLE + 4 :])
    meta = read_dataset(after_mark, False, True, stop_when=lambda tag, _vr, _length: tag.group != 2)
    if meta.get("TransferSyntaxUID") != DeflatedExplicitVRLittleEndian:
        return
    file.seek(_PREAMBLE + 4 + after_mark.tell())
    inflater, unpacked, packed = zlib.decompressobj(-zlib.MAX_WBITS), 0, file.read()
    file.seek(0)
    while packed and not inflater.eof:
        unpacked += len(inflater.decompress(packed, 2**20))
        packed = inflater.unconsumed_tail
        if unpacked > limits.max_bytes or unpacked > limits.max_ratio * size:
            raise FilmError("it unpacks to far more than its size; it looks like a bomb.")
