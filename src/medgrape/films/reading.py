"""Reading one film file, PNG, JPEG or DICOM, and preparing it as the model sees it."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

import cv2
import numpy as np
from jaxtyping import UInt8
from PIL import Image

from medgrape.config import FilmLimits, Preprocessing
from medgrape.films.film import (
    DAMAGED,
    Film,
    FilmError,
    FilmFacts,
    Pixels,
    UprightSize,
    check_limits,
    eight_bit,
    file_size,
    grey_from_colour,
    grey_range,
    halved,
    refuse_constant,
    stretch_greys,
    with_colour_warning,
)
from medgrape.geometry import FilmSize

PNG_START, _JPEG_START = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_FIRST_DICOM_TAGS = tuple(map(bytes.fromhex, ("02000000", "08000000", "08000500", "08000800", "08001600")))
START = 132  # number of first bytes that tell the format of any film
_CLIP, _TILES = 2.0, 8  # CLAHE: clip limit, and tiles along each side
ORIENTATION = 0x0112  # the EXIF tag
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_SIDEWAYS = {5, 6, 7, 8}
_SIXTEEN_BIT = {"I;16", "I;16B", "I;16L", "I"}
FileKind = Literal["picture", "DICOM"]


def read_film(path: Path, limits: FilmLimits = FilmLimits()) -> Film:  # noqa: B008 (frozen)
    """Return the whole film in ``path``, or raise a ``FilmError`` that names the file and the reason."""
    with film_file(path, limits) as file:
        return read_open_film(file, limits)


def read_prepared(
    path: Path,
    limits: FilmLimits = FilmLimits(),  # noqa: B008 (frozen)
    preprocessing: Preprocessing = Preprocessing(),  # noqa: B008 (frozen)
) -> Film:
    """Return the film in ``path`` as the model sees it: a square of 8 bit greys, with the facts of the whole film.

    The film is stretched, not cropped, so that a box is mapped by two factors (``Box.moved``). Each grey is an average
    over its area, first by halving the stored pixels, which is cheap, and only then by windowing and resizing.
    """
    side = preprocessing.size
    with film_file(path, limits) as file:
        film = read_open_film(file, limits, 2 * side)
    square = _squared(film.pixels, side)
    if preprocessing.equalise:  # contrast-limited adaptive histogram equalisation
        square = np.asarray(cv2.createCLAHE(clipLimit=_CLIP, tileGridSize=(_TILES, _TILES)).apply(square))
    return Film(film.facts, square)


def read_open_film(file: BinaryIO, limits: FilmLimits, side: int | None = None) -> Film:
    """Return the film in an open file, ``halved`` down to ``side``; a refusal does not name the file."""
    with errors_as_damage():
        if file_kind(file) == "picture":
            return read_picture(file, limits, side)
        return _dicom_reader()(file, limits, side)


@contextmanager
def film_file(path: Path, limits: FilmLimits) -> Iterator[BinaryIO]:
    """Open a file of at most ``max_bytes``; a ``FilmError`` raised inside the block names the file."""
    try:
        with path.open("rb") as file:
            size = file_size(file)
            if size == 0:
                raise FilmError("it is empty.")
            if size > limits.max_bytes:
                raise FilmError(
                    f"it has {size:,} bytes, more than the limit of {limits.max_bytes:,}; if it is right, "
                    "raise --max-bytes or limits.max_bytes."
                )
            yield file
    except FilmError as refusal:
        raise refusal.about(path) from None
    except OSError as error:
        raise FilmError(f"{path}: cannot be opened ({error.strerror}).") from error


@contextmanager
def errors_as_damage() -> Iterator[None]:
    """Turn whatever a decoder raises on broken bytes, Rust panics included, into a ``FilmError``."""
    try:
        yield
    except (FilmError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise FilmError(f"it is damaged or cut short ({type(error).__name__}); export it again.") from error


def file_kind(file: BinaryIO) -> FileKind:
    """Return the kind of an open file, and go back to its start."""
    start = file.read(START)
    file.seek(0)
    return kind_of_start(start)


def kind_of_start(start: bytes) -> FileKind:
    """Return the kind of a file from its first bytes: old DICOM has no mark and begins with its first group."""
    if start.startswith((PNG_START, _JPEG_START)):
        return "picture"
    if start.endswith(b"DICM") or start.startswith(_FIRST_DICOM_TAGS):
        return "DICOM"
    raise FilmError("it is not a film: neither PNG, JPEG nor DICOM.")


def upright_size(path: Path, limits: FilmLimits = FilmLimits()) -> UprightSize:  # noqa: B008 (frozen)
    """Return the size of the film once it is upright, from its header alone."""
    try:
        with path.open("rb") as file:
            if file_kind(file) == "picture":
                with _opened(file) as picture:
                    return _upright_size(picture)
            _dicom_reader()
            from medgrape.films.dicom.reader import dicom_upright_size  # pydicom is an extra, and slow to import

            return dicom_upright_size(file, limits)
    except FilmError as refusal:
        raise refusal.about(path) from None
    except Exception as error:  # broken headers raise almost anything, like broken pixels
        raise FilmError(f"{path}: its header cannot be read ({type(error).__name__}).") from error


def _squared(pixels: Pixels, side: int) -> UInt8[np.ndarray, "side side"]:
    """Resize to a square of 8 bits: to twice its size by interpolation, then one exact halving, which uses every pixel.

    Resizing by area in one step gives nearly the same picture at five times the cost.
    """
    if min(pixels.shape) >= 2 * side and max(pixels.shape) < 4 * side:
        pixels = cv2.resize(pixels, (2 * side, 2 * side), interpolation=cv2.INTER_LINEAR)
    shrinks = min(pixels.shape) >= side
    small = cv2.resize(pixels, (side, side), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    return eight_bit(small)


def _dicom_reader() -> Callable[[BinaryIO, FilmLimits, int | None], Film]:
    try:
        from medgrape.films.dicom.reader import read_dicom  # pydicom is an extra, and slow to import
    except ModuleNotFoundError as missing:
        raise FilmError("it is DICOM, which needs: pip install 'medgrape[dicom]'.") from missing
    return read_dicom


def read_picture(file: BinaryIO, limits: FilmLimits, side: int | None = None) -> Film:
    """Return the film in a PNG or JPEG file, its stored pixels first ``halved`` down to ``side``."""
    with _opened(file) as picture:
        frames = getattr(picture, "n_frames", 1)
        if frames > 1 and picture.format == "PNG":
            raise FilmError(f"it has {frames} frames; a film has one.")
        if picture.mode == "1":
            raise FilmError("it has 1 bit per pixel; a film has 8 to 16.")
        size = FilmSize(*picture.size)
        unpacked = size.pixels * len(picture.getbands()) * (2 if picture.mode in _SIXTEEN_BIT else 1)
        check_limits(size, unpacked, file_size(file), limits)
        film = _decoded(file, picture, side)
    refuse_constant(film.pixels)
    return film


@contextmanager
def _opened(file: BinaryIO) -> Iterator[Image.Image]:
    with warnings.catch_warnings():
        # Pillow warns of large pictures; our own limits decide, whatever warning filters the caller has set
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            picture = Image.open(file, formats=("PNG", "JPEG"))
        except Image.DecompressionBombError as error:
            raise FilmError("it has far more pixels than any film.") from error
        yield picture


def _upright_size(picture: Image.Image) -> UprightSize:
    orientation = orientation_of(picture)
    size = picture.size[::-1] if orientation in _SIDEWAYS else picture.size
    return UprightSize(FilmSize(*size), orientation in _TURNS)


def orientation_of(picture: Image.Image) -> int | None:
    """Orientation by the EXIF data before the pixels (Pillow would decode a PNG for more); None where it is broken."""
    exif = Image.Exif()
    try:
        exif.load(picture.info.get("exif") or b"")
        return int(exif.get(ORIENTATION, 1))
    except Exception:  # Pillow raises almost anything on broken EXIF; the pixels may be intact
        return None


def _decoded(file: BinaryIO, picture: Image.Image, side: int | None) -> Film:
    file.seek(0)
    start = file.read(26)
    file.seek(0)
    # Pillow would cut a PNG of 16 bits with several channels to 8 bits
    deep_colour = start[12:16] == b"IHDR" and start[24] == 16 and start[25] in (2, 4, 6)
    sixteen_bit = picture.mode in _SIXTEEN_BIT or deep_colour
    file_format = "PNG" if picture.format == "PNG" else "JPEG"  # a phone's MPO is a JPEG followed by more
    size = _upright_size(picture).size
    facts = FilmFacts(format=file_format, size=size, bits=16 if sixteen_bit else 8, photometric=picture.mode)
    orientation = orientation_of(picture)
    if orientation is None:
        facts = facts.noting(warning="its EXIF data cannot be read, so it may not stand upright")
    elif orientation in _TURNS:
        facts = facts.noting(applied="turned upright as its EXIF orientation says")
    if deep_colour:
        facts, picture = _grey_from_deep_colour(facts, file)
    elif side is not None:  # a JPEG skips its finest frequencies while it is decoded: the same average for less work
        picture.draft(picture.mode, (side, side))
    upright = picture.transpose(_TURNS[orientation]) if orientation in _TURNS else picture
    return _sixteen_bit_film(facts, upright, side) if sixteen_bit else _eight_bit_film(facts, upright, side)


def _grey_from_deep_colour(facts: FilmFacts, file: BinaryIO) -> tuple[FilmFacts, Image.Image]:
    pixels = cv2.imdecode(np.frombuffer(file.read(), np.uint8), cv2.IMREAD_UNCHANGED)
    if pixels is None:
        raise FilmError(DAMAGED)
    facts = facts.noting(applied="three channels made grey")
    if pixels.ndim == 2:
        return facts, Image.fromarray(pixels)
    colours = pixels[:, :, :3]
    facts = with_colour_warning(facts, colours * (255.0 / max(int(colours.max()), 1)))
    return facts, Image.fromarray(cv2.cvtColor(np.ascontiguousarray(colours), cv2.COLOR_BGR2GRAY))


def _sixteen_bit_film(facts: FilmFacts, picture: Image.Image, side: int | None) -> Film:
    stored = np.asarray(picture)
    if stored.dtype != np.uint16:
        stored = np.clip(stored, 0, 65535).astype(np.uint16)
    stored = halved(stored, side)
    refuse_constant(stored)
    low, high = grey_range(stored)
    facts = facts.noting(applied=f"grey levels {low:g} to {high:g} stretched over 16 bit")
    return Film(facts, stretch_greys(stored, low, high))


def _eight_bit_film(facts: FilmFacts, picture: Image.Image, side: int | None) -> Film:
    if picture.mode == "L":
        return Film(facts, halved(np.asarray(picture), side))
    colours = halved(np.asarray(picture.convert("RGB")), side)
    if picture.mode in ("LA", "RGBA", "PA"):
        facts = facts.noting(applied="transparency ignored")
    return grey_from_colour(facts, colours)
