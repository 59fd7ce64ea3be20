import os
import signal
import subprocess
import sys
import threading
import time

import cv2
import numpy as np
import pytest

from medgrape.config import FilmLimits, Preprocessing
from medgrape.errors import UserError
from medgrape.films.decoder import Decoder, DecoderPool, Request
from medgrape.films.film import Film, FilmError
from medgrape.films.reading import read_film, read_prepared


@pytest.fixture(scope="module")
def decoder():
    with Decoder() as running:
        yield running


def test_a_film_comes_through_the_other_process_unchanged(decoder, films_folder):
    path = films_folder / "film0.png"
    remote, local = decoder.read(Request(path, FilmLimits())), read_film(path)
    assert remote.facts == local.facts
    assert np.array_equal(remote.pixels, local.pixels)
    small = decoder.read(Request(path, FilmLimits(), Preprocessing(size=32)))
    assert np.array_equal(small.pixels, read_prepared(path, preprocessing=Preprocessing(size=32)).pixels)


def test_a_refusal_comes_through_as_the_same_sentence(decoder, tmp_path):
    with pytest.raises(FilmError) as remote:
        decoder.read(Request(tmp_path / "none.png", FilmLimits()))
    with pytest.raises(FilmError) as local:
        read_film(tmp_path / "none.png")
    assert str(remote.value) == str(local.value)


def test_a_decoder_that_dies_is_reported_as_a_broken_film_and_started_anew(decoder, films_folder, tmp_path):
    decoder.read(Request(films_folder / "film0.png", FilmLimits()))
    pipe = tmp_path / "never-ends"
    os.mkfifo(pipe)
    killer = threading.Timer(0.5, lambda: os.kill(decoder.process_id, signal.SIGKILL))
    killer.start()
    with pytest.raises(FilmError, match="broke the decoder"):
        decoder.read(Request(pipe, FilmLimits()))
    killer.join()
    assert decoder.read(Request(films_folder / "film1.png", FilmLimits())).facts.size.width == 96


def test_a_film_that_takes_forever_is_given_up(tmp_path):
    pipe = tmp_path / "never-ends"
    os.mkfifo(pipe)
    with Decoder(seconds=2.0) as impatient:
        start = time.monotonic()
        with pytest.raises(FilmError, match="took too long"):
            impatient.read(Request(pipe, FilmLimits()))
        assert time.monotonic() - start < 30


def test_many_films_come_back_in_order_with_refusals_in_their_places(films_folder):
    (films_folder / "film3.png").write_bytes(b"not a film at all")
    requests = [Request(films_folder / f"film{number}.png", FilmLimits()) for number in range(8)]
    with DecoderPool(2) as pool:
        answers = list(pool.read_all(requests))
    assert [isinstance(answer, Film) for answer in answers] == [True] * 3 + [False] + [True] * 4
    for number in (0, 7):
        stored = cv2.imread(str(films_folder / f"film{number}.png"), cv2.IMREAD_GRAYSCALE)
        assert np.array_equal(answers[number].pixels, stored)


def test_a_closed_decoder_leaves_no_process_behind(films_folder):
    with Decoder() as decoder:
        decoder.read(Request(films_folder / "film0.png", FilmLimits()))
        number = decoder.process_id
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_nothing_in_the_current_folder_passes_for_a_module_of_ours(films_folder, tmp_path, monkeypatch):
    (tmp_path / "PIL.py").write_text(f"open({str(tmp_path / 'taken-over')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    with Decoder() as decoder:
        decoder.read(Request(films_folder / "film0.png", FilmLimits()))
    assert not (tmp_path / "taken-over").exists()


def test_a_tighter_limit_on_memory_than_ours_is_no_fault_of_the_film(films_folder):
    limited = f"ulimit -v 3500000; {sys.executable} -m medgrape film {films_folder / 'film0.png'}"
    ended = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_decoder_that_was_started_ahead_is_the_one_that_reads(films_folder):
    with Decoder() as decoder:
        decoder.start()
        ahead = decoder.process_id
        assert decoder.read(Request(films_folder / "film0.png", FilmLimits())).pixels.size
        assert decoder.process_id == ahead


def test_a_decoder_that_cannot_start_is_reported_as_that(films_folder, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Decoder() as decoder, pytest.raises(UserError, match="cannot start"):
        decoder.read(Request(films_folder / "film0.png", FilmLimits()))
