"""PNG and JPEG films without what else their files carry: names, dates, places, comments, previews.

What is needed to show the pixels is copied as it is, so that the film that is kept is the film that came, to the last
bit. Of EXIF only the orientation stays, written anew.
"""

import io
import struct
import zlib
from collections.abc import Iterator

from PIL import Image

from medgrape.data.film import FilmError
from medgrape.data.picture import ORIENTATION, orientation_of

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
