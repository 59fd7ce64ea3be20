import signal
import subprocess
import sys

import cv2
import numpy as np
import pytest

from medgrape.config import Config, FilmLimits, Preprocessing
from medgrape.datasets import cache as cache_module
from medgrape.datasets.cache import FilmCache
from medgrape.films.decoder import DecoderPool
from medgrape.films.film import FilmError
from medgrape.films.reading import read_prepared

SMALL = Config(preprocessing=Preprocessing(size=32))

BUILD = """
import sys
from pathlib import Path
from medgrape.config import Config, FilmLimits, Preprocessing
from medgrape.datasets import cache
cache.SHARD = int(sys.argv[3])
paths = sorted(Path(sys.argv[1]).glob("*.png"))
films = cache.FilmCache(Path(sys.argv[2]), Config(preprocessing=Preprocessing(size=32))).films(paths, workers=1)
print(len(films), int(sum(int(films[place].sum()) for place in range(len(films)))))
"""


@pytest.fixture
def paths(films_folder):
    return sorted(films_folder.glob("*.png"))


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(cache_module, "SHARD", 3)


@pytest.mark.usefixtures("small_shards")
def test_the_cache_holds_exactly_what_reading_gives(tmp_path, paths):
    films = FilmCache(tmp_path / "c", SMALL).films(paths)
    assert len(films) == 8
    for position, path in enumerate(paths):
        assert np.array_equal(films[position], read_prepared(path, preprocessing=SMALL.preprocessing).pixels)


def test_a_second_opening_decodes_nothing(tmp_path, paths, monkeypatch):
    FilmCache(tmp_path / "c", SMALL).films(paths)
    monkeypatch.setattr(DecoderPool, "read_all", None)
    assert len(FilmCache(tmp_path / "c", SMALL).films(paths)) == 8


@pytest.mark.usefixtures("small_shards")
def test_a_changed_film_is_decoded_again_and_the_others_are_not(tmp_path, paths, monkeypatch):
    cache = FilmCache(tmp_path / "c", SMALL)
    before = np.array(cache.films(paths)[4])
    picture = cv2.imread(str(paths[4]), cv2.IMREAD_GRAYSCALE)
    cv2.imwrite(str(paths[4]), 255 - picture)
    decoded = []
    original = DecoderPool.read_all

    def spy(self, requests):
        requests = list(requests)
        decoded.extend(request.path.name for request in requests)
        return original(self, requests)

    monkeypatch.setattr(DecoderPool, "read_all", spy)
    after = cache.films(paths)
    assert decoded == ["film3.png", "film4.png", "film5.png"], "the shard of the changed film alone"
    assert not np.array_equal(after[4], before)


def test_another_size_is_another_entry(tmp_path, paths):
    FilmCache(tmp_path / "c", SMALL).films(paths)
    larger = Config(preprocessing=Preprocessing(size=48))
    assert FilmCache(tmp_path / "c", larger).films(paths)[0].shape == (48, 48)


def test_a_film_that_cannot_be_read_keeps_its_place_and_its_reason(tmp_path, paths):
    paths[2].write_bytes(b"no film")
    paths[5].unlink()
    for _ in range(2):  # built, then opened again
        films = FilmCache(tmp_path / "c", SMALL).films(paths)
        assert sorted(films.refused) == [2, 5]
        assert films.readable() == [0, 1, 3, 4, 6, 7]
        with pytest.raises(FilmError, match="not a film"):
            films[2]
        assert np.array_equal(films[6], read_prepared(paths[6], preprocessing=SMALL.preprocessing).pixels)


def test_a_shard_cut_short_is_built_again(tmp_path, paths):
    cache = FilmCache(tmp_path / "c", SMALL)
    whole = np.array(cache.films(paths)[7])
    shard = next((tmp_path / "c").glob("*.npy"))
    for broken in (shard.read_bytes()[:500], b"\0" * shard.stat().st_size):
        shard.write_bytes(broken)
        assert np.array_equal(cache.films(paths)[7], whole)


@pytest.mark.parametrize("index", ["[1, 2]", '{"a": 5}', "nonsense", '{"a": [1]}'])
def test_a_broken_index_is_made_anew(tmp_path, paths, index):
    cache = FilmCache(tmp_path / "c", SMALL)
    cache.films(paths)
    (tmp_path / "c/contents.json").write_text(index)
    assert len(cache.films(paths)) == 8


def test_two_processes_may_build_at_once(tmp_path, films_folder, paths):
    command = [sys.executable, "-c", BUILD, str(films_folder), str(tmp_path / "c"), "2"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    sums = [process.communicate(timeout=60)[0].split() for process in both]
    assert sums[0] == sums[1]
    expected = sum(int(read_prepared(path, preprocessing=SMALL.preprocessing).pixels.sum()) for path in paths)
    assert sums[0] == ["8", str(expected)]


KILLED_WHILE_WRITING = """
import os, signal
import numpy as np

def half(file, array):
    file.write(array.tobytes()[: array.size // 2])
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)

calls, whole = [], np.save
np.save = lambda file, array: (whole if len(calls) < {after} else half)(file, calls.append(1) or array)
"""


@pytest.mark.parametrize("after", [0, 3])
def test_a_build_that_is_killed_while_it_writes_leaves_only_whole_shards(tmp_path, films_folder, paths, after):
    script = KILLED_WHILE_WRITING.replace("{after}", str(after)) + BUILD
    command = [sys.executable, "-c", script, str(films_folder), str(tmp_path / "c"), "1"]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == -signal.SIGKILL
    assert len(list((tmp_path / "c").glob("*.npy"))) == after
    assert list((tmp_path / "c").glob(".*.part")), "it was really killed in the middle of a file"
    films = FilmCache(tmp_path / "c", SMALL).films(paths)
    for position, path in enumerate(paths):
        assert np.array_equal(films[position], read_prepared(path, preprocessing=SMALL.preprocessing).pixels)


def test_a_film_that_was_refused_is_tried_again(tmp_path, paths):
    strict = Config(limits=FilmLimits(max_pixels=100), preprocessing=SMALL.preprocessing)
    assert len(FilmCache(tmp_path / "c", strict).films(paths).refused) == 8
    assert not FilmCache(tmp_path / "c", SMALL).films(paths).refused


def test_a_place_beyond_the_films_is_an_index_error(tmp_path, paths):
    films = FilmCache(tmp_path / "c", SMALL).films(paths)
    with pytest.raises(IndexError):
        films[8]
