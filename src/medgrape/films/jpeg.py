"""The segments of a JPEG file: its size, and the file without metadata."""

import struct
from collections.abc import Iterator
from contextlib import suppress

from medgrape.films.film import DAMAGED, FilmError
from medgrape.geometry import FilmSize

JPEG_START = b"\xff\xd8"
_END, _SCAN, _JFIF, _EXIF, _ADOBE = 0xD9, 0xDA, 0xE0, 0xE1, 0xEE
_KEPT = {*range(0xC0, 0xD0), _SCAN, 0xDB, 0xDD}  # frames, tables, scans and restart intervals
_FRAMES = {*range(0xC0, 0xD0), 0xF7} - {0xC4, 0xC8, 0xCC}  # 0xF7: JPEG-LS
_RESTARTS = range(0xD0, 0xD8)
_WITHOUT_LENGTH = {0x01, *_RESTARTS, 0xD8}
# Length of the two application segments that tell how colours are stored; a preview may follow.
_JFIF_BYTES, _ADOBE_BYTES = 14, 12


def jpeg_size(content: bytes) -> FilmSize | None:
    """Return the size that a JPEG file or frame declares; None where it is broken before that."""
    with suppress(FilmError, struct.error):
        for marker, body in _segments(content):
            if marker in _FRAMES:
                height, width = struct.unpack_from(">HH", body, 1)
                return FilmSize(width, height)
    return None


def stripped_jpeg(content: bytes, exif: bytes) -> bytes:
    """Return the first picture of a JPEG file with the given EXIF data and no other metadata."""
    parts = [JPEG_START]
    if exif:
        parts.append(_segment(_EXIF, exif))
    for marker, body in _segments(content):
        if marker == _JFIF and body.startswith(b"JFIF\0"):
            parts.append(_segment(_JFIF, body[: _JFIF_BYTES - 2] + b"\0\0"))  # a preview of 0 x 0 pixels
        elif marker == _ADOBE and body.startswith(b"Adobe"):
            parts.append(_segment(_ADOBE, body[:_ADOBE_BYTES]))
        elif marker is None or marker == _END:
            parts.append(body)
        elif marker in _KEPT:
            parts.append(_segment(marker, body))
    return b"".join(parts)


def _segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def _segments(content: bytes) -> Iterator[tuple[int | None, bytes]]:
    """Yield every segment up to the end of the first picture; the data after a scan's header have no marker."""
    start = len(JPEG_START)
    while start + 1 < len(content):
        if content[start] != 0xFF:
            raise FilmError(DAMAGED)
        marker = content[start + 1]
        if marker == 0xFF:  # fill bytes are allowed before any marker
            start += 1
        elif marker == _END:
            yield _END, bytes([0xFF, _END])
            return
        elif marker in _WITHOUT_LENGTH:
            start += 2
        else:
            length = max(int.from_bytes(content[start + 2 : start + 4], "big"), 2)
            yield marker, content[start + 4 : start + 2 + length]
            start += 2 + length
            if marker == _SCAN:
                end = _end_of_scan(content, start)
                yield None, content[start:end]
                start = end


def _end_of_scan(content: bytes, start: int) -> int:
    """Position of the next marker that is neither a stuffed byte nor a restart."""
    while (start := content.find(b"\xff", start)) >= 0 and start + 1 < len(content):
        if content[start + 1] not in (0x00, 0xFF, *_RESTARTS):
            return start
        start += 1 if content[start + 1] == 0xFF else 2
    return len(content)
