"""DICOM readings by command, and what is refused."""

import json
import os
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from pydicom import dcmread
from typer.testing import CliRunner

from dicom_scenes import (
    groups,
    stored_film,
    value,
)
from medgrape.cli.app import app
from medgrape.config import FilmLimits
from medgrape.errors import UserError
from medgrape.films.reading import film_file
from medgrape.geometry import Turn
from medgrape.hospital.objects import check_source, write_dicom_reading
from medgrape.reader import Reader

pytestmark = pytest.mark.xdist_group("dicom out")  # what they share is made once


def test_a_reading_is_never_filed_under_another_film(corrected, tmp_path):
    other = stored_film(tmp_path / "other.dcm", Turn(1), WindowCenter=2000)
    with pytest.raises(UserError, match="is not the film that was read"):
        write_dicom_reading(corrected[0], other, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_picture_is_refused_because_it_has_no_patient(corrected, tmp_path):
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(tmp_path / "film.png")
    with pytest.raises(UserError, match="a picture without patient or study"):
        write_dicom_reading(corrected[0], tmp_path / "film.png", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_files_is_left_alone(corrected, tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(UserError, match="not empty"):
        write_dicom_reading(*corrected, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


@pytest.mark.parametrize("name", ["", "a\\b", "a=b", "x" * 64, "two\x07bells"])
def test_an_observer_whose_name_dicom_cannot_write_is_refused(corrected, tmp_path, name):
    with pytest.raises(UserError, match="An observer's name"):
        write_dicom_reading(*corrected, tmp_path / "out", observer=name)


def test_without_highdicom_it_says_what_to_install(corrected, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "highdicom", None)
    with pytest.raises(UserError, match=r"pip install 'medgrape\[dicom\]'"):
        write_dicom_reading(*corrected, tmp_path / "out")


@pytest.fixture
def medgrape(strict_run):
    """Return a function that runs the command in this process."""

    def read(*words: object):
        return CliRunner().invoke(app, ["read", *(str(word) for word in words), "--model", str(strict_run)])

    return read


def test_a_command_reads_corrects_and_writes(medgrape, tmp_path):
    film, out = stored_film(tmp_path / "film.dcm"), tmp_path / "out"
    box = ("--box", "active_tb:60,20,96,45", "--confirm")
    done = medgrape(film, *box, "--dicom-out", out, "--observer", "Marie Curie", "--json")
    assert done.exit_code == 0, done.output
    output = json.loads(done.stdout)
    assert output["dicom"] == [str(out / name) for name in ("report.dcm", "maps.dcm", "boxes.dcm")]
    assert value(groups(dcmread(out / "report.dcm"))["correction 1"], "reason") == output["log"][0]["check"]["reason"]
    assert dcmread(out / "boxes.dcm").ContentCreatorName == "Marie Curie^"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--dicom-out", "full"), "not empty"),
        (("--observer", "Curie^Marie"), "add --dicom-out"),
        (("--dicom-out", "new", "--check", "active_tb:1,1,9,9"), "--check only asks"),
        (("--dicom-out", "new", "--observer", "a=b"), "An observer's name"),
    ],
)
def test_what_cannot_be_written_is_refused_in_one_sentence(medgrape, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    stored_film(tmp_path / "full" / "film.dcm")
    done = medgrape(tmp_path / "full" / "film.dcm", *words)
    assert isinstance(done.exception, UserError)
    assert sentence in str(done.exception)
    assert not (tmp_path / "new").exists()


def test_a_film_is_checked_by_the_limits_of_the_run_and_not_by_those_of_the_package(tmp_path):
    film, usual = stored_film(tmp_path / "film.dcm"), FilmLimits()
    os.truncate(film, usual.max_bytes + 1)  # a hole, which takes no place
    check_source(film, usual.overridden(max_bytes=2 * usual.max_bytes))
    with pytest.raises(UserError, match=r"more than the limit of 268,435,456"):
        check_source(film, usual)


def test_a_film_that_cannot_be_filed_is_refused_before_it_is_read(reader, tmp_path, monkeypatch):
    run, limits, used_limits = reader.loaded.run, FilmLimits(max_bytes=2**30), []
    roomy = replace(run, config=run.config.model_copy(update={"limits": limits}))
    reader.changed(roomy, "Takes large films.").save(tmp_path / "roomy")
    monkeypatch.setattr(Reader, "open", lambda *_: pytest.fail("it was read"))
    monkeypatch.setattr("medgrape.hospital.source.film_file", _recording(used_limits))
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(tmp_path / "film.png")
    words = ["read", tmp_path / "film.png", "--model", tmp_path / "roomy", "--dicom-out", tmp_path / "out"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert "a picture without patient or study" in str(done.exception)
    assert used_limits == [limits]


def _recording(used_limits):
    def recorded(path, limits):
        used_limits.append(limits)
        return film_file(path, limits)

    return recorded
