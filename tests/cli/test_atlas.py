"""``medgrape atlas`` as a user types it."""

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
    """What is printed; a mistake comes as the error that the program turns into a sentence and exit code 2."""
    ended = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def test_list_tells_what_each_prototype_is_reminded_of_and_draws_the_sheet(run, tmp_path):
    sheet = tmp_path / "sheet.png"
    told = json.loads(medgrape("atlas", "list", run, "--concept", "active_tb", "--save", sheet, "--json"))
    assert [card["number"] for card in told["prototypes"]] == [0, 1, 2, 3]
    assert all(card["film"] and card["strongest"] is None for card in told["prototypes"])
    with Image.open(sheet) as drawn:
        assert drawn.format == "PNG"
    printed = medgrape("atlas", "list", run)
    assert "12 prototypes, 0 of them discarded" in printed
    assert "strongest on" not in printed


def test_list_with_data_tells_how_often_each_prototype_speaks(run, drawn_dataset):
    told = json.loads(medgrape("atlas", "list", run, "--concept", "active_tb", "--data", drawn_dataset, "--json"))
    cards = told["prototypes"]
    assert sum(card["strongest"] for card in cards) == cards[0]["shown"] > 0


def test_discard_writes_a_new_run_and_restore_takes_it_back(run, tmp_path):
    printed = medgrape("atlas", "discard", run, "active_tb", "0-1,3", "--out", tmp_path / "curated")
    assert "Discarded prototypes 0, 1, 3 of active_tb." in printed
    assert mg.load(tmp_path / "curated").loaded.run.model.atlas.kept.sum() == 9
    medgrape("atlas", "restore", tmp_path / "curated", "active_tb", "0,1,3", "--out", tmp_path / "again")
    assert mg.load(tmp_path / "again").loaded.run.model.atlas.kept.all()
    assert mg.load(run).loaded.run.model.atlas.kept.all()


def test_discard_may_change_a_run_in_its_place(run):
    medgrape("atlas", "discard", run, "active_tb", "2", "--out", run)
    assert mg.load(run).loaded.run.model.atlas.kept[0].sum() == 3


def test_discard_with_a_refit_tells_what_changed_on_validation(run, drawn_dataset, tmp_path):
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
    told = json.loads(medgrape(*words, "--json"))
    saved = mg.load(tmp_path / "curated").loaded
    assert told["fingerprint"] == saved.manifest.fingerprint
    assert told["refit"] == saved.run.metrics["refit"]
    assert len(told["changes"]) == 2
    printed = medgrape(*words[:5], "--out", tmp_path / "other", *words[7:])
    assert "head fitted again" in printed
    assert f"always {told['refit']['trivial_answer']!r}" in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("active_tb", "9"), "there is no 9"),
        (("active_tb", "x"), "named like 3,7,12-15"),
        (("active_tb", "0-3"), "keep at least one"),
        (("aktive_tb", "0"), "did you mean 'active_tb'"),
        (("active_tb", "0", "--refit"), "go together"),
    ],
)
def test_what_cannot_be_discarded_leaves_nothing_behind(run, tmp_path, words, said):
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(UserError, match=said):
        medgrape("atlas", "discard", run, *words, "--out", tmp_path / "curated")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_place_with_something_in_it_is_refused_before_the_work(run, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear colleague")
    with pytest.raises(UserError, match="not empty"):
        medgrape("atlas", "discard", run, "active_tb", "0", "--out", tmp_path / "full")
    with pytest.raises(UserError, match="lies in the run"):
        medgrape("atlas", "discard", run, "active_tb", "0", "--out", run / "inside")
    with pytest.raises(UserError, match="lies in the run"):
        medgrape("atlas", "list", run, "--save", run / "sheet.png")
