"""The commands ``medgrape atlas``."""

import json
import shutil

import pytest
from PIL import Image
from typer.testing import CliRunner

import medgrape as mg
from medgrape.cli.app import app
from medgrape.errors import UserError


@pytest.fixture
def run(trained_run, tmp_path):
    return shutil.copytree(trained_run, tmp_path / "run")


def medgrape(*words):
    """Return the output; a mistake raises the error that the program prints as one sentence."""
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_list_shows_the_film_of_each_prototype_and_draws_the_sheet(run, tmp_path):
    sheet = tmp_path / "sheet.png"
    report = json.loads(medgrape("atlas", "list", run, "--concept", "active_tb", "--save", sheet, "--json"))
    assert [card["number"] for card in report["prototypes"]] == [0, 1, 2, 3]
    assert all(card["film"] and card["strongest"] is None for card in report["prototypes"])
    with Image.open(sheet) as drawn:
        assert drawn.format == "PNG"
    printed = medgrape("atlas", "list", run)
    assert "12 prototypes, 0 of them discarded" in printed
    assert "strongest on" not in printed


def test_list_with_data_counts_how_often_each_prototype_is_the_strongest(run, drawn_dataset):
    report = json.loads(medgrape("atlas", "list", run, "--concept", "active_tb", "--data", drawn_dataset, "--json"))
    cards = report["prototypes"]
    assert sum(card["strongest"] for card in cards) == cards[0]["shown"] > 0


def test_discard_writes_a_new_run_and_restore_takes_it_back(run, tmp_path):
    printed = medgrape("atlas", "discard", run, "active_tb", "0-1,3", "--out", tmp_path / "curated")
    assert "Discarded prototypes 0, 1, 3 of active_tb." in printed
    assert mg.load(tmp_path / "curated").loaded.run.model.atlas.kept.sum() == 9
    medgrape("atlas", "restore", tmp_path / "curated", "active_tb", "0,1,3", "--out", tmp_path / "again")
    assert mg.load(tmp_path / "again").loaded.run.model.atlas.kept.all()
    assert mg.load(run).loaded.run.model.atlas.kept.all()


def test_discard_can_change_a_run_in_place(run):
    medgrape("atlas", "discard", run, "active_tb", "2", "--out", run)
    assert mg.load(run).loaded.run.model.atlas.kept[0].sum() == 3


def test_discard_with_a_refit_prints_what_changed_on_validation_films(run, drawn_dataset, tmp_path):
    words = (
        "atlas",
        "discard",
        run,
        "active_tb",
        "0",
        "--out",
        tmp_path / "curated",
        "--refit",
        "--data",
        drawn_dataset,
    )
    report = json.loads(medgrape(*words, "--json"))
    saved = mg.load(tmp_path / "curated").loaded
    assert report["fingerprint"] == saved.manifest.fingerprint
    assert report["refit"] == saved.run.metrics["refit"]
    assert len(report["changes"]) == 2
    printed = medgrape(*words[:5], "--out", tmp_path / "other", *words[7:])
    assert "head fitted again" in printed
    assert f"always {report['refit']['trivial_answer']!r}" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("active_tb", "9"), "there is no 9"),
        (("active_tb", "x"), "named like 3,7,12-15"),
        (("active_tb", "0-3"), "keep at least one"),
        (("aktive_tb", "0"), "did you mean 'active_tb'"),
        (("active_tb", "0", "--refit"), "go together"),
    ],
)
def test_a_refused_change_leaves_nothing_behind(run, tmp_path, words, message):
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(UserError, match=message):
        medgrape("atlas", "discard", run, *words, "--out", tmp_path / "curated")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_folder_that_is_not_empty_is_refused_before_the_work(run, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear colleague")
    with pytest.raises(UserError, match="not empty"):
        medgrape("atlas", "discard", run, "active_tb", "0", "--out", tmp_path / "full")
    with pytest.raises(UserError, match="lies in the run"):
        medgrape("atlas", "discard", run, "active_tb", "0", "--out", run / "inside")
    with pytest.raises(UserError, match="lies in the run"):
        medgrape("atlas", "list", run, "--save", run / "sheet.png")
