"""PNG and JPEG films without what else their files carry: names, dates, places, comments, previews.

What is needed to show the pixels is copied as it is, so that the film that is kept is the film that came, to the last
bit. Of EXIF only the orientation stays, written anew.
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
    Stance,
    check_cost,
    file_size,
    grey_range,
    refuse_constant,
    scaled,
)
from medgrape.geometry import FilmSize

COLOUR_TOLERANCE = 12
"""Grey levels by which JPEG's own colour noise may part the channels of a grey film."""
ORIENTATION = 0x0112
"""EXIF's tag."""
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ON_ITS_SIDE = {5, 6, 7, 8}
_MANY_CHANNELS = (2, 4, 6)
_SIXTEEN_BIT = {"I;16", "I;16B", "I;16L", "I"}


def read_picture(file: BinaryIO, limits: FilmLimits, shrink: Shrink = AS_STORED) -> Film:
    """The film in a PNG or JPEG file, its stored pixels shrunk first."""
    with warnings.catch_warnings():
        # Pillow warns of large pictures; our own limits decide, and a warning must not depend on who listens.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        picture = _opened(file)
        _check_header(picture, file_size(file), limits)
        film = _read(file, picture, shrink)
    refuse_constant(film.pixels)
    return film


def _read(file: BinaryIO, picture: Image.Image, shrink: Shrink) -> Film:
    deep_colour, orientation = _is_deep_colour(file), orientation_of(picture)
    sixteen = picture.mode in _SIXTEEN_BIT or deep_colour
    facts = FilmFacts(_format(picture), _stance(picture).size, 16 if sixteen else 8, picture.mode)
    if orientation is None:
        facts = facts.noting(warning="its EXIF data cannot be read, so it may not stand upright")
    elif orientation in _TURNS:
        facts = facts.noting(applied="turned upright as its EXIF orientation says")
    if deep_colour:
        facts, picture = _deep_grey(facts, file)
    else:
        shrink.before_decoding(picture)
    upright = picture.transpose(_TURNS[orientation]) if orientation in _TURNS else picture
    return _sixteen_bit(facts, upright, shrink) if sixteen else _eight_bit(facts, upright, shrink)


def picture_stance(file: BinaryIO) -> Stance:
    """How a picture stands once it is upright, without unpacking it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        return _stance(_opened(file))


def _stance(picture: Image.Image) -> Stance:
    width, height = picture.size
    orientation = orientation_of(picture)
    size = FilmSize(height, width) if orientation in _ON_ITS_SIDE else FilmSize(width, height)
    return Stance(size, orientation in _TURNS)


def orientation_of(picture: Image.Image) -> int | None:
    """By the EXIF data before the pixels (asking Pillow for more would unpack a PNG); None where it is broken."""
    exif = Image.Exif()
    try:
        exif.load(picture.info.get("exif") or b"")
        return int(exif.get(ORIENTATION, 1))
    except Exception:  # Pillow raises almost anything on broken EXIF; the pixels may be fine all the same
        return None


def _is_deep_colour(file: BinaryIO) -> bool:
    """A PNG of 16 bits with more than one channel, which Pillow would cut to 8 bits."""
    file.seek(0)
    start = file.read(26)
    file.seek(0)
    return start[12:16] == b"IHDR" and start[24] == 16 and start[25] in _MANY_CHANNELS


def _deep_grey(facts: FilmFacts, file: BinaryIO) -> tuple[FilmFacts, Image.Image]:
    decoded = cv2.imdecode(np.frombuffer(file.read(), np.uint8), cv2.IMREAD_UNCHANGED)
    if decoded is None:
        raise FilmError("it is damaged or cut short; export it again.")
    facts = facts.noting(applied="three channels made grey")
    if decoded.ndim == 2:
        return facts, Image.fromarray(decoded)
    colours = decoded[:, :, :3]
    facts = _warned_of_colour(facts, colours * (255.0 / max(int(colours.max()), 1)))
    return facts, Image.fromarray(cv2.cvtColor(np.ascontiguousarray(colours), cv2.COLOR_BGR2GRAY))


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
    return Film(_warned_of_colour(facts.noting(applied="three channels made grey"), colours), grey)


def _warned_of_colour(facts: FilmFacts, colours: np.ndarray) -> FilmFacts:
    """Facts with a warning where channels of up to 255 differ by more than JPEG's own noise."""
    sample = colours[::4, ::4].astype(np.int16)
    spread = sample.max(axis=2) - sample.min(axis=2)
    if np.percentile(spread, 99) <= COLOUR_TOLERANCE:
        return facts
    return facts.noting(warning="this is a colour picture, perhaps a photograph of a film; it was made grey")


_PNG = b"\x89PNG\r\n\x1a\n"
_PALETTED = 3
"""PNG's colour type that needs a palette."""
_START, _END, _SCAN, _JFIF, _EXIF, _ADOBE = 0xD8, 0xD9, 0xDA, 0xE0, 0xE1, 0xEE
_JPEG_KEPT = {*range(0xC0, 0xD0), _SCAN, 0xDB, 0xDD}
"""Frames, tables, scans and restart intervals."""
_RESTARTS = range(0xD0, 0xD8)
_JFIF_BYTES, _ADOBE_BYTES = 14, 12
"""Of the two application segments that say how colours are stored; what follows may be a preview."""


def stripped(content: bytes) -> bytes:
    """The picture that is kept."""
    with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as picture:
        turned = orientation_of(picture)
    exif = b"" if turned in (None, 1) else _exif(turned)
    return _png(content, exif) if content.startswith(_PNG) else _jpeg(content, exif)


def _exif(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return exif.tobytes()


def _png(content: bytes, exif: bytes) -> bytes:
    chunks = list(_chunks(content))
    header = next((body for kind, body in chunks if kind == b"IHDR"), b"")
    palette = [body for kind, body in chunks if kind == b"PLTE"] if header[9:10] == bytes([_PALETTED]) else []
    pixels = _packed(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    turned = [_chunk(b"eXIf", exif.removeprefix(b"Exif\0\0"))] if exif else []
    shown = [_chunk(b"PLTE", body) for body in palette[:1]]
    return b"".join(
        [_PNG, _chunk(b"IHDR", header[:13]), *turned, *shown, _chunk(b"IDAT", pixels), _chunk(b"IEND", b"")]
    )


def _packed(data: bytes) -> bytes:
    """The packed pixels without what was put behind their end."""
    unpacker, rest = zlib.decompressobj(), data
    while rest and not unpacker.eof:
        unpacker.decompress(rest, 2**20)
        rest = unpacker.unconsumed_tail
    return data[: len(data) - len(unpacker.unused_data)]


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and body of every chunk up to the end; whether its sum is right, the decoder has looked."""
    place = len(_PNG)
    while place + 12 <= len(content):
        length = struct.unpack(">I", content[place : place + 4])[0]
        kind, end = content[place + 4 : place + 8], place + 12 + length
        yield kind, content[place + 8 : end - 4]
        if kind == b"IEND":
            return
        place = end
    raise FilmError("it is damaged or cut short; export it again.")


def _jpeg(content: bytes, exif: bytes) -> bytes:
    parts = [bytes([0xFF, _START])]
    if exif:
        parts.append(_segment(_EXIF, exif))
    parts.extend(_kept(marker, body) for marker, body in _segments(content))
    return b"".join(parts)


def _kept(marker: int | None, body: bytes) -> bytes:
    """What stays of a segment, which may be nothing."""
    if marker == _JFIF and body.startswith(b"JFIF\0"):
        return _segment(_JFIF, body[: _JFIF_BYTES - 2] + b"\0\0")  # a preview of 0 x 0 pixels
    if marker == _ADOBE and body.startswith(b"Adobe"):
        return _segment(_ADOBE, body[:_ADOBE_BYTES])
    if marker in (None, _END):
        return body
    return _segment(marker, body) if marker in _JPEG_KEPT else b""


def _segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def _segments(content: bytes) -> Iterator[tuple[int | None, bytes]]:
    """Every segment up to the end of the first picture; what follows a scan's header comes without a marker."""
    place = 2
    while place + 1 < len(content):
        if content[place] != 0xFF:
            raise FilmError("it is damaged or cut short; export it again.")
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
    """Where the next marker stands that is neither a stuffed byte nor a restart."""
    while (place := content.find(b"\xff", place)) >= 0 and place + 1 < len(content):
        if content[place + 1] not in (0x00, 0xFF, *_RESTARTS):
            return place
        place += 1 if content[place + 1] == 0xFF else 2
    return len(content)
