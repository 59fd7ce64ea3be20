"""PNG and JPEG films."""

import warnings
from typing import BinaryIO

import cv2
import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps

from medgrape.config import FilmLimits
from medgrape.data.film import Film, FilmError, FilmFacts, check_cost, file_size, grey_range, refuse_constant, scaled
from medgrape.data.shrinking import AS_STORED, Shrink
from medgrape.geometry import FilmSize

COLOUR_TOLERANCE = 12
"""Grey levels by which JPEG's own colour noise may part the channels of a grey film."""

_ORIENTATION = 0x0112
_ON_ITS_SIDE = {5, 6, 7, 8}
_SIXTEEN_BIT = {"I;16", "I;16B", "I;16L", "I"}


def read_picture(file: BinaryIO, limits: FilmLimits, shrink: Shrink = AS_STORED) -> Film:
    """The film in a PNG or JPEG file, its stored pixels shrunk first."""
    with warnings.catch_warnings():
        # Pillow warns of large pictures; our own limits decide, and a warning must not depend on who listens.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        picture = _opened(file)
        _check_header(picture, file_size(file), limits)
        size, turned = _upright_size(picture), picture.getexif().get(_ORIENTATION, 1) != 1
        shrink.before_decoding(picture)
        upright = ImageOps.exif_transpose(picture) if turned else picture
    facts = FilmFacts(_format(picture), size, 16 if picture.mode in _SIXTEEN_BIT else 8, picture.mode)
    if turned:
        facts = facts.noting(applied="turned upright as its EXIF orientation says")
    film = _sixteen_bit(facts, upright, shrink) if picture.mode in _SIXTEEN_BIT else _eight_bit(facts, upright, shrink)
    refuse_constant(film.pixels)
    return film


def picture_size(file: BinaryIO) -> FilmSize:
    """How large a picture is once it stands upright, without unpacking it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        return _upright_size(_opened(file))


def _upright_size(picture: Image.Image) -> FilmSize:
    width, height = picture.size
    lying = picture.getexif().get(_ORIENTATION, 1) in _ON_ITS_SIDE
    return FilmSize(height, width) if lying else FilmSize(width, height)


def _opened(file: BinaryIO) -> Image.Image:
    try:
        return Image.open(file, formats=("PNG", "JPEG"))
    except Image.DecompressionBombError as error:
        raise FilmError("it has far more pixels than any film.") from error


def _format(picture: Image.Image) -> str:
    return "PNG" if picture.format == "PNG" else "JPEG"  # a phone's MPO is a JPEG with more behind it


def _check_header(picture: Image.Image, file_bytes: int, limits: FilmLimits) -> None:
    if getattr(picture, "n_frames", 1) > 1 and picture.format == "PNG":
        raise FilmError(f"it has {getattr(picture, 'n_frames', 1)} frames; a film has one.")
    if picture.mode == "1":
        raise FilmError("it has 1 bit per pixel; a film has 8 to 16.")
    unpacked = FilmSize(*picture.size).pixels * len(picture.getbands())
    unpacked *= 2 if picture.mode in _SIXTEEN_BIT else 1
    check_cost(FilmSize(*picture.size), unpacked, file_bytes, limits)


def _sixteen_bit(facts: FilmFacts, picture: Image.Image, shrink: Shrink) -> Film:
    stored = np.asarray(picture)
    if stored.dtype != np.uint16:
        stored = np.clip(stored, 0, 65535).astype(np.uint16)
    stored = shrink(stored)
    refuse_constant(stored)
    low, high = grey_range(stored)
    done = facts.noting(applied=f"grey levels {low:g} to {high:g} stretched over 16 bit")
    return Film(done, scaled(stored, low, high))


def _eight_bit(facts: FilmFacts, picture: Image.Image, shrink: Shrink) -> Film:
    if picture.mode == "L":
        return Film(facts, shrink(np.asarray(picture)))
    colours = shrink(np.asarray(picture.convert("RGB")))
    if picture.mode in ("LA", "RGBA", "PA"):
        facts = facts.noting(applied="transparency ignored")
    return grey_from_colour(facts, colours)


def grey_from_colour(facts: FilmFacts, colours: UInt8[np.ndarray, "height width 3"]) -> Film:
    """A film stored with three channels; a true colour picture is taken, with a warning."""
    grey = np.asarray(cv2.cvtColor(colours, cv2.COLOR_RGB2GRAY))
    facts = facts.noting(applied="three channels made grey")
    sample = colours[::4, ::4].astype(np.int16)
    spread = sample.max(axis=2) - sample.min(axis=2)
    if np.percentile(spread, 99) > COLOUR_TOLERANCE:
        facts = facts.noting(warning="this is a colour picture, perhaps a photograph of a film; it was made grey")
    return Film(facts, grey)
