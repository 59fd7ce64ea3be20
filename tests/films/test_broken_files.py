"""Whatever bytes arrive, reading ends with a film or with one sentence."""

import contextlib
import gc
import io
import resource
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from pydicom.uid import JPEG2000Lossless, JPEGLSLossless, RLELossless

from medgrape.config import FilmLimits, Preprocessing
from medgrape.films.decoder import Decoder, DecoderPool, Request
from medgrape.films.film import Film, FilmError
from medgrape.films.reading import read_film, read_prepared, upright_size
from scenes import radiograph

LIMITS = FilmLimits(max_pixels=2_000_000)
"""Low, so that a mutated header cannot make the test itself slow."""

# Codecs remark on odd headers by warning; here only what is raised counts.
pytestmark = pytest.mark.filterwarnings("ignore")


def originals() -> dict[str, bytes]:
    down, across = np.mgrid[0:40, 0:56]
    film = (1800 + 30 * down + 9 * across).astype(np.uint16)
    files = {}
    for name, picture in {
        "png": Image.fromarray((film // 16).astype(np.uint8)),
        "png16": Image.fromarray(film),
    }.items():
        data = io.BytesIO()
        picture.save(data, "PNG")
        files[name] = data.getvalue()
    data = io.BytesIO()
    Image.fromarray((film // 16).astype(np.uint8)).save(data, "JPEG")
    files["jpeg"] = data.getvalue()
    for name, syntax in {"plain": None, "rle": RLELossless, "j2k": JPEG2000Lossless, "jls": JPEGLSLossless}.items():
        dataset = radiograph(film, WindowCenter=2000, WindowWidth=900, PatientOrientation=["L", "F"])
        if syntax is not None:
            dataset.compress(syntax)
        data = io.BytesIO()
        dataset.save_as(data, enforce_file_format=True)
        files[name] = data.getvalue()
    return files


ORIGINALS = originals()


def mutated(original: bytes, changes: list[tuple[float, int]], cut: float) -> bytes:
    data = bytearray(original)
    for place, value in changes:
        data[int(place * (len(data) - 1))] = value
    return bytes(data[: max(1, int(cut * len(data)))])


def outcome(read: Callable[[Path, FilmLimits], Film], path: Path) -> Film | FilmError:
    try:
        return read(path, LIMITS)
    except FilmError as refusal:
        return refusal


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("mutated") / "film"


@pytest.mark.parametrize("kind", ["png", "png16", "plain", "rle"])
@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=12),
    cut=st.one_of(st.just(1.0), st.floats(0, 1)),
)
def test_mutated_bytes_end_in_a_film_or_one_sentence(scratch, kind, changes, cut):
    """In this very process, for the decoders written in Python or known to be sound."""
    scratch.write_bytes(mutated(ORIGINALS[kind], changes, cut))
    for read in (read_film, read_prepared):
        answer = outcome(read, scratch)
        if isinstance(answer, FilmError):
            assert "\n" not in str(answer)
        else:
            assert answer.pixels.dtype in (np.uint8, np.uint16)
            assert answer.pixels.min() < answer.pixels.max()
    with contextlib.suppress(FilmError):
        upright_size(scratch)


def test_two_hundred_broken_files_neither_crash_nor_fill_memory(tmp_path):
    """Through the decoder process, codecs in C included."""
    rng = np.random.default_rng(7)
    paths = []
    for number in range(200):
        kind = list(ORIGINALS)[number % len(ORIGINALS)]
        changes = [(float(rng.random()), int(rng.integers(256))) for _ in range(rng.integers(1, 40))]
        path = tmp_path / f"{number}-{kind}"
        path.write_bytes(mutated(ORIGINALS[kind], changes, float(rng.choice([1.0, 1.0, rng.random()]))))
        paths.append(path)
    requests = [Request(path, LIMITS, Preprocessing(size=512)) for path in paths]
    with DecoderPool() as pool:
        for _ in pool.read_all(requests[:50]):
            pass
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        kinds = Counter(type(answer) for answer in pool.read_all(requests))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert kinds[Film] + kinds[FilmError] == 200
    assert kinds[FilmError] > 40, "the test must really break files"
    assert grown < 15_000, "kilobytes; the films that could be read are 256 each, 30,000 in all"


def test_one_decoder_does_not_grow_while_it_reads_broken_files(tmp_path):
    rng = np.random.default_rng(11)
    path = tmp_path / "film"

    def read_some(count: int) -> int:
        for number in range(count):
            kind = list(ORIGINALS)[number % len(ORIGINALS)]
            changes = [(float(rng.random()), int(rng.integers(256))) for _ in range(8)]
            path.write_bytes(mutated(ORIGINALS[kind], changes, 1.0))
            with contextlib.suppress(FilmError):
                decoder.read(Request(path, LIMITS))
        status = Path(f"/proc/{decoder.process_id}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    with Decoder() as decoder:
        before = read_some(200)  # codecs take their working memory once
        assert read_some(300) - before < 20_000, "kilobytes"


@pytest.mark.parametrize("kind", list(ORIGINALS))
def test_the_originals_themselves_are_fine(tmp_path, kind):
    (tmp_path / "film").write_bytes(ORIGINALS[kind])
    assert read_film(tmp_path / "film").facts.size.width == 56
