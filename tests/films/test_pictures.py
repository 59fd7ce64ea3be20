import io
import struct
import zlib

import cv2
import numpy as np
import pytest
from PIL import Image

from medgrape.config import FilmLimits, Preprocessing
from medgrape.films.film import FilmError
from medgrape.films.reading import read_film, read_prepared, upright_size
from medgrape.geometry import FilmSize


def saved(path, array, **options):
    Image.fromarray(array).save(path, **options)
    return path


@pytest.fixture(scope="module")
def eight_bit(chest):
    return (chest // 16).astype(np.uint8)


def test_an_eight_bit_png_is_read_as_it_is(tmp_path, eight_bit):
    film = read_film(saved(tmp_path / "a.png", eight_bit))
    assert np.array_equal(film.pixels, eight_bit)
    assert (film.facts.format, film.facts.size, film.facts.bits) == ("PNG", FilmSize(300, 200), 8)
    assert film.facts.applied == film.facts.warnings == ()


def test_a_twelve_bit_film_in_a_sixteen_bit_png_fills_the_grey_range(tmp_path, chest):
    film = read_film(saved(tmp_path / "a.png", chest))
    assert film.pixels.dtype == np.uint16
    assert (film.pixels.min(), film.pixels.max()) == (0, 65535)
    order = np.argsort(chest, axis=None)
    assert (np.diff(film.pixels.ravel()[order].astype(int)) >= 0).all(), "brighter stays brighter"


def test_a_grey_jpeg_keeps_its_greys_to_within_jpegs_own_error(tmp_path, eight_bit):
    film = read_film(saved(tmp_path / "a.jpg", eight_bit, quality=95))
    assert np.abs(film.pixels.astype(int) - eight_bit).mean() < 2


def test_a_grey_film_in_colour_channels_is_read_without_a_warning(tmp_path, eight_bit):
    film = read_film(saved(tmp_path / "a.png", np.stack([eight_bit] * 3, axis=-1)))
    assert np.abs(film.pixels.astype(int) - eight_bit).max() <= 1
    assert film.facts.warnings == ()


def test_a_colour_photograph_is_taken_with_a_warning(tmp_path, eight_bit):
    photograph = np.stack([eight_bit, eight_bit // 2, 255 - eight_bit], axis=-1)
    film = read_film(saved(tmp_path / "a.jpg", photograph))
    assert film.pixels.ndim == 2
    assert "colour picture" in film.facts.warnings[0]


@pytest.mark.parametrize("mode", ["LA", "RGBA", "P", "CMYK"])
def test_unusual_layouts_become_grey(tmp_path, eight_bit, mode):
    path = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
    Image.fromarray(eight_bit).convert(mode).save(path)
    assert read_film(path).pixels.shape == (200, 300)


def test_a_film_that_lies_on_its_side_is_turned_as_exif_says(tmp_path, eight_bit):
    turned = Image.Exif()
    turned[0x0112] = 6  # the camera was held a quarter turn: the first row is the right-hand side
    path = saved(tmp_path / "a.jpg", eight_bit, exif=turned, quality=95)
    film = read_film(path)
    assert film.facts.size == FilmSize(200, 300) == upright_size(path).size
    assert np.abs(film.pixels.astype(int) - np.rot90(eight_bit, -1)).mean() < 2
    assert "EXIF" in film.facts.applied[0]


def test_what_the_model_sees_is_the_area_average_of_the_film(tmp_path):
    big = cv2.resize(np.random.default_rng(0).integers(0, 255, (40, 40)).astype(np.uint8), (1100, 900))
    seen = read_prepared(saved(tmp_path / "a.png", big), preprocessing=Preprocessing(size=224))
    expected = cv2.resize(big, (224, 224), interpolation=cv2.INTER_AREA)
    assert seen.pixels.shape == (224, 224)
    assert seen.facts.size == FilmSize(1100, 900), "facts are those of the original film"
    assert np.abs(seen.pixels.astype(int) - expected).mean() < 1


@pytest.mark.parametrize("side", [64, 224, 700])
def test_a_mark_is_seen_where_its_box_moves_to(tmp_path, side):
    film = np.zeros((600, 900), np.uint8)
    film += np.random.default_rng(0).integers(0, 9, film.shape, dtype=np.uint8)
    film[120:180, 600:700] = 200
    seen = read_prepared(saved(tmp_path / "a.png", film), preprocessing=Preprocessing(size=side)).pixels
    rows, columns = np.nonzero(seen > 100)
    assert (rows.min() / side, (rows.max() + 1) / side) == pytest.approx((0.2, 0.3), abs=1.5 / side)
    assert (columns.min() / side, (columns.max() + 1) / side) == pytest.approx((2 / 3, 7 / 9), abs=1.5 / side)


@pytest.mark.parametrize("channels", [3, 4])
def test_a_colour_png_of_sixteen_bits_keeps_its_depth(tmp_path, chest, channels):
    deep = np.stack([chest // 4] * 3 + [np.full_like(chest, 65535)] * (channels - 3), axis=-1)
    cv2.imwrite(str(tmp_path / "a.png"), deep)
    film = read_film(tmp_path / "a.png")
    assert film.facts.bits == 16
    assert len(np.unique(film.pixels)) > 500
    assert np.corrcoef(film.pixels.ravel(), chest.ravel())[0, 1] > 0.9999


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("deep", [False, True])
def test_every_exif_orientation_stands_upright_at_either_depth(tmp_path, chest, orientation, deep):
    stored = np.stack([chest * (16 if deep else 1) // (1 if deep else 16)] * 3, axis=-1).astype(
        np.uint16 if deep else np.uint8
    )
    cv2.imwrite(str(tmp_path / "plain.png"), stored)
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = with_exif(tmp_path / "plain.png", exif)
    upright = {
        1: chest, 2: chest[:, ::-1], 3: chest[::-1, ::-1], 4: chest[::-1], 5: chest.T,
        6: np.rot90(chest, -1), 7: chest[::-1, ::-1].T, 8: np.rot90(chest, 1),
    }[orientation]  # fmt: skip
    film = read_film(path)
    assert film.pixels.shape == upright.shape == (film.facts.size.height, film.facts.size.width)
    assert np.corrcoef(film.pixels.ravel(), upright.ravel())[0, 1] > 0.999
    assert upright_size(path).turned == (orientation != 1)


def with_exif(path, exif):
    """The same PNG with an eXIf chunk before its pixels."""
    data, chunk = path.read_bytes(), exif.tobytes().removeprefix(b"Exif\x00\x00")
    packed = struct.pack(">I", len(chunk)) + b"eXIf" + chunk + struct.pack(">I", zlib.crc32(b"eXIf" + chunk))
    path.write_bytes(data[:33] + packed + data[33:])
    return path


def test_a_deep_colour_photograph_is_warned_of_like_any_other(tmp_path, chest):
    cv2.imwrite(str(tmp_path / "a.png"), np.stack([chest, chest // 3, 4095 - chest], axis=-1))
    assert "colour picture" in read_film(tmp_path / "a.png").facts.warnings[0]


def test_a_film_with_broken_exif_is_read_with_a_warning(tmp_path, eight_bit):
    path = saved(tmp_path / "a.jpg", eight_bit, exif=b"Exif\x00\x00XX\x00\x00nonsense")
    film = read_film(path)
    assert film.facts.size == FilmSize(300, 200)
    assert "EXIF" in film.facts.warnings[0]


def test_the_size_of_a_png_is_known_without_unpacking_it(tmp_path):
    (tmp_path / "stub.png").write_bytes(png_header(9_000, 8_000))
    assert upright_size(tmp_path / "stub.png").size == FilmSize(9_000, 8_000)


def test_an_orientation_that_exif_does_not_know_turns_nothing(tmp_path, eight_bit):
    odd = Image.Exif()
    odd[0x0112] = 9
    film = read_film(saved(tmp_path / "a.jpg", eight_bit, exif=odd))
    assert film.facts.applied == ()
    assert film.facts.size == FilmSize(300, 200)


def png_header(width, height, depth=8, colour=0):
    """A PNG that declares a size and has next to nothing behind it."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 10)) + chunk(b"IEND", b"")
    )


def animated(eight_bit):
    data = io.BytesIO()
    first, second = Image.fromarray(eight_bit), Image.fromarray(255 - eight_bit)
    first.save(data, "PNG", save_all=True, append_images=[second])
    return data.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"patient,finding\n1,none\n" * 50, "not a film"),
        (b"GIF89a" + b"\0" * 100, "not a film"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "damaged"),
        (b"\xff\xd8\xff\xe0" + b"\1" * 500, "damaged"),
        (png_header(100_000, 100_000), "pixels"),
        (png_header(9_000, 9_000), "limit of 64,000,000"),
        (png_header(2_000, 2_000), "times its size"),
        (png_header(64, 64, depth=1), "1 bit per pixel"),
    ],
)
def test_what_is_no_film_is_refused_in_one_sentence(tmp_path, content, reason):
    path = tmp_path / "a.png"
    path.write_bytes(content)
    with pytest.raises(FilmError, match=reason) as refusal:
        read_film(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_film_cut_short_is_refused(tmp_path, eight_bit):
    for name in ("a.png", "a.jpg"):
        path = saved(tmp_path / name, eight_bit)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        with pytest.raises(FilmError, match="cut short"):
            read_film(path)


def test_frames_and_blank_films_are_refused(tmp_path, eight_bit):
    (tmp_path / "two.png").write_bytes(animated(eight_bit))
    with pytest.raises(FilmError, match="2 frames"):
        read_film(tmp_path / "two.png")
    with pytest.raises(FilmError, match="same value"):
        read_film(saved(tmp_path / "blank.png", np.full((50, 50), 7, np.uint8)), FilmLimits(max_ratio=1e6))


def test_limits_can_be_set(tmp_path, eight_bit):
    path = saved(tmp_path / "a.png", eight_bit)
    with pytest.raises(FilmError, match="--max-pixels"):
        read_film(path, FilmLimits(max_pixels=59_999))
    with pytest.raises(FilmError, match="--max-bytes"):
        read_film(path, FilmLimits(max_bytes=100))
    with pytest.raises(FilmError, match="--max-ratio"):
        read_film(path, FilmLimits(max_ratio=1.0))
    assert read_film(path, FilmLimits(max_pixels=60_000)).facts.size.pixels == 60_000


def test_a_missing_file_and_a_folder_are_one_sentence(tmp_path):
    for path in (tmp_path / "none.png", tmp_path):
        with pytest.raises(FilmError, match="cannot be opened"):
            read_film(path)


def test_equalised_films_have_contrast_where_they_had_little(tmp_path):
    """A faint chequer on a dark and on a bright half: 4 greys of difference become more."""
    rows, columns = np.indices((256, 256)) // 8
    film = np.where(columns < 16, 30, 200) + 4 * ((rows + columns) % 2)
    path = tmp_path / "faint.png"
    cv2.imwrite(str(path), film.astype(np.uint8))
    plain, equalised = (
        read_prepared(path, preprocessing=Preprocessing(size=256, equalise=equalise)).pixels.astype(int)
        for equalise in (False, True)
    )
    for half in (slice(16, 100), slice(150, 240)):
        assert equalised[:, half].std() > plain[:, half].std()
    assert equalised[:, 150:].mean() > equalised[:, :100].mean()
