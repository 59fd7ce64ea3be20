"""Commands in a process of their own."""

import json
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image
from typer.main import get_command

from medgrape.cli.app import app
from scenes import radiograph, save


def medgrape(*words, cwd=None, **environment):
    command = [sys.executable, "-m", "medgrape", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, timeout=240, env=os.environ | environment, check=False
    )


def test_commands_and_the_decoder_start_without_importing_torch():
    code = "import sys, medgrape.cli.app, medgrape.films.decoder; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def all_commands():
    found = []

    def walk(command, path):
        if hasattr(command, "commands"):
            for name, below in command.commands.items():
                walk(below, (*path, name))
        else:
            found.append((path, command))

    walk(get_command(app), ())
    return found


@pytest.mark.parametrize(
    ("path", "command"), all_commands(), ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_every_command_has_a_help_text_with_an_example(path, command):
    assert "Example: medgrape" in command.help, f"{' '.join(path)} has no example"
    options = [option for option in command.params if option.name != "help"]
    assert all(option.help for option in options)
    assert not [option.name for option in options if "[" in option.help], "square brackets are markup and not printed"


def test_help_and_version_are_printed():
    assert "not a medical device" in " ".join(medgrape("--help").stdout.split())
    assert medgrape("--version").stdout.startswith("medgrape 0.")


def test_film_describes_a_film(tmp_path, chest):
    path = save(radiograph(chest, ViewPosition="PA", WindowCenter=2000, WindowWidth=1500), tmp_path / "a.dcm")
    result = medgrape("film", path, "--save", tmp_path / "seen.png", "--size", 100)
    assert result.returncode == 0, result.stderr
    for words in ("300 x 200 pixels", "MONOCHROME2", "Explicit VR Little Endian", "PA", "window 2000 / 1500"):
        assert words in result.stdout
    with Image.open(tmp_path / "seen.png") as seen:
        assert (seen.size, seen.mode) == ((100, 100), "L")


def test_film_in_json_lists_good_and_refused_files(tmp_path, films_folder):
    (tmp_path / "bad.png").write_text("no film")
    result = medgrape("film", films_folder / "film0.png", tmp_path / "bad.png", "--json")
    assert result.returncode == 2
    good, bad = json.loads(result.stdout)
    assert good["size"] == {"width": 96, "height": 80}
    assert "not a film" in bad["refused"]


def test_film_uses_limits_of_the_command_line_and_of_a_file(tmp_path, films_folder):
    film = films_folder / "film0.png"
    assert "--max-pixels" in medgrape("film", film, "--max-pixels", 100).stderr
    config = tmp_path / "c.toml"
    config.write_text("[limits]\nmax_pixels = 100\n")
    assert medgrape("film", film, "--config", config).returncode == 2
    assert medgrape("film", film, "--config", config, "--max-pixels", 10000).returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("film", "none.dcm"), "cannot be opened"),
        (("data", "check", "."), "medgrape data prepare"),
        (("data", "prepare", "tbx11k", ".", "--out", "out"), "TBX11K_train.json"),
        (("data", "prepare", "phantom", "--profile", "tv", "--out", "out"), "known: nih, tb"),
        (("data", "prepare", "phantom", "--validation", "1", "--out", "out"), "leave some for training"),
        (("film", "a.png", "--config", "none.toml"), "Cannot read the settings"),
        (("data", "check", ".", "--tau", "nan"), "from 0 to 1"),
        (("film", "a.png", "--save", "seen.jpg"), "a .png file or a folder"),
        (("film", "a.png", "--save", "a.png"), "overwrite the film"),
        (("film", "a.png", "b.png", "--save", "."), "overwrite the film"),
        (("film", "a.png", "--size", "3"), "greater than or equal to 16, got 3"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(tmp_path, words, message):
    result = medgrape(*words, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_internal_error_is_one_sentence_without_a_traceback(tmp_path):
    spoilt = "import medgrape.cli.film as f; f.Decoder = None; from medgrape.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", spoilt, "film", "a.png"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert result.returncode == 70
    assert "fault in medgrape" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.fixture(scope="module")
def phantoms(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phantoms") / "tb"
    result = medgrape("data", "prepare", "phantom", "--films", 40, "--out", folder, "--masks")
    assert result.returncode == 0, result.stderr
    return folder


def test_phantoms_are_drawn_checked_and_pictured(phantoms):
    result = medgrape("data", "check", phantoms, "--json")
    assert result.returncode == 0, result.stderr + result.stdout
    report = json.loads(result.stdout)
    assert report["films"] == 40
    assert report["errors"] == []
    assert report["graph"]["nodes"] == 3
    for picture in report["pictures"].values():
        with Image.open(picture) as shown:
            shown.load()
    assert "Films" in medgrape("data", "check", phantoms).stdout


def test_every_box_of_a_phantom_is_the_box_of_a_written_mask(phantoms):
    from medgrape.datasets.dataset import Dataset
    from medgrape.geometry import Box

    drawn = {(box.film, box.concept, box.box) for box in Dataset.load(phantoms).boxes}
    found = set()
    for path in sorted((phantoms / "masks").glob("*.png")):
        film, _, concept = path.stem.split("_", 2)
        found.add((film, concept, Box.around(np.asarray(Image.open(path)) > 0)))
    assert drawn
    assert drawn <= found


def test_the_same_seed_draws_the_same_bytes_and_dicom_shows_the_same_film(phantoms, tmp_path):
    again = tmp_path / "again"
    medgrape("data", "prepare", "phantom", "--films", 40, "--out", again)
    for name in ("films.csv", "boxes.csv"):
        assert (again / name).read_bytes() == (phantoms / name).read_bytes()
    film = again / "films" / "tb-000001-00.png"
    assert film.read_bytes() == (phantoms / "films" / film.name).read_bytes()
    dicom = tmp_path / "dicom"
    assert medgrape("data", "prepare", "phantom", "--films", 6, "--dicom", "--out", dicom).returncode == 0
    from medgrape.films.reading import read_prepared

    seen = read_prepared(dicom / "films" / "tb-000001-00.dcm")
    assert np.abs(seen.pixels.astype(int) - np.asarray(Image.open(film))).max() <= 1
    assert seen.facts.format == "DICOM"


def test_preparing_into_a_folder_that_is_not_empty_changes_nothing(phantoms):
    before = sorted(path.name for path in phantoms.iterdir())
    result = medgrape("data", "prepare", "phantom", "--films", 3, "--out", phantoms)
    assert result.returncode == 2
    assert "not empty" in result.stderr
    assert sorted(path.name for path in phantoms.iterdir()) == before


def test_check_exits_with_code_one_if_a_patient_is_in_two_splits(phantoms, tmp_path):
    leaky = tmp_path / "leaky"
    shutil.copytree(phantoms, leaky)
    rows = (leaky / "films.csv").read_text().splitlines()
    train = next(row for row in rows if ",train," in row)
    patient = train.split(",")[4]
    spoilt = [",".join([*row.split(",")[:4], patient, *row.split(",")[5:]]) if ",test," in row else row for row in rows]
    (leaky / "films.csv").write_text("\n".join(spoilt) + "\n")
    result = medgrape("data", "check", leaky)
    assert result.returncode == 1
    assert "patients in more than one split" in result.stdout


def test_a_table_is_prepared_from_the_command_line(films_folder, tmp_path):
    table = films_folder / "films.csv"
    table.write_text("file,seen\n" + "".join(f"film{n}.png,{'Cavity' if n % 2 else 'No Finding'}\n" for n in range(8)))
    boxes = tmp_path / "boxes.csv"
    boxes.write_text("film,concept,x,y,w,h\nfilm1.png,Cavity,1,2,10,10\n")
    words = ("--path", "file", "--labels", "seen", "--boxes", boxes, "--box-edges", "x,y,w,h", "--box-sized")
    result = medgrape("data", "prepare", "table", table, *words, "--out", tmp_path / "set")
    assert result.returncode == 0, result.stderr
    assert "8 films" in result.stdout
    assert "1 boxes" in result.stdout


def test_a_box_of_an_unknown_concept_and_a_resized_film_are_reported(phantoms, tmp_path):
    spoilt = tmp_path / "spoilt"
    shutil.copytree(phantoms, spoilt)
    boxes = (spoilt / "boxes.csv").read_text()
    (spoilt / "boxes.csv").write_text(boxes.replace("active_tb", "active_tv", 1))
    film = next((spoilt / "films").iterdir())
    with Image.open(film) as picture:
        small = picture.resize((100, 100))
    small.save(film)
    result = medgrape("data", "check", spoilt)
    assert result.returncode == 1, result.stderr
    assert "did you mean 'active_tb'" in result.stdout
    assert "was 224 x 224, is 100 x 100" in result.stdout


def test_an_output_folder_that_is_a_file_is_one_sentence(phantoms, tmp_path):
    (tmp_path / "taken").touch()
    result = medgrape("data", "check", phantoms, "--out", tmp_path / "taken")
    assert result.returncode == 2
    assert "Cannot use" in result.stderr


def test_a_terminated_preparation_leaves_nothing_behind(tmp_path):
    command = [sys.executable, "-m", "medgrape", "data", "prepare", "phantom", "--films", "5000", "--out", "set"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
    while not list(tmp_path.glob(".*.part/films/*.png")):
        assert process.poll() is None
        time.sleep(0.1)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []
