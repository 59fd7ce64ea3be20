"""A film that is kept shows what arrived, to the last bit, and names nobody."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, PngImagePlugin
from pydicom import Dataset, dcmread
from pydicom.encaps import encapsulate
from pydicom.uid import (
    ExplicitVRBigEndian,
    ImplicitVRLittleEndian,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    JPEGLSLossless,
    RLELossless,
)

from medgrape.config import FilmLimits, Preprocessing
from medgrape.films.anonymise import PREVIEW, clean_film
from medgrape.films.decoder import Decoder
from medgrape.films.film import FilmError
from medgrape.films.reading import read_film, read_prepared
from scenes import SECRET, planted, radiograph, save

LIMITS, SEEN = FilmLimits(), Preprocessing(size=64)


def lut():
    table = Dataset()
    table.LUTDescriptor, table.LUTData = [4096, 0, 16], (np.arange(4096) ** 1.3 % 65536).astype("<u2").tobytes()
    table["LUTData"].VR = "OW"
    return [table]


HEADERS = {
    "plain": {},
    "inverted": {"PhotometricInterpretation": "MONOCHROME1", "WindowCenter": 1900.5, "WindowWidth": 3000},
    "rescaled": {"RescaleSlope": "0.0012207031", "RescaleIntercept": "-1024", "WindowCenter": -1021, "WindowWidth": 4},
    "turned": {"PatientOrientation": ["H", "L"]},
    "flipped": {"ImageRotation": 90, "ImageHorizontalFlip": "Y"},
    "padded": {"PixelPaddingValue": 3999},
    "looked up": {"VOILUTSequence": lut()},
    "high bits": {"BitsStored": 12, "HighBit": 11},
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_a_dicom_film_is_kept_as_it_looks_and_names_nobody(chest, tmp_path, header):
    path = save(planted(chest, **header), tmp_path / "film.dcm")
    _same_film_without_a_name(path, tmp_path)


@pytest.mark.parametrize("syntax", [RLELossless, JPEG2000Lossless, JPEGLSLossless, ImplicitVRLittleEndian])
def test_a_film_in_any_transfer_syntax_is_kept_as_it_looks(chest, tmp_path, syntax):
    dataset = planted(chest)
    if syntax.is_compressed:
        dataset.compress(syntax)
    dataset.file_meta.TransferSyntaxUID = syntax
    _same_film_without_a_name(save(dataset, tmp_path / "film.dcm"), tmp_path)


def test_a_name_in_a_compressed_frame_stays_behind(chest, tmp_path):
    frame = io.BytesIO()
    Image.fromarray((chest // 16).astype(np.uint8)).save(frame, "JPEG", quality=95, comment=SECRET.encode())
    dataset = planted((chest // 16).astype(np.uint8))
    dataset.PixelData = encapsulate([frame.getvalue()])
    dataset["PixelData"].is_undefined_length = True
    dataset.file_meta.TransferSyntaxUID = JPEGBaseline8Bit
    _same_film_without_a_name(save(dataset, tmp_path / "film.dcm"), tmp_path)


def test_a_big_endian_film_is_kept_as_it_looks(chest, tmp_path):
    dataset = radiograph(chest, PatientName=SECRET)
    dataset.PixelData = chest.astype(">u2").tobytes()
    dataset["PixelData"].VR = "OW"
    dataset.file_meta.TransferSyntaxUID = ExplicitVRBigEndian
    path = tmp_path / "film.dcm"
    dataset.save_as(path, enforce_file_format=True, little_endian=False, implicit_vr=False)
    _same_film_without_a_name(path, tmp_path)


@pytest.mark.parametrize("colour", [True, False])
def test_a_colour_film_is_kept_as_it_looks(chest, tmp_path, colour):
    grey = (chest // 16).astype(np.uint8)
    pixels = np.stack([grey, grey, grey // 2 if colour else grey], axis=2)
    dataset = radiograph(pixels, SamplesPerPixel=3, PhotometricInterpretation="RGB", PatientName=SECRET)
    dataset.PlanarConfiguration = 0
    _same_film_without_a_name(save(dataset, tmp_path / "film.dcm"), tmp_path)


def test_the_age_of_the_very_old_is_reported_as_ninety(chest, tmp_path):
    clean = clean_film(save(planted(chest), tmp_path / "film.dcm"), LIMITS)
    assert (clean.metadata.sex, clean.metadata.age, clean.metadata.facts.view) == ("F", 90, "PA")
    assert clean.metadata.facts.laterality is None


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_is_kept_as_it_looks_and_names_nobody(chest, tmp_path, orientation, progressive):
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = orientation, SECRET
    path = tmp_path / "film.jpg"
    picture = Image.fromarray((chest // 16).astype(np.uint8))
    picture.save(path, "JPEG", exif=exif, comment=SECRET.encode(), progressive=progressive)
    path.write_bytes(path.read_bytes() + SECRET.encode())
    _same_film_without_a_name(path, tmp_path)


@pytest.mark.parametrize("mode", ["L", "I;16", "RGB", "P", "CMYK"])
def test_pictures_of_every_kind_are_kept_as_they_look(chest, tmp_path, mode):
    metadata = PngImagePlugin.PngInfo()
    metadata.add_text("Patient", SECRET)
    grey = Image.fromarray((chest // 16).astype(np.uint8))
    picture = Image.fromarray(chest) if mode == "I;16" else grey.convert(mode)
    suffix = "jpg" if mode == "CMYK" else "png"
    path = tmp_path / f"film.{suffix}"
    picture.save(path, pnginfo=metadata) if suffix == "png" else picture.save(path, comment=SECRET.encode())
    _same_film_without_a_name(path, tmp_path)


def test_a_turned_png_stays_upright(chest, tmp_path):
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 8, SECRET
    path = tmp_path / "film.png"
    Image.fromarray((chest // 16).astype(np.uint8)).save(path, exif=exif)
    _same_film_without_a_name(path, tmp_path)
    assert clean_film(path, LIMITS).metadata.facts.size.width == chest.shape[0]


def test_a_film_is_cleaned_by_the_process_that_may_die(chest, tmp_path):
    path = save(planted(chest), tmp_path / "film.dcm")
    local = clean_film(path, LIMITS)
    with Decoder() as decoder:
        remote = decoder.clean(path, LIMITS)
        with pytest.raises(FilmError, match="empty"):
            decoder.clean(_file(tmp_path / "empty.dcm", b""), LIMITS)
    assert (remote.metadata, remote.content) == (local.metadata, local.content)
    assert np.array_equal(remote.preview, local.preview)
    assert max(remote.preview.shape) == PREVIEW


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0\x00", b"\0" * 128 + b"DICM"])
def test_what_is_cut_short_is_refused_in_one_sentence(tmp_path, content):
    with pytest.raises(FilmError):
        clean_film(_file(tmp_path / "film", content), LIMITS)


def _file(path, content):
    path.write_bytes(content)
    return path


def _same_film_without_a_name(path, tmp_path):
    content = path.read_bytes()
    assert SECRET.encode() in content
    clean = clean_film(path, LIMITS)
    kept = _file(tmp_path / f"kept{clean.metadata.suffix}", clean.content)
    assert np.array_equal(read_film(kept).pixels, read_film(path).pixels)
    assert np.array_equal(read_prepared(kept, LIMITS, SEEN).pixels, read_prepared(path, LIMITS, SEEN).pixels)
    facts = f"{clean.metadata.to_json()}"
    assert SECRET.lower().encode() not in clean.content.lower()
    assert SECRET.lower() not in facts.lower()
    if clean.metadata.facts.format == "DICOM":
        assert "PatientName" not in dcmread(kept)


@pytest.mark.parametrize("kind", ["LT", "UT", "OW"])
def test_text_in_a_look_up_table_that_nothing_uses_stays_behind(chest, tmp_path, kind):
    dataset = planted(chest)
    text = SECRET + " " if kind != "OW" else (SECRET + " ").encode()
    dataset.add_new("LUTData", kind, text)
    dataset.add_new("RedPaletteColorLookupTableData", kind, text)
    _same_film_without_a_name(save(dataset, tmp_path / "film.dcm"), tmp_path)


def test_what_stands_behind_a_look_up_tables_end_stays_behind(chest, tmp_path):
    (table,) = lut()
    table.LUTData += (SECRET + " ").encode()
    _same_film_without_a_name(save(planted(chest, VOILUTSequence=[table]), tmp_path / "film.dcm"), tmp_path)


@pytest.mark.filterwarnings("ignore:The pixel data")  # pydicom remarks on such films; the decoder's process is silent
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("high", [11, 13])
def test_writing_in_bits_that_are_no_greys_stays_behind(chest, tmp_path, signed, high):
    bits = 12
    greys = chest.astype(np.int32) - (2048 if signed else 0)
    stored = (greys & 0xFFF) << (high - bits + 1)
    overlay = np.zeros_like(stored)
    overlay[50:60, 50:200] = 0x8000
    pixels = (stored | overlay).astype(np.uint16)
    dataset = planted(pixels, BitsStored=bits, HighBit=high, PixelRepresentation=int(signed))
    path = save(dataset, tmp_path / "film.dcm")
    _same_film_without_a_name(path, tmp_path)
    kept = np.frombuffer(dcmread(tmp_path / "kept.dcm").PixelData, np.uint16).reshape(pixels.shape)
    upper = kept >> (high + 1)
    negative = (greys < 0) if signed and high == bits - 1 else np.zeros_like(greys, bool)
    assert np.array_equal(upper != 0, negative)


def test_what_hides_behind_a_pictures_pixels_stays_behind(chest, tmp_path):
    out = io.BytesIO()
    Image.fromarray((chest // 16).astype(np.uint8)).save(out, "PNG")
    content = out.getvalue()
    hidden = _png_chunk(b"IDAT", SECRET.encode()) + _png_chunk(b"tRNS", SECRET.encode()[:2] + SECRET.encode())
    path = _file(tmp_path / "film.png", content[:-12] + hidden + content[-12:])
    _same_film_without_a_name(path, tmp_path)


def test_a_refusal_does_not_repeat_what_a_header_says(chest, tmp_path):
    for number, change in enumerate(({"Modality": SECRET.upper()}, {"PhotometricInterpretation": SECRET.upper()})):
        path = save(radiograph(chest, **change), tmp_path / f"film{number}.dcm")
        with pytest.raises(FilmError) as refusal:
            clean_film(path, LIMITS)
        assert SECRET.lower() not in str(refusal.value).lower()


def _png_chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
