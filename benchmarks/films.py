"""Reading films against the bare decoders, and the cache against decoding."""

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pydicom
from PIL import Image
from pydicom.uid import JPEG2000Lossless, JPEGLSLossless, RLELossless

from benchmarks.ratio import Ratio, race
from medgrape.config import Config, FilmLimits, Preprocessing
from medgrape.datasets.cache import FilmCache
from medgrape.films.dicom.writer import Person, write_dicom
from medgrape.films.reading import read_prepared
from medgrape.phantoms.cohort import PROFILES, plan
from medgrape.phantoms.film import draw

READING_TARGET, CACHE_TARGET = 1.25, 20.0
PROMISED_FILMS = 60
"""Films drawn in a second on one core, at 224 x 224."""
SIDE, DICOM_SIDE = 1024, 2048


def bench_films(rounds: int = 15) -> Iterator[Ratio]:
    """Yield decoding plus preprocessing against the bare decoding of each format; then the cache."""
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)  # both sides on one core, as in a decoder process
    try:
        yield from _all(draw(plan("tb", 1, seed=0)[0], SIDE).pixels, rounds)
    finally:
        cv2.setNumThreads(threads)


def _all(film: np.ndarray, rounds: int) -> Iterator[Ratio]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, path in {**_pictures(film, folder), **_dicoms(film, folder)}.items():
            yield _reading(what, path, rounds)
        yield _cache(folder, film, rounds)
    for profile in PROFILES:
        yield _drawing(profile, rounds)


def _pictures(film: np.ndarray, folder: Path) -> dict[str, Path]:
    noise = np.random.default_rng(0).integers(0, 256, film.shape, dtype=np.uint16)
    files = {
        f"PNG 8 bit, {SIDE} px": (Image.fromarray(film), folder / "eight.png"),
        f"PNG 16 bit, {SIDE} px": (Image.fromarray(film.astype(np.uint16) * 256 + noise), folder / "sixteen.png"),
        f"JPEG, {SIDE} px": (Image.fromarray(film), folder / "film.jpg"),
    }
    for picture, path in files.values():
        picture.save(path)
    return {what: path for what, (_, path) in files.items()}


def _dicoms(film: np.ndarray, folder: Path) -> dict[str, Path]:
    large = cv2.resize(film, (DICOM_SIDE, DICOM_SIDE), interpolation=cv2.INTER_CUBIC)
    plain = folder / "plain.dcm"
    write_dicom(plain, large, Person("bench", "F", 50), "bench", "PA")
    files = {f"DICOM uncompressed, {DICOM_SIDE} px": plain}
    for what, syntax in {"RLE": RLELossless, "JPEG 2000": JPEG2000Lossless, "JPEG-LS": JPEGLSLossless}.items():
        dataset = pydicom.dcmread(plain)
        dataset.compress(syntax)
        path = folder / f"{what}.dcm"
        dataset.save_as(path)
        files[f"DICOM {what}, {DICOM_SIDE} px"] = path
    return files


def _reading(what: str, path: Path, rounds: int) -> Ratio:
    limits, preprocessing = FilmLimits(), Preprocessing()

    def ours() -> object:
        return read_prepared(path, limits, preprocessing)

    def bare_pillow() -> object:
        return np.asarray(Image.open(io.BytesIO(path.read_bytes())))

    def bare_pydicom() -> object:
        return pydicom.dcmread(path).pixel_array

    is_dicom = path.suffix == ".dcm"
    bare = bare_pydicom if is_dicom else bare_pillow
    return Ratio(what, "pydicom alone" if is_dicom else "Pillow alone", *race(ours, bare, rounds), READING_TARGET)


def _cache(folder: Path, film: np.ndarray, rounds: int) -> Ratio:
    """Compare one epoch over some films from the cache with one that decodes them."""
    paths = []
    for number in range(32):
        path = folder / f"cached-{number}.png"
        Image.fromarray(np.roll(film, number, axis=1)[::2, ::2]).save(path)
        paths.append(path)
    cached = FilmCache(folder / "cache", Config()).films(paths)

    def ours() -> object:
        return [cached[position].copy() for position in range(len(cached))]

    def decoding() -> object:
        return [read_prepared(path) for path in paths]

    what = f"second epoch, {SIDE // 2} px PNG, from the cache"
    return Ratio(what, "decoding again", *race(ours, decoding, rounds), CACHE_TARGET, at_most=False)


def _drawing(profile: str, rounds: int) -> Ratio:
    """Compare drawing with the promised speed: the only row whose alternative is a clock."""
    sittings = plan(profile, PROMISED_FILMS, seed=1)
    seconds, _ = race(lambda: [draw(sitting) for sitting in sittings], lambda: None, max(5, rounds // 3))
    return Ratio(f"drawing {PROMISED_FILMS} {profile} films, 224 px", f"{PROMISED_FILMS} films/s", seconds, 1.0, 1.0)
