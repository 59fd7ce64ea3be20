"""The file of a film that is stored: the same pixels, and nothing that identifies a person.

An anonymised PNG or JPEG keeps the compressed pixels byte for byte. Names, dates, places, comments and embedded
previews are dropped; of EXIF only the orientation stays, written anew.
"""

import io
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import cv2
import numpy as np
from jaxtyping import UInt8
from PIL import Image

from medgrape.config import FilmLimits
from medgrape.films.film import Film, FilmError, FilmFacts, eight_bit
from medgrape.films.reading import (
    DAMAGED,
    ORIENTATION,
    PNG_START,
    errors_as_damage,
    file_kind,
    film_file,
    orientation_of,
    read_open_film,
)
from medgrape.records import Record

PREVIEW = 256
"""Longest side of a preview, in pixels."""
SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "DICOM": ".dcm"}
"""File name suffix of each format."""
_PALETTE_COLOUR = 3
"""PNG's colour type that needs a palette."""
_START, _END, _SCAN, _JFIF, _EXIF, _ADOBE = 0xD8, 0xD9, 0xDA, 0xE0, 0xE1, 0xEE
_JPEG_KEPT = {*range(0xC0, 0xD0), _SCAN, 0xDB, 0xDD}
"""Markers of frames, tables, scans and restart intervals."""
_RESTARTS = range(0xD0, 0xD8)
_JFIF_BYTES, _ADOBE_BYTES = 14, 12
"""Length of the two application segments that tell how colours are stored; a preview may follow."""


class Arrival(Record):
    """What is known about a film that was received, besides its pixels."""

    facts: FilmFacts
    sex: str
    """M, F, O, or empty where it is not known."""
    age: int | None
    """Age in years; 90 for everybody older."""

    @property
    def suffix(self) -> str:
        """Suffix of the film's file name."""
        return SUFFIXES[self.facts.format]


@dataclass(frozen=True)
class CleanFilm:
    """An anonymised film."""

    arrival: Arrival
    content: bytes
    """The bytes of the file."""
    preview: UInt8[np.ndarray, "height width"]


def clean_film(path: Path, limits: FilmLimits) -> CleanFilm:
    """Return the film in ``path`` anonymised; refuse one that would not show the same pixels afterwards."""
    with film_file(path, limits) as file, _scratch_file() as cleaned, errors_as_damage():
        original = read_open_film(file, limits)
        file.seek(0)
        if file_kind(file) == "picture":
            cleaned.write(strip_metadata(file.read()))
        else:
            from medgrape.films.dicom.writer import anonymised_dicom  # pydicom is an extra, and slow to import

            cleaned.write(anonymised_dicom(file, limits))
        cleaned.seek(0)
        clean = read_open_film(cleaned, limits)
        if not np.array_equal(clean.pixels, original.pixels):
            raise FilmError("it would not look the same without what names the patient; export it as PNG.")
        arrival = _arrival(original, clean, cleaned)
        cleaned.seek(0)
        return CleanFilm(arrival, cleaned.read(), preview(clean))


def preview(film: Film) -> UInt8[np.ndarray, "height width"]:
    """Return the film resized so that its longest side has ``PREVIEW`` pixels."""
    greys = eight_bit(film.pixels)
    scale = PREVIEW / max(greys.shape)
    size = (max(round(greys.shape[1] * scale), 1), max(round(greys.shape[0] * scale), 1))
    return np.asarray(cv2.resize(greys, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR))


def _scratch_file() -> BinaryIO:
    """A file in memory where there is such a thing, so that a full disk does not look like a damaged film."""
    memory = getattr(os, "memfd_create", None)
    return cast(BinaryIO, tempfile.TemporaryFile() if memory is None else os.fdopen(memory("film"), "w+b"))


def _arrival(original: Film, clean: Film, cleaned: BinaryIO) -> Arrival:
    """A picture's facts are our own words; of a DICOM header only what the anonymised file still says is kept."""
    if original.facts.format != "DICOM":
        return Arrival(facts=original.facts, sex="", age=None)
    from medgrape.films.dicom.reader import read_person  # pydicom is an extra, and slow to import

    cleaned.seek(0)
    sex, age, _ = read_person(cleaned)
    facts = clean.facts.model_copy(update={"transfer_syntax": original.facts.transfer_syntax})
    return Arrival(facts=facts, sex=sex, age=age)


def strip_metadata(content: bytes) -> bytes:
    """Return a PNG or JPEG file with its pixels and orientation alone."""
    with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as picture:
        orientation = orientation_of(picture)
    exif = b""
    if orientation not in (None, 1):
        data = Image.Exif()
        data[ORIENTATION] = orientation
        exif = data.tobytes()
    return _stripped_png(content, exif) if content.startswith(PNG_START) else _stripped_jpeg(content, exif)


def _stripped_png(content: bytes, exif: bytes) -> bytes:
    chunks = list(_png_chunks(content))
    header = next((body for kind, body in chunks if kind == b"IHDR"), b"")
    parts = [PNG_START, _png_chunk(b"IHDR", header[:13])]
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
    place = len(PNG_START)
    while place + 12 <= len(content):
        length = struct.unpack(">I", content[place : place + 4])[0]
        kind, end = content[place + 4 : place + 8], place + 12 + length
        yield kind, content[place + 8 : end - 4]
        if kind == b"IEND":
            return
        place = end
    raise FilmError(DAMAGED)


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
            raise FilmError(DAMAGED)
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
