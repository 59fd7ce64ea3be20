"""Reading one film file, whatever its format, and making of it what the model sees."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

import cv2
import numpy as np
from jaxtyping import UInt8

from medgrape.config import FilmLimits, Preprocessing
from medgrape.films.film import AS_STORED, Film, FilmError, Pixels, Shrink, Stance, file_size
from medgrape.films.pictures import picture_stance, read_picture

_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_FIRST_TAGS = (
    b"\x02\x00\x00\x00",
    b"\x08\x00\x00\x00",
    b"\x08\x00\x05\x00",
    b"\x08\x00\x08\x00",
    b"\x08\x00\x16\x00",
)
START = 132
"""Bytes by which any film is known."""
_CLIP, _TILES = 2.0, 8
"""Of CLAHE: how far a histogram may rise above a flat one, and tiles along each side."""


def read_film(path: Path, limits: FilmLimits = FilmLimits()) -> Film:  # noqa: B008 (frozen)
    """The whole film in ``path``; a ``FilmError`` names the file and says why it is refused."""
    return _read(path, limits, AS_STORED)


def read_prepared(
    path: Path,
    limits: FilmLimits = FilmLimits(),  # noqa: B008 (frozen)
    preprocessing: Preprocessing = Preprocessing(),  # noqa: B008 (frozen)
) -> Film:
    """The film in ``path`` as the model sees it: a square of 8 bit greys, with the facts of the whole film.

    The film is stretched, not cropped, so that a box moves by two factors alone (``Box.moved``). Each grey is an
    average over the area it stands for, taken first by halving the stored pixels, which costs next to nothing, and only
    then, on what is left, windowed and resized.
    """
    film = _read(path, limits, Shrink(2 * preprocessing.size))
    seen = _squared(film.pixels, preprocessing.size)
    return Film(film.facts, _equalised(seen) if preprocessing.equalise else seen)


def _read(path: Path, limits: FilmLimits, shrink: Shrink) -> Film:
    with film_file(path, limits) as file:
        return _decoded(file, limits, shrink)


def read_whole(file: BinaryIO, limits: FilmLimits) -> Film:
    """The whole film in an open file; a refusal names no file."""
    return _decoded(file, limits, AS_STORED)


@contextmanager
def film_file(path: Path, limits: FilmLimits) -> Iterator[BinaryIO]:
    """An open file of a size that a film may have; whatever is refused of it names the file."""
    try:
        with path.open("rb") as file:
            _check_bytes(file, limits)
            yield file
    except FilmError as refusal:
        raise refusal.about(path) from None
    except OSError as error:
        raise FilmError(f"{path}: cannot be opened ({error.strerror}).") from error


def _check_bytes(file: BinaryIO, limits: FilmLimits) -> None:
    size = file_size(file)
    if size == 0:
        raise FilmError("it is empty.")
    if size > limits.max_bytes:
        raise FilmError(
            f"it has {size:,} bytes, more than the limit of {limits.max_bytes:,}; if it is right, "
            "raise --max-bytes or limits.max_bytes."
        )


def _squared(pixels: Pixels, side: int) -> UInt8[np.ndarray, "side side"]:
    """The last steps: to twice the size between neighbours, then one exact halving, which together miss no pixel.

    Resizing by area in one go gives nearly the same picture at five times the cost.
    """
    if min(pixels.shape) >= 2 * side and max(pixels.shape) < 4 * side:
        pixels = cv2.resize(pixels, (2 * side, 2 * side), interpolation=cv2.INTER_LINEAR)
    shrinks = min(pixels.shape) >= side
    small = cv2.resize(pixels, (side, side), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    if small.dtype == np.uint16:
        small = cv2.convertScaleAbs(small, alpha=255.0 / 65535.0)
    return np.asarray(small)


def _equalised(seen: UInt8[np.ndarray, "side side"]) -> UInt8[np.ndarray, "side side"]:
    """Greys spread by the histogram around each place, and noise in flat places not by more than twice."""
    return np.asarray(cv2.createCLAHE(clipLimit=_CLIP, tileGridSize=(_TILES, _TILES)).apply(seen))


def _decoded(file: BinaryIO, limits: FilmLimits, shrink: Shrink) -> Film:
    with whatever_goes_wrong_is_damage():
        if kind_of(file) == "picture":
            return read_picture(file, limits, shrink)
        return _dicom_reader()(file, limits, shrink)


@contextmanager
def whatever_goes_wrong_is_damage() -> Iterator[None]:
    """Decoders raise almost anything on broken bytes, a Rust panic included; all of it means the same to a person."""
    try:
        yield
    except (FilmError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise FilmError(f"it is damaged or cut short ({type(error).__name__}); export it again.") from error


def kind_of(file: BinaryIO) -> Literal["picture", "DICOM"]:
    """By the first bytes: DICOM has a mark after its preamble, or, when old, begins with its first group."""
    start = file.read(START)
    file.seek(0)
    return kind_by(start)


def kind_by(start: bytes) -> Literal["picture", "DICOM"]:
    """The same for whoever has no open file, only its first bytes."""
    if start.startswith((_PNG, _JPEG)):
        return "picture"
    if start.endswith(b"DICM") or start.startswith(_FIRST_TAGS):
        return "DICOM"
    raise FilmError("it is not a film: neither PNG, JPEG nor DICOM.")


def _dicom_reader() -> Callable[[BinaryIO, FilmLimits, Shrink], Film]:
    try:
        from medgrape.films.dicom.reader import read_dicom  # pydicom is an extra, and slow to import
    except ModuleNotFoundError as missing:
        raise FilmError("it is DICOM, which needs: pip install 'medgrape[dicom]'.") from missing
    return read_dicom


def stance(path: Path, limits: FilmLimits = FilmLimits()) -> Stance:  # noqa: B008 (frozen)
    """How the film stands once it is upright, from its header alone."""
    try:
        with path.open("rb") as file:
            if kind_of(file) == "picture":
                return picture_stance(file)
            _dicom_reader()
            from medgrape.films.dicom.reader import dicom_stance

            return dicom_stance(file, limits)
    except FilmError as refusal:
        raise refusal.about(path) from None
    except Exception as error:  # broken headers raise almost anything, like broken pixels
        raise FilmError(f"{path}: its header cannot be read ({type(error).__name__}).") from error
