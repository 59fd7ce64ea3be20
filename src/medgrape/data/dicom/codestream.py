"""The size that a compressed frame declares in its own header, which need not be the one DICOM declares around it."""

import struct

from medgrape.geometry import FilmSize

_START_OF_IMAGE = b"\xff\xd8"
_JPEG_2000_START = b"\xff\x4f\xff\x51"
_WITHOUT_LENGTH = {0x01, *range(0xD0, 0xDA)}
_FRAME_HEADERS = (set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}) | {0xF7}  # 0xF7: JPEG-LS


def declared_size(frame: bytes) -> FilmSize | None:
    """What the frame will unpack to, or None where the header is none that we know (RLE has no size)."""
    if frame.startswith(_START_OF_IMAGE):
        return _jpeg_size(frame)
    start = frame.find(_JPEG_2000_START, 0, 4096)
    return None if start < 0 else _jpeg_2000_size(frame[start:])


def _jpeg_size(frame: bytes) -> FilmSize | None:
    position = 2
    while position + 9 <= len(frame):
        if frame[position] != 0xFF:
            return None
        marker = frame[position + 1]
        if marker in _FRAME_HEADERS:
            height, width = struct.unpack_from(">HH", frame, position + 5)
            return FilmSize(width, height)
        if marker == 0xFF:  # fill byte before a marker
            position += 1
        elif marker in _WITHOUT_LENGTH:
            position += 2
        else:
            position += 2 + struct.unpack_from(">H", frame, position + 2)[0]
    return None


def _jpeg_2000_size(codestream: bytes) -> FilmSize | None:
    if len(codestream) < 24:
        return None
    right, bottom, left, top = struct.unpack_from(">IIII", codestream, 8)
    return FilmSize(right - left, bottom - top)
