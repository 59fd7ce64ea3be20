"""Reading a DICOM file as a film."""

import io
import zlib
from typing import BinaryIO

from pydicom import FileDataset, dcmread
from pydicom.filereader import read_dataset
from pydicom.uid import DeflatedExplicitVRLittleEndian

from medgrape.config import FilmLimits
from medgrape.films.dicom.grey_levels import colour_values, grey_levels, grey_values
from medgrape.films.dicom.header import (
    ORIENTATION_KEYWORDS,
    PixelLayout,
    check_pixels,
    facts_from,
    name_transfer_syntax,
    read_layout,
    refuse_other_examinations,
    turn_of,
    turn_upright,
)
from medgrape.films.film import AS_STORED, Film, FilmError, Shrink, UprightSize, file_size, refuse_constant
from medgrape.films.pictures import grey_from_colour
from medgrape.geometry import FilmSize

_PREAMBLE = 128
_MAX_META = 65536


def read_dicom(file: BinaryIO, limits: FilmLimits, shrink: Shrink = AS_STORED) -> Film:
    """Return the film in a DICOM file, its stored pixels shrunk first."""
    dataset, layout = open_radiograph(file, limits)
    facts = facts_from(dataset, layout)
    if layout.samples == 3 or layout.photometric == "PALETTE COLOR":
        film = grey_from_colour(facts, shrink(colour_values(dataset)))
        facts, grey = film.facts, film.pixels
        refuse_constant(grey)
    else:
        facts, grey = grey_levels(dataset, facts, shrink(grey_values(dataset)))
    return Film(*turn_upright(dataset, facts, grey))


def open_radiograph(file: BinaryIO, limits: FilmLimits) -> tuple[FileDataset, PixelLayout]:
    """Open a single radiograph that is whole and within the limits; refuse anything else."""
    check_deflated(file, limits)
    dataset = dcmread(file, force=True)
    name_transfer_syntax(dataset)
    refuse_other_examinations(dataset)
    layout = read_layout(dataset)
    check_pixels(dataset, layout, limits)
    return dataset, layout


def dicom_upright_size(file: BinaryIO, limits: FilmLimits) -> UprightSize:
    """Return the size of a radiograph once it is upright, without reading its pixels."""
    check_deflated(file, limits)
    tags = ["Rows", "Columns", *ORIENTATION_KEYWORDS]
    dataset = dcmread(file, force=True, stop_before_pixels=True, specific_tags=tags)
    turn = turn_of(dataset)
    return UprightSize(turn.size(FilmSize(int(dataset.Columns), int(dataset.Rows))), bool(turn))


def check_deflated(file: BinaryIO, limits: FilmLimits) -> None:
    """Refuse a deflated file that inflates to more than the limits: pydicom inflates it whole while opening it."""
    size = file_size(file)
    start = file.read(_PREAMBLE + 4 + _MAX_META)
    file.seek(0)
    if DeflatedExplicitVRLittleEndian.encode() not in start:  # nearly every film
        return
    after_mark = io.BytesIO(start[_PREAMBLE + 4 :])
    meta = read_dataset(after_mark, False, True, stop_when=lambda tag, _vr, _length: tag.group != 2)
    if meta.get("TransferSyntaxUID") != DeflatedExplicitVRLittleEndian:
        return
    file.seek(_PREAMBLE + 4 + after_mark.tell())
    inflater, unpacked, packed = zlib.decompressobj(-zlib.MAX_WBITS), 0, file.read()
    file.seek(0)
    while packed and not inflater.eof:
        unpacked += len(inflater.decompress(packed, 2**20))
        packed = inflater.unconsumed_tail
        if unpacked > limits.max_bytes or unpacked > limits.max_ratio * size:
            raise FilmError("it unpacks to far more than its size; it looks like a bomb.")
