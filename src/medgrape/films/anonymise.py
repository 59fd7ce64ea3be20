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
from medgrape.films.film import DAMAGED, Film, FilmError, FilmFacts, eight_bit
from medgrape.films.jpeg import stripped_jpeg
from medgrape.films.reading import (
    ORIENTATION,
    PNG_START,
    errors_as_damage,
    file_kind,
    film_file,
    orientation_of,
    read_open_film,
)
from medgrape.records import Record

PREVIEW = 256  # longest side of a preview, in pixels
SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "DICOM": ".dcm"}  # file name suffix of each format
_PALETTE_COLOUR = 3  # PNG's colour type that needs a palette


class UploadMetadata(Record):
    """What is known about a film that was received, besides its pixels."""

    facts: FilmFacts
    sex: str  # M, F, O, or empty where it is not known
    age: int | None  # age in years; 90 for everybody older

    @property
    def suffix(self) -> str:
        """Suffix of the film's file name."""
        return SUFFIXES[self.facts.format]


@dataclass(frozen=True)
class CleanFilm:
    """An anonymised film."""

    metadata: UploadMetadata
    content: bytes  # the bytes of the file
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
        metadata = UploadMetadata(facts=original.facts, sex="", age=None)
        if original.facts.format == "DICOM":  # of its header only what the anonymised file still says is kept
            from medgrape.films.dicom.reader import read_person

            cleaned.seek(0)
            sex, age, _ = read_person(cleaned)
            facts = clean.facts.model_copy(update={"transfer_syntax": original.facts.transfer_syntax})
            metadata = UploadMetadata(facts=facts, sex=sex, age=age)
        cleaned.seek(0)
        return CleanFilm(metadata, cleaned.read(), preview(clean))


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


def strip_metadata(content: bytes) -> bytes:
    """Return a PNG or JPEG file with its pixels and orientation alone."""
    with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as picture:
        orientation = orientation_of(picture)
    exif = b""
    if orientation not in (None, 1):
        data = Image.Exif()
        data[ORIENTATION] = orientation
        exif = data.tobytes()
    return _stripped_png(content, exif) if content.startswith(PNG_START) else stripped_jpeg(content, exif)


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
    start = len(PNG_START)
    while start + 12 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, start)
        yield kind, content[start + 8 : start + 8 + length]
        if kind == b"IEND":
            return
        start += 12 + length
    raise FilmError(DAMAGED)
