"""PNG and JPEG films: reading them, and removing everything from their files but the pixels.

An anonymised file keeps the compressed pixels byte for byte, so the stored film is identical to the one received.
Names, dates, places, comments and embedded previews are dropped; of EXIF only the orientation stays, written anew.
"""

import io
import struct
import warnings
import zlib
from collections.abc import Iterator
from typing import BinaryIO

import cv2
import numpy as np
from jaxtyping import UInt8
from PIL import Image

from medgrape.config import FilmLimits
from medgrape.films.film import (
    AS_STORED,
    Film,
    FilmError,
    FilmFacts,
    Shrink,
    UprightSize,
    check_limits,
    file_size,
    grey_range,
    refuse_constant,
    stretch_greys,
)
from medgrape.geometry import FilmSize

COLOUR_TOLERANCE = 12
"""Grey levels by which JPEG's colour noise may make the channels of a grey film differ."""
_ORIENTATION = 0x0112
"""The EXIF tag."""
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
_DAMAGED = "it is damaged or cut short; export it again."


def read_picture(file: BinaryIO, limits: FilmLimits, shrink: Shrink = AS_STORED) -> Film:
    """Return the film in a PNG or JPEG file, its stored pixels shrunk first."""
    with warnings.catch_warnings():
        # Pillow warns of large pictures; our own limits decide, whatever warning filters the caller has set
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        picture = _opened(file)
        _check_header(picture, file_size(file), limits)
        film = _decoded(file, picture, shrink)
    refuse_constant(film.pixels)
    return film


def picture_upright_size(file: BinaryIO) -> UprightSize:
    """Return the size of a picture once it is upright, without decoding it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        return _upright_size(_opened(file))


def grey_from_colour(facts: FilmFacts, colours: UInt8[np.ndarray, "height width 3"]) -> Film:
    """Return a film from three channels; a true colour picture is accepted with a warning."""
    grey = np.asarray(cv2.cvtColor(colours, cv2.COLOR_RGB2GRAY))
    return Film(_with_colour_warning(facts.noting(applied="three channels made grey"), colours), grey)


def _opened(file: BinaryIO) -> Image.Image:
    try:
        return Image.open(file, formats=("PNG", "JPEG"))
    except Image.DecompressionBombError as error:
        raise FilmError("it has far more pixels than any film.") from error


def _check_header(picture: Image.Image, file_bytes: int, limits: FilmLimits) -> None:
    frames = getattr(picture, "n_frames", 1)
    if frames > 1 and picture.format == "PNG":
        raise FilmError(f"it has {frames} frames; a film has one.")
    if picture.mode == "1":
        raise FilmError("it has 1 bit per pixel; a film has 8 to 16.")
    size = FilmSize(*picture.size)
    unpacked = size.pixels * len(picture.getbands()) * (2 if picture.mode in _SIXTEEN_BIT else 1)
    check_limits(size, unpacked, file_bytes, limits)


def _upright_size(picture: Image.Image) -> UprightSize:
    width, height = picture.size
    orientation = _orientation(picture)
    size = FilmSize(height, width) if orientation in _SIDEWAYS else FilmSize(width, height)
    return UprightSize(size, orientation in _TURNS)


def _orientation(picture: Image.Image) -> int | None:
    """Orientation by the EXIF data before the pixels (Pillow would decode a PNG for more); None where it is broken."""
    exif = Image.Exif()
    try:
        exif.load(picture.info.get("exif") or b"")
        return int(exif.get(_ORIENTATION, 1))
    except Exception:  # Pillow raises almost anything on broken EXIF; the pixels may be intact
        return None


def _decoded(file: BinaryIO, picture: Image.Image, shrink: Shrink) -> Film:
    file.seek(0)
    start = file.read(26)
    file.seek(0)
    # Pillow would cut a PNG of 16 bits with several channels to 8 bits
    deep_colour = start[12:16] == b"IHDR" and start[24] == 16 and start[25] in (2, 4, 6)
    sixteen_bit = picture.mode in _SIXTEEN_BIT or deep_colour
    file_format = "PNG" if picture.format == "PNG" else "JPEG"  # a phone's MPO is a JPEG followed by more
    facts = FilmFacts(file_format, _upright_size(picture).size, 16 if sixteen_bit else 8, picture.mode)
    orientation = _orientation(picture)
    if orientation is None:
        facts = facts.noting(warning="its EXIF data cannot be read, so it may not stand upright")
    elif orientation in _TURNS:
        facts = facts.noting(applied="turned upright as its EXIF orientation says")
    if deep_colour:
        facts, picture = _grey_from_deep_colour(facts, file)
    else:
        shrink.before_decoding(picture)
    upright = picture.transpose(_TURNS[orientation]) if orientation in _TURNS else picture
    return _sixteen_bit_film(facts, upright, shrink) if sixteen_bit else _eight_bit_film(facts, upright, shrink)


def _grey_from_deep_colour(facts: FilmFacts, file: BinaryIO) -> tuple[FilmFacts, Image.Image]:
    pixels = cv2.imdecode(np.frombuffer(file.read(), np.uint8), cv2.IMREAD_UNCHANGED)
    if pixels is None:
        raise FilmError(_DAMAGED)
    facts = facts.noting(applied="three channels made grey")
    if pixels.ndim == 2:
        return facts, Image.fromarray(pixels)
    colours = pixels[:, :, :3]
    facts = _with_colour_warning(facts, colours * (255.0 / max(int(colours.max()), 1)))
    return facts, Image.fromarray(cv2.cvtColor(np.ascontiguousarray(colours), cv2.COLOR_BGR2GRAY))


def _sixteen_bit_film(facts: FilmFacts, picture: Image.Image, shrink: Shrink) -> Film:
    stored = np.asarray(picture)
    if stored.dtype != np.uint16:
        stored = np.clip(stored, 0, 65535).astype(np.uint16)
    stored = shrink(stored)
    refuse_constant(stored)
    low, high = grey_range(stored)
    facts = facts.noting(applied=f"grey levels {low:g} to {high:g} stretched over 16 bit")
    return Film(facts, stretch_greys(stored, low, high))


def _eight_bit_film(facts: FilmFacts, picture: Image.Image, shrink: Shrink) -> Film:
    if picture.mode == "L":
        return Film(facts, shrink(np.asarray(picture)))
    colours = shrink(np.asarray(picture.convert("RGB")))
    if picture.mode in ("LA", "RGBA", "PA"):
        facts = facts.noting(applied="transparency ignored")
    return grey_from_colour(facts, colours)


def _with_colour_warning(facts: FilmFacts, colours: np.ndarray) -> FilmFacts:
    """The facts with a warning where channels of up to 255 differ by more than JPEG's noise."""
    sample = colours[::4, ::4].astype(np.int16)
    spread = sample.max(axis=2) - sample.min(axis=2)
    if np.percentile(spread, 99) <= COLOUR_TOLERANCE:
        return facts
    return facts.noting(warning="this is a colour picture, perhaps a photograph of a film; it was made grey")


_PNG = b"\x89PNG\r\n\x1a\n"
_PALETTE_COLOUR = 3
"""PNG's colour type that needs a palette."""
_START, _END, _SCAN, _JFIF, _EXIF, _ADOBE = 0xD8, 0xD9, 0xDA, 0xE0, 0xE1, 0xEE
_JPEG_KEPT = {*range(0xC0, 0xD0), _SCAN, 0xDB, 0xDD}
"""Markers of frames, tables, scans and restart intervals."""
_RESTARTS = range(0xD0, 0xD8)
_JFIF_BYTES, _ADOBE_BYTES = 14, 12
"""Length of the two application segments that tell how colours are stored; a preview may follow."""


def strip_metadata(content: bytes) -> bytes:
    """Return a PNG or JPEG file with its pixels and orientation alone."""
    with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as picture:
        orientation = _orientation(picture)
    exif = b""
    if orientation not in (None, 1):
        data = Image.Exif()
        data[_ORIENTATION] = orientation
        exif = data.tobytes()
    return _stripped_png(content, exif) if content.startswith(_PNG) else _stripped_jpeg(content, exif)


def _stripped_png(content: bytes, exif: bytes) -> bytes:
    chunks = list(_png_chunks(content))
    header = next((body for kind, body in chunks if kind == b"IHDR"), b"")
    parts = [_PNG, _png_chunk(b"IHDR", header[:13])]
    if exif:
        parts.append(_png_chunk(b"eXIf", exif.removeprefix(b"Exif\0\0")))
    if header[9:10] == bytes([_PALETTE_COLOUR]):
        parts += [_png_chunk(kind, body) for kind, body in chunks if kind == b"PLTE"][:1]
    packed = b"".join(body for kind, body in chunks if kind == b"IDAT")
    inflater, rest = zlib.decompressobj(), packed
    while rest and not inflater.eof:
        inflater.decompress(rest, 2**20)
        rest = inflater.unconsumed_tail
    pixels = packed[: len(packed) - len(inflater.unused_data)]  # without what is hidden behind their end
    return b"".join([*parts, _png_chunk(b"IDAT", pixels), _png_chunk(b"IEND", b"")])


def _png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _png_chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and body of every chunk up to the end; the decoder has checked their sums."""
    place = len(_PNG)
    while place + 12 <= len(content):
        length = struct.unpack(">I", content[place : place + 4])[0]
        kind, end = content[place + 4 : place + 8], place + 12 + length
        yield kind, content[place + 8 : end - 4]
        if kind == b"IEND":
            return
        place = end
    raise FilmError(_DAMAGED)


def _stripped_jpeg(content: bytes, exif: bytes) -> bytes:
    parts = [bytes([0xFF, _START])]
    if exif:
        parts.append(_jpeg_segment(_EXIF, exif))
    for marker, body in _jpeg_segments(content):
        if marker == _JFIF and body.startswith(b"JFIF\0"):
            parts.append(_jpeg_segment(_JFIF, body[: _JFIF_BYTES - 2] + b"\0\0"))  # a preview of 0 x 0 pixels
        elif marker == _ADOBE and body.startswith(b"Adobe"):
            parts.append(_jpeg_segment(_ADOBE, body[:_ADOBE_BYTES]))
        elif marker is None or marker == _END:
            parts.append(body)
        elif marker in _JPEG_KEPT:
            parts.append(_jpeg_segment(marker, body))
    return b"".join(parts)


def _jpeg_segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def _jpeg_segments(content: bytes) -> Iterator[tuple[int | None, bytes]]:
    """Yield every segment up to the end of the first picture; the data after a scan's header have no marker."""
    place = 2
    while place + 1 < len(content):
        if content[place] != 0xFF:
            raise FilmError(_DAMAGED)
        marker = content[place + 1]
        if marker == 0xFF:  # fill bytes are allowed before any marker
            place += 1
            continue
        if marker == _END:
            yield _END, bytes([0xFF, _END])
            return
        length = int.from_bytes(content[place + 2 : place + 4], "big")
        yield marker, content[place + 4 : place + 2 + length]
        place += 2 + max(length, 2)
        if marker == _SCAN:
            end = _end_of_scan(content, place)
            yield None, content[place:end]
            place = end


def _end_of_scan(content: bytes, place: int) -> int:
    """Position of the next marker that is neither a stuffed byte nor a restart."""
    while (place := content.find(b"\xff", place)) >= 0 and place + 1 < len(content):
        if content[place + 1] not in (0x00, 0xFF, *_RESTARTS):
            return place
        place += 1 if content[place + 1] == 0xFF else 2
    return len(content)
