"""DICOM films, against pydicom's own slow functions and against what the standard says."""

import io
import zlib
from itertools import product

import numpy as np
import pytest
from pydicom import Dataset, dcmread
from pydicom.encaps import encapsulate
from pydicom.pixels import apply_modality_lut, apply_voi_lut
from pydicom.sequence import Sequence
from pydicom.uid import (
    MPEG2MPML,
    CTImageStorage,
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ImplicitVRLittleEndian,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    JPEGLosslessSV1,
    JPEGLSLossless,
    RLELossless,
    SecondaryCaptureImageStorage,
)

from medgrape.config import FilmLimits, Preprocessing
from medgrape.films.dicom.reader import declared_size
from medgrape.films.film import FilmError
from medgrape.films.reading import read_film, read_prepared, upright_size
from medgrape.geometry import FilmSize
from scenes import radiograph, save


def by_pydicom(dataset: Dataset) -> np.ndarray:
    """The slow twin: the whole pipeline in floating point, a step at a time, scaled to 16 bit."""
    values = apply_modality_lut(dataset.pixel_array, dataset)
    values = np.asarray(apply_voi_lut(values, dataset, prefer_lut=True), float)
    if "WindowCenter" in dataset and not dataset.get("VOILUTSequence"):
        top = 2.0**dataset.BitsStored - 1
        slope, intercept = float(dataset.get("RescaleSlope", 1)), float(dataset.get("RescaleIntercept", 0))
        low, high = sorted(
            (intercept, top * slope + intercept)
        )  # pydicom windows onto the range of rescaled stored values
    elif dataset.get("VOILUTSequence"):
        low, high = 0.0, 2.0 ** dataset.VOILUTSequence[0].LUTDescriptor[2] - 1
    else:
        low, high = values.min(), values.max()
    grey = (values - low) / (high - low)
    if dataset.PhotometricInterpretation == "MONOCHROME1":
        grey = 1 - grey
    return grey * 65535


@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
@pytest.mark.parametrize(
    "header",
    [
        {},
        {"WindowCenter": 2000, "WindowWidth": 1500},
        {"WindowCenter": [2000, 100], "WindowWidth": [1500, 20]},
        {"WindowCenter": 2000, "WindowWidth": 1500, "VOILUTFunction": "LINEAR_EXACT"},
        {"WindowCenter": 2000, "WindowWidth": 1500, "VOILUTFunction": "SIGMOID"},
        {"WindowCenter": 900, "WindowWidth": 700, "RescaleSlope": 0.5, "RescaleIntercept": -100},
    ],
    ids=["none", "window", "two", "exact", "sigmoid", "rescaled"],
)
def test_greys_agree_with_pydicoms_slow_pipeline(tmp_path, chest, photometric, header):
    dataset = radiograph(chest, PhotometricInterpretation=photometric, **header)
    film = read_film(save(dataset, tmp_path / "a.dcm"))
    assert np.abs(film.pixels - by_pydicom(dataset)).max() <= 40, "within 1/1600 of the grey range"


def test_a_lookup_table_is_applied_before_the_inversion(tmp_path, chest):
    table = Dataset()
    table.LUTDescriptor = [4096, 0, 16]
    table.add_new("LUTData", "OW", ((np.arange(4096) / 4095) ** 2 * 65535).astype(np.uint16).tobytes())
    dataset = radiograph(chest, VOILUTSequence=Sequence([table]), PhotometricInterpretation="MONOCHROME1")
    film = read_film(save(dataset, tmp_path / "a.dcm"))
    assert film.facts.applied == ("VOI LUT", "MONOCHROME1 inverted")
    assert np.abs(film.pixels - by_pydicom(dataset)).max() <= 2


@pytest.mark.parametrize("function", ["LINEAR", "LINEAR_EXACT", "SIGMOID", None])
def test_a_negative_slope_makes_what_is_stored_large_dark(tmp_path, chest, function):
    header = {"RescaleSlope": -0.5, "RescaleIntercept": 100}
    if function is not None:
        header |= {"WindowCenter": -900, "WindowWidth": 700, "VOILUTFunction": function}
    film = read_film(save(radiograph(chest, **header), tmp_path / "a.dcm"))
    values = -0.5 * chest + 100.0
    by_the_standard = {  # PS3.3 C.11.2.1
        "LINEAR": (values - (-900 - 0.5)) / (700 - 1) + 0.5,
        "LINEAR_EXACT": (values + 900) / 700 + 0.5,
        "SIGMOID": 1 / (1 + np.exp(-4 * (values + 900) / 700)),
        None: (values - values.min()) / np.ptp(values),
    }[function]
    assert np.abs(film.pixels / 65535 - np.clip(by_the_standard, 0, 1)).max() < 1e-4


@pytest.mark.parametrize("bits", [8, 10, 12, 16])
def test_a_modality_table_of_any_depth_is_followed_by_the_window(tmp_path, chest, bits):
    table = Dataset()
    table.LUTDescriptor = [4096, 0, bits]
    entries = (np.linspace(0, 1, 4096) ** 2 * (2**bits - 1)).astype(np.uint16)
    table.add_new("LUTData", "OW", entries.tobytes())
    table.ModalityLUTType = "US"
    top = 2.0**bits
    header = {"ModalityLUTSequence": Sequence([table]), "WindowCenter": top / 2, "WindowWidth": top / 2}
    film = read_film(save(radiograph(chest, **header), tmp_path / "a.dcm"))
    expected = (entries[chest] - (top / 2 - 0.5)) / (top / 2 - 1) + 0.5
    assert np.abs(film.pixels / 65535 - np.clip(expected, 0, 1)).max() < 1e-3
    assert film.facts.applied[0].startswith("modality LUT, window")


def test_a_table_that_uses_half_its_range_gives_half_the_greys(tmp_path, chest):
    table = Dataset()
    table.LUTDescriptor = [4096, 0, 12]
    table.add_new("LUTData", "OW", (np.arange(4096) // 2).astype(np.uint16).tobytes())
    film = read_film(save(radiograph(chest, VOILUTSequence=Sequence([table])), tmp_path / "a.dcm"))
    assert np.abs(film.pixels / 65535 - (chest // 2) / 4095).max() < 1e-4


def test_greys_in_the_upper_bits_are_shifted_down(tmp_path, chest):
    upper = radiograph((chest << 4).astype(np.uint16), HighBit=15, WindowCenter=2048, WindowWidth=4096)
    lower = radiograph(chest, WindowCenter=2048, WindowWidth=4096)
    shifted, usual = read_film(save(upper, tmp_path / "u.dcm")), read_film(save(lower, tmp_path / "l.dcm"))
    assert np.array_equal(shifted.pixels, usual.pixels)


def test_seven_bits_fill_the_grey_range_like_eight(tmp_path, chest):
    seven = (chest // 32).astype(np.uint8)
    film = read_film(save(radiograph(seven, BitsStored=7, HighBit=6), tmp_path / "a.dcm"))
    assert film.pixels.max() == pytest.approx(seven.max() / 127 * 255, abs=1)


def test_a_palette_is_looked_up_before_pixels_are_averaged(tmp_path):
    indices = np.zeros((512, 512), np.uint8)
    indices[:, 256:] = np.random.default_rng(0).integers(0, 2, (512, 256))
    dataset = radiograph(indices, PhotometricInterpretation="PALETTE COLOR")
    white, black = b"\xff\xff", b"\x00\x00"
    for name in ("Red", "Green", "Blue"):
        setattr(dataset, f"{name}PaletteColorLookupTableDescriptor", [256, 0, 16])
        setattr(dataset, f"{name}PaletteColorLookupTableData", white + black * 255)
    seen = read_prepared(save(dataset, tmp_path / "a.dcm"), preprocessing=Preprocessing(size=64)).pixels
    assert seen[:, :30].min() == 255, "index 0 is white"
    assert seen[:, 34:].mean() == pytest.approx(127, abs=6), "half white, half black"


def test_empty_header_values_are_as_good_as_absent_ones(tmp_path, chest):
    empty = {"WindowCenter": "", "WindowWidth": "", "RescaleSlope": "", "PixelSpacing": ""}
    film = read_film(save(radiograph(chest, **empty), tmp_path / "a.dcm"))
    assert np.array_equal(film.pixels, read_film(save(radiograph(chest), tmp_path / "b.dcm")).pixels)


def test_bone_is_bright_whichever_way_the_file_stores_it(tmp_path, chest):
    usual = read_film(save(radiograph(chest), tmp_path / "2.dcm"))
    turned = radiograph(chest.max() - chest, PhotometricInterpretation="MONOCHROME1")
    negative = read_film(save(turned, tmp_path / "1.dcm"))
    assert np.corrcoef(usual.pixels.ravel(), negative.pixels.ravel())[0, 1] > 0.9999


def test_signed_pixels_and_eight_bit_pixels_are_read(tmp_path, chest):
    signed = read_film(save(radiograph(chest.astype(np.int16) - 2048), tmp_path / "s.dcm"))
    plain = read_film(save(radiograph(chest), tmp_path / "u.dcm"))
    assert np.abs(signed.pixels.astype(int) - plain.pixels).max() <= 1
    eight = (chest // 16).astype(np.uint8)
    assert np.array_equal(read_film(save(radiograph(eight), tmp_path / "e.dcm")).pixels, eight)


def test_overlay_bits_above_the_stored_ones_are_no_greys(tmp_path, chest):
    with_overlay = chest.copy()
    with_overlay[50:60, 50:60] |= 0x8000
    clean = read_film(save(radiograph(chest), tmp_path / "c.dcm"))
    film = read_film(save(radiograph(with_overlay), tmp_path / "o.dcm"))
    assert np.array_equal(film.pixels, clean.pixels)


def test_a_padded_border_does_not_darken_the_film(tmp_path, chest):
    padded = np.clip(chest, 1000, None)
    padded[:, :20] = 0
    for photometric, slope in product(("MONOCHROME1", "MONOCHROME2"), (1, -1)):
        path = save(
            radiograph(padded, PixelPaddingValue=0, PhotometricInterpretation=photometric, RescaleSlope=slope),
            tmp_path / "a.dcm",
        )
        for film in (read_film(path), read_prepared(path, preprocessing=Preprocessing(size=40))):
            assert "values 1000 to" in film.facts.applied[0]
            assert film.pixels[:, 0].max() == 0, "the border itself is black"


@pytest.mark.parametrize(
    "header", [{"WindowCenter": 90000, "WindowWidth": 10}, {"WindowCenter": 50, "WindowWidth": -5}]
)
def test_a_window_that_shows_nothing_is_replaced_with_a_warning(tmp_path, chest, header):
    film = read_film(save(radiograph(chest, **header), tmp_path / "a.dcm"))
    assert film.pixels.min() < film.pixels.max()
    assert "window" in film.facts.warnings[0]


def stored_as(upright: np.ndarray, rows_lead_to: str, columns_lead_to: str) -> np.ndarray:
    """Walk over the upright film along the directions in which the stored rows and columns lead."""
    steps = {"L": (0, 1), "R": (0, -1), "F": (1, 0), "H": (-1, 0)}  # down and right on the upright film
    (row_down, row_right), (column_down, column_right) = steps[rows_lead_to], steps[columns_lead_to]
    wide = upright.shape[0] if row_down else upright.shape[1]
    i, j = np.mgrid[0 : upright.size // wide, 0:wide]
    down, right = row_down * j + column_down * i, row_right * j + column_right * i
    return np.ascontiguousarray(upright[down - down.min(), right - right.min()])


@pytest.mark.parametrize(("rows", "columns"), [*product("LR", "FH"), *product("FH", "LR")])
def test_however_it_was_stored_the_head_is_up_and_the_left_is_on_the_right(tmp_path, chest, rows, columns):
    stored = stored_as(chest, rows, columns)
    spacing = [0.1, 0.2] if rows in "LR" else [0.2, 0.1]
    dataset = radiograph(stored, PatientOrientation=[rows, f"{columns}P"], ImagerPixelSpacing=spacing)
    path = save(dataset, tmp_path / "a.dcm")
    upright = read_film(save(radiograph(chest), tmp_path / "upright.dcm"))
    film = read_film(path)
    assert np.array_equal(film.pixels, upright.pixels)
    assert film.facts.size == FilmSize(300, 200) == upright_size(path).size
    assert upright_size(path).turned == ((rows, columns) != ("L", "F"))
    assert film.facts.spacing == (0.1, 0.2)


def test_a_lateral_film_is_left_as_it_is_with_a_warning(tmp_path, chest):
    film = read_film(save(radiograph(chest, PatientOrientation=["A", "F"], ViewPosition="LL"), tmp_path / "a.dcm"))
    assert film.facts.size == FilmSize(300, 200)
    assert any("LL" in warning for warning in film.facts.warnings)


@pytest.mark.parametrize(("rotation", "flip"), [(90, "N"), (180, "Y"), (270, "Y"), (0, "Y")])
def test_rotation_and_flip_flags_win_and_are_respected(tmp_path, chest, rotation, flip):
    dataset = radiograph(chest, ImageRotation=rotation, ImageHorizontalFlip=flip, PatientOrientation=["R", "H"])
    film = read_film(save(dataset, tmp_path / "a.dcm"))
    expected = np.rot90(read_film(save(radiograph(chest), tmp_path / "u.dcm")).pixels, -rotation // 90)
    assert np.array_equal(film.pixels, expected[:, ::-1] if flip == "Y" else expected)


def test_the_header_tells_view_side_and_spacing_and_the_patient_stays_unnamed(tmp_path, chest):
    dataset = radiograph(chest, ViewPosition="AP", ImageLaterality="U", PixelSpacing=[0.143, 0.143])
    facts = read_film(save(dataset, tmp_path / "a.dcm")).facts
    assert (facts.view, facts.laterality, facts.spacing) == ("AP", "U", (0.143, 0.143))
    assert facts.transfer_syntax == "Explicit VR Little Endian"
    assert "Doe" not in str(facts.to_json())
    assert "4711" not in str(facts.to_json())


def test_burned_in_text_is_warned_of(tmp_path, chest):
    film = read_film(save(radiograph(chest, BurnedInAnnotation="YES"), tmp_path / "a.dcm"))
    assert any("burned-in" in warning for warning in film.facts.warnings)


@pytest.mark.parametrize("syntax", [RLELossless, JPEG2000Lossless, JPEGLSLossless])
def test_compressed_films_are_the_same_films(tmp_path, chest, syntax):
    plain = save(radiograph(chest), tmp_path / "plain.dcm")
    dataset = dcmread(plain)
    dataset.compress(syntax)
    packed = save(dataset, tmp_path / "packed.dcm")
    assert np.array_equal(read_film(packed).pixels, read_film(plain).pixels)
    assert read_film(packed).facts.transfer_syntax == syntax.name


@pytest.mark.parametrize("syntax", [ImplicitVRLittleEndian, ExplicitVRBigEndian, DeflatedExplicitVRLittleEndian])
def test_every_uncompressed_syntax_is_the_same_film(tmp_path, chest, syntax):
    dataset = radiograph(chest)
    dataset.file_meta.TransferSyntaxUID = syntax
    if syntax == ExplicitVRBigEndian:
        dataset.PixelData = chest.byteswap().tobytes()
        dataset["PixelData"].VR = "OW"
    plain = read_film(save(radiograph(chest), tmp_path / "plain.dcm"))
    assert np.array_equal(read_film(save(dataset, tmp_path / "a.dcm")).pixels, plain.pixels)


def test_jpeg_lossless_which_scanners_love_is_read(tmp_path):
    """pydicom ships such a file; no free encoder writes one."""
    from pydicom.data import get_testdata_file

    path = get_testdata_file("SC_rgb_jpeg_gdcm.dcm")
    film = read_film(type(tmp_path)(str(path)))
    assert JPEGLosslessSV1.name == film.facts.transfer_syntax


def test_a_jpeg_inside_dicom_is_read_in_eight_bits(tmp_path, chest):
    from PIL import Image

    eight = (chest // 16).astype(np.uint8)
    data = io.BytesIO()
    Image.fromarray(eight).save(data, "JPEG", quality=95)
    dataset = radiograph(eight)
    dataset.file_meta.TransferSyntaxUID = JPEGBaseline8Bit
    dataset.PixelData = encapsulate([data.getvalue()])
    dataset["PixelData"].is_undefined_length = True
    film = read_film(save(dataset, tmp_path / "a.dcm"))
    assert np.abs(film.pixels.astype(int) - eight).mean() < 2


@pytest.mark.parametrize("modality", ["DX", "RG", "CR", "SC"])
def test_radiographs_of_every_age_are_taken(tmp_path, chest, modality):
    film = read_film(save(radiograph(chest, Modality=modality), tmp_path / "a.dcm"))
    assert film.facts.modality == modality


def test_a_secondary_capture_in_colour_is_made_grey(tmp_path, chest):
    eight = (chest // 16).astype(np.uint8)
    colours = np.stack([eight] * 3, axis=-1)
    dataset = radiograph(
        eight, SOPClassUID=SecondaryCaptureImageStorage, Modality="OT", SamplesPerPixel=3, PlanarConfiguration=0,
        PhotometricInterpretation="RGB", PixelData=colours.tobytes(),
    )  # fmt: skip
    film = read_film(save(dataset, tmp_path / "a.dcm"))
    assert np.abs(film.pixels.astype(int) - eight).max() <= 1


def test_an_old_file_without_preamble_is_read(tmp_path, chest):
    dataset = radiograph(chest)
    path = tmp_path / "a.dcm"
    del dataset.file_meta
    dataset.save_as(path, implicit_vr=True, little_endian=True)
    assert path.read_bytes()[128:132] != b"DICM"
    assert read_film(path).facts.transfer_syntax == "Implicit VR Little Endian"


def test_what_the_model_sees_of_a_large_radiograph_is_its_average(tmp_path):
    import cv2

    coarse = np.random.default_rng(1).integers(0, 4096, (30, 30)).astype(np.uint16)
    large = np.clip(cv2.resize(coarse, (1201, 1001), interpolation=cv2.INTER_CUBIC), 0, 4095)
    path = save(radiograph(large, WindowCenter=2048, WindowWidth=4096), tmp_path / "a.dcm")
    seen = read_prepared(path, preprocessing=Preprocessing(size=128)).pixels
    expected = cv2.resize(read_film(path).pixels, (128, 128), interpolation=cv2.INTER_AREA) / 257.0
    assert np.abs(seen - expected).mean() < 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"Modality": "CT"}, "a CT slice"),
        ({"Modality": None, "SOPClassUID": CTImageStorage}, "a CT slice"),
        ({"Modality": "MG"}, "modality MG"),
        ({"NumberOfFrames": 3}, "3 frames"),
        ({"PixelData": None}, "no pixel data"),
        ({"PixelData": b"\0" * 100}, "truncated"),
        ({"PixelData": b"\1\2" * 60000}, "same value"),
        ({"BitsAllocated": 1}, "1 bits per pixel"),
        ({"PhotometricInterpretation": "HSV"}, "photometric"),
        ({"RescaleSlope": 0, "WindowCenter": 5, "WindowWidth": 5}, "cannot be rescaled by 0"),
        ({"Rows": 60000, "Columns": 60000}, "pixels, more than the limit"),
        ({"Columns": None}, "damaged"),
    ],
)
def test_what_is_no_chest_film_is_refused_in_one_sentence(tmp_path, chest, changes, reason):
    path = save(radiograph(chest, **changes), tmp_path / "a.dcm")
    with pytest.raises(FilmError, match=reason) as refusal:
        read_film(path)
    assert "\n" not in str(refusal.value)


def test_values_that_are_no_numbers_are_refused(tmp_path, chest):
    values = chest.astype(np.float32)
    values[3, 4] = np.nan
    dataset = radiograph(chest, PixelData=None, BitsAllocated=32, FloatPixelData=values.tobytes())
    for keyword in ("BitsStored", "HighBit", "PixelRepresentation"):
        delattr(dataset, keyword)
    with pytest.raises(FilmError, match="NaN"):
        read_film(save(dataset, tmp_path / "a.dcm"))
    values[3, 4] = 1000.0
    dataset.FloatPixelData = values.tobytes()
    assert read_film(save(dataset, tmp_path / "b.dcm")).pixels.shape == chest.shape


def test_a_syntax_that_nothing_decodes_is_named(tmp_path, chest):
    dataset = radiograph(chest)
    dataset.file_meta.TransferSyntaxUID = MPEG2MPML
    dataset.PixelData = encapsulate([b"\0" * 2000])
    dataset["PixelData"].is_undefined_length = True
    with pytest.raises(FilmError, match="MPEG2"):
        read_film(save(dataset, tmp_path / "a.dcm"))


def test_a_frame_that_is_larger_than_its_header_says_is_refused_before_it_is_unpacked(tmp_path, chest):
    dataset = dcmread(save(radiograph(chest), tmp_path / "plain.dcm"))
    dataset.compress(JPEG2000Lossless)
    frame = bytearray(dataset.PixelData)
    size = frame.index(b"\xff\x4f\xff\x51") + 8
    frame[size : size + 8] = (60000).to_bytes(4, "big") * 2
    dataset.PixelData = bytes(frame)
    with pytest.raises(FilmError, match="compressed frame 60000 x 60000"):
        read_film(save(dataset, tmp_path / "a.dcm"))


def test_a_deflated_bomb_is_refused_before_it_is_inflated(tmp_path, chest):
    path = save(radiograph(chest), tmp_path / "a.dcm")
    dataset = radiograph(chest)
    dataset.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    path = save(dataset, tmp_path / "a.dcm")
    start = path.read_bytes().index(b"1.2.840.10008.1.2.1.99")
    inflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    bomb = inflater.compress(b"\0" * 300_000_000) + inflater.flush()
    data = path.read_bytes()
    meta = 132 + 12 + int.from_bytes(data[140:144], "little")
    assert start < meta
    path.write_bytes(data[:meta] + bomb)
    with pytest.raises(FilmError, match="bomb"):
        read_film(path)


def test_limits_hold_for_compressed_films_too(tmp_path, chest):
    dataset = dcmread(save(radiograph(chest), tmp_path / "plain.dcm"))
    dataset.compress(RLELossless)
    path = save(dataset, tmp_path / "a.dcm")
    with pytest.raises(FilmError, match="--max-ratio"):
        read_film(path, FilmLimits(max_ratio=0.5))


@pytest.mark.parametrize(
    "frame", [b"", b"\xff\xd8", b"\xff\xd8\x00\x00" * 9, b"\xff\x4f\xff\x51\x00", b"\xff\xd8" + b"\xff" * 50]
)
def test_a_frame_header_that_is_cut_short_has_no_size(frame):
    assert declared_size(frame) is None
