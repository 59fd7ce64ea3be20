"""Making stored pixels fewer before anything is worked out for each of them."""

import io
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import cv2
import numpy as np
from jaxtyping import UInt8, UInt16
from PIL import Image

from medgrape.config import FilmLimits
from medgrape.errors import UserError
from medgrape.geometry import FilmSize

Pixels = UInt8[np.ndarray, "height width"] | UInt16[np.ndarray, "height width"]
FRONTAL_VIEWS = ("PA", "AP")


class FilmError(UserError):
    """A file that is refused, with the reason."""

    def about(self, path: Path) -> "FilmError":
        """The same reason, with the file it is about."""
        return FilmError(f"{path}: {self}")


@dataclass(frozen=True)
class FilmFacts:
    """What a film is, and what was done to make it upright and grey."""

    format: str
    """PNG, JPEG or DICOM."""
    size: FilmSize
    """Of the upright film, in its original pixels: the frame of every box."""
    bits: int
    """Stored bits per sample."""
    photometric: str
    """DICOM's term, or Pillow's name for the pixel layout."""
    transfer_syntax: str | None = None
    modality: str | None = None
    view: str | None = None
    laterality: str | None = None
    spacing: tuple[float, float] | None = None
    """Millimetres between rows and between columns."""
    applied: tuple[str, ...] = ()
    """What was done to the stored pixels, in order."""
    warnings: tuple[str, ...] = ()
    """What a reader should know before trusting the film."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "FilmFacts":
        """The inverse of ``to_json``."""
        spacing = data["spacing"]
        return cls(
            **data
            | {
                "size": FilmSize(**data["size"]),
                "spacing": None if spacing is None else (spacing[0], spacing[1]),
                "applied": tuple(data["applied"]),
                "warnings": tuple(data["warnings"]),
            }
        )

    def noting(self, *, applied: str | None = None, warning: str | None = None) -> "FilmFacts":
        """The same facts with one more thing done or one more warning."""
        done = self.applied if applied is None else (*self.applied, applied)
        warned = self.warnings if warning is None else (*self.warnings, warning)
        return replace(self, applied=done, warnings=warned)


@dataclass(frozen=True)
class Stance:
    """How large a film is once it stands upright, and whether it had to be turned for that."""

    size: FilmSize
    turned: bool


@dataclass(frozen=True)
class Film:
    """Upright, grey, bright where the patient is dense; 8 bit stays 8 bit, all else fills 16 bit."""

    facts: FilmFacts
    pixels: Pixels = field(repr=False)


class FilmLaterOn(Film):
    """A film whose facts are known and whose pixels are fetched when somebody looks at them."""

    def __init__(self, facts: FilmFacts, fetch: Callable[[], Pixels]) -> None:
        object.__setattr__(self, "facts", facts)
        object.__setattr__(self, "_fetch", fetch)

    @cached_property
    def pixels(self) -> Pixels:
        """Fetched once."""
        fetch: Callable[[], Pixels] = object.__getattribute__(self, "_fetch")
        return fetch()


def eight_bit(pixels: Pixels) -> UInt8[np.ndarray, "height width"]:
    """As a screen shows it."""
    if pixels.dtype == np.uint8:
        return pixels
    return np.asarray(cv2.convertScaleAbs(pixels, alpha=255.0 / 65535.0))


def file_size(file: BinaryIO) -> int:
    """Bytes in an open file, which is left at its start."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    return size


def check_cost(size: FilmSize, unpacked: int, packed: int, limits: FilmLimits) -> None:
    """Refuse what would unpack to more than a film can be."""
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
    """Darkest and brightest value, in one pass."""
    low, high, _, _ = cv2.minMaxLoc(pixels)
    return low, high


def refuse_constant(pixels: np.ndarray) -> None:
    """A film whose every pixel is the same shows nothing; it is refused."""
    low, high = grey_range(pixels)
    if low == high:
        raise FilmError(f"every pixel has the same value ({low:g}), so there is nothing to read.")


def scaled(pixels: np.ndarray, low: float, high: float, *, inverted: bool = False) -> Pixels:
    """``low`` to ``high`` stretched over all 8 or 16 bits, values beyond cut off, perhaps turned to its negative."""
    eight = pixels.dtype == np.uint8
    top = 255.0 if eight else 65535.0
    slope = top / (high - low)
    gain, offset = (-slope, high * slope) if inverted else (slope, -low * slope)
    depth = cv2.CV_8U if eight else cv2.CV_16U
    return np.asarray(cv2.addWeighted(pixels, gain, pixels, 0.0, offset, dtype=depth))


@dataclass(frozen=True)
class Shrink:
    """Averages of 2 x 2 pixels, again and again, as long as neither side falls below ``side``; None keeps them all."""

    side: int | None = None

    def __call__(self, pixels: np.ndarray) -> np.ndarray:
        """The pixels that are left."""
        height, width = pixels.shape[:2]
        while self.side is not None and min(height, width) >= 2 * self.side:
            height, width = height // 2, width // 2
            # An odd last row or column cannot be halved; resizing by area spreads it over the others.
            pixels = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
        return pixels

    def before_decoding(self, picture: Image.Image) -> None:
        """JPEG can leave out the finest frequencies while it decodes, which is the same average for less work."""
        if self.side is not None:
            picture.draft(picture.mode, (self.side, self.side))


AS_STORED = Shrink()
