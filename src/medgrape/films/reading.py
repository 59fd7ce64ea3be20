"""Reading one film file of any format, and preparing it as the model sees it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

import cv2
import numpy as np
from jaxtyping import UInt8

from medgrape.config import FilmLimits, Preprocessing
from medgrape.films.film import AS_STORED, Film, FilmError, Pixels, Shrink, UprightSize, file_size
from medgrape.films.pictures import picture_upright_size, read_picture

_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_FIRST_DICOM_TAGS = (
    b"\x02\x00\x00\x00",
    b"\x08\x00\x00\x00",
    b"\x08\x00\x05\x00",
    b"\x08\x00\x08\x00",
    b"\x08\x00\x16\x00",
)
START = 132
"""Number of first bytes that tell the format of any film."""
_CLIP, _TILES = 2.0, 8
"""CLAHE: clip limit, and tiles along each side."""
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
        film = read_open_film(file, limits, Shrink(2 * side))
    square = _squared(film.pixels, side)
    if preprocessing.equalise:  # contrast-limited adaptive histogram equalisation
        square = np.asarray(cv2.createCLAHE(clipLimit=_CLIP, tileGridSize=(_TILES, _TILES)).apply(square))
    return Film(film.facts, square)


def read_open_film(file: BinaryIO, limits: FilmLimits, shrink: Shrink = AS_STORED) -> Film:
    """Return the film in an open file; a refusal does not name the file."""
    with errors_as_damage():
        if file_kind(file) == "picture":
            return read_picture(file, limits, shrink)
        return _dicom_reader()(file, limits, shrink)


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
    """Return what kind of file is open, and go back to its start."""
    start = file.read(START)
    file.seek(0)
    return kind_of_start(start)


def kind_of_start(start: bytes) -> FileKind:
    """Return the kind of a file from its first bytes: old DICOM has no mark and begins with its first group."""
    if start.startswith((_PNG, _JPEG)):
        return "picture"
    if start.endswith(b"DICM") or start.startswith(_FIRST_DICOM_TAGS):
        return "DICOM"
    raise FilmError("it is not a film: neither PNG, JPEG nor DICOM.")


def upright_size(path: Path, limits: FilmLimits = FilmLimits()) -> UprightSize:  # noqa: B008 (frozen)
    """Return the size of the film once it is upright, from its header alone."""
    try:
        with path.open("rb") as file:
            if file_kind(file) == "picture":
                return picture_upright_size(file)
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
    if small.dtype == np.uint16:
        small = cv2.convertScaleAbs(small, alpha=255.0 / 65535.0)
    return np.asarray(small)


def _dicom_reader() -> Callable[[BinaryIO, FilmLimits, Shrink], Film]:
    try:
        from medgrape.films.dicom.reader import read_dicom  # pydicom is an extra, and slow to import
    except ModuleNotFoundError as missing:
        raise FilmError("it is DICOM, which needs: pip install 'medgrape[dicom]'.") from missing
    return read_dicom
