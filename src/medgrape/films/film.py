"""A film in memory: upright grey pixels and the facts about the file they came from."""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import cv2
import numpy as np
from jaxtyping import UInt8, UInt16

from medgrape.config import FilmLimits
from medgrape.errors import UserError
from medgrape.geometry import FilmSize
from medgrape.records import Record

Pixels = UInt8[np.ndarray, "height width"] | UInt16[np.ndarray, "height width"]
FRONTAL_VIEWS = ("PA", "AP")
DAMAGED = "it is damaged or cut short; export it again."
COLOUR_TOLERANCE = 12  # grey levels by which JPEG's colour noise may make the channels of a grey film differ


class FilmError(UserError):
    """A file that is refused, with the reason."""

    def about(self, path: Path) -> "FilmError":
        """Return the same error with the file's path in front."""
        return FilmError(f"{path}: {self}")


class FilmFacts(Record):
    """Properties of a film's file, and what was done to its pixels to make them upright and grey."""

    format: str  # PNG, JPEG or DICOM
    size: FilmSize  # size of the upright film in its original pixels: the frame of every box
    bits: int  # stored bits per sample
    photometric: str  # DICOM's photometric interpretation, or Pillow's name for the pixel layout
    transfer_syntax: str | None = None
    modality: str | None = None
    view: str | None = None
    laterality: str | None = None
    spacing: tuple[float, float] | None = None  # millimetres between rows and between columns
    applied: tuple[str, ...] = ()  # what was done to the stored pixels, in order
    warnings: tuple[str, ...] = ()  # what a reader should know before trusting the film

    def noting(self, *, applied: str | None = None, warning: str | None = None) -> "FilmFacts":
        """Return the same facts with one more step applied or one more warning."""
        steps = self.applied if applied is None else (*self.applied, applied)
        warnings = self.warnings if warning is None else (*self.warnings, warning)
        return self.model_copy(update={"applied": steps, "warnings": warnings})


@dataclass(frozen=True)
class UprightSize:
    """Size of a film once it is upright."""

    size: FilmSize
    turned: bool  # whether the stored pixels must be turned or mirrored for that


@dataclass(frozen=True)
class Film:
    """An upright grey film, bright where the patient is dense; 8 bit stays 8 bit, all else fills 16 bit."""

    facts: FilmFacts
    pixels: Pixels = field(repr=False)


class LazyFilm(Film):
    """A film whose facts are known and whose pixels are fetched when they are first used."""

    def __init__(self, facts: FilmFacts, fetch: Callable[[], Pixels]) -> None:
        vars(self).update(facts=facts, _fetch=fetch)

    @cached_property
    def pixels(self) -> Pixels:
        """The pixels."""
        fetch: Callable[[], Pixels] = vars(self)["_fetch"]
        return fetch()


def eight_bit(pixels: Pixels) -> UInt8[np.ndarray, "height width"]:
    """Return the pixels in 8 bits, as a screen shows them."""
    if pixels.dtype == np.uint8:
        return pixels
    return np.asarray(cv2.convertScaleAbs(pixels, alpha=255.0 / 65535.0))


def grey_from_colour(facts: FilmFacts, colours: UInt8[np.ndarray, "height width 3"]) -> Film:
    """Return a film from three channels; a true colour picture is accepted with a warning."""
    grey = np.asarray(cv2.cvtColor(colours, cv2.COLOR_RGB2GRAY))
    return Film(with_colour_warning(facts.noting(applied="three channels made grey"), colours), grey)


def with_colour_warning(facts: FilmFacts, colours: np.ndarray) -> FilmFacts:
    """Return the facts with a warning where channels of up to 255 differ by more than JPEG's noise."""
    sample = colours[::4, ::4].astype(np.int16)
    spread = sample.max(axis=2) - sample.min(axis=2)
    if np.percentile(spread, 99) <= COLOUR_TOLERANCE:
        return facts
    return facts.noting(warning="this is a colour picture, perhaps a photograph of a film; it was made grey")


def file_size(file: BinaryIO) -> int:
    """Return the number of bytes in an open file, and go to its start."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    return size


def check_limits(size: FilmSize, unpacked: int, packed: int, limits: FilmLimits) -> None:
    """Refuse a film that has too many pixels or unpacks to too many bytes."""
    if size.pixels > limits.max_pixels:
        raise FilmError(
            f"it has {size} pixels, more than the limit of {limits.max_pixels:,}; if it is right, "
            "raise --max-pixels or limits.max_pixels."
        )
    if unpacked > limits.max_ratio * packed:
        raise FilmError(
            f"it unpacks to {unpacked / max(packed, 1):,.0f} times its size, more than the limit of "
            f"{limits.max_ratio:g}; if it is right, raise --max-ratio or limits.max_ratio."
        )


def grey_range(pixels: np.ndarray) -> tuple[float, float]:
    """Return the smallest and the largest value."""
    low, high, _, _ = cv2.minMaxLoc(pixels)
    return low, high


def refuse_constant(pixels: np.ndarray) -> None:
    """Refuse a film whose pixels are all the same."""
    low, high = grey_range(pixels)
    if low == high:
        raise FilmError(f"every pixel has the same value ({low:g}), so there is nothing to read.")


def stretch_greys(pixels: np.ndarray, low: float, high: float, *, inverted: bool = False) -> Pixels:
    """Map ``low`` to ``high`` onto all 8 or 16 bits, clip the values beyond, and perhaps invert."""
    is_eight_bit = pixels.dtype == np.uint8
    slope = (255.0 if is_eight_bit else 65535.0) / (high - low)
    gain, offset = (-slope, high * slope) if inverted else (slope, -low * slope)
    depth = cv2.CV_8U if is_eight_bit else cv2.CV_16U
    return np.asarray(cv2.addWeighted(pixels, gain, pixels, 0.0, offset, dtype=depth))


def halved(pixels: np.ndarray, side: int | None) -> np.ndarray:
    """Halve pixels by averages of 2 x 2 while no side falls below ``side``; None keeps all pixels.

    It runs before anything else is computed per pixel.
    """
    height, width = pixels.shape[:2]
    while side is not None and min(height, width) >= 2 * side:
        height, width = height // 2, width // 2
        # An odd last row or column cannot be halved; resizing by area spreads it over the others.
        pixels = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
    return pixels
