"""The commands ``medgrape concept``, mostly in this process, which is faster."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import medgrape as mg
from command_line import medgrape
from medgrape.cli.app import app
from medgrape.cli.concept import parse_example
from medgrape.datasets.dataset import Dataset
from medgrape.errors import UserError

HOLE = "A thick-walled lucency in the lung."


def typed(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def example(drawn_dataset):
    """Return a training film with a box, as an argument of --example."""
    dataset = Dataset.load(drawn_dataset)
    film = next(film for film in dataset.in_split("train") if film.id in dataset.boxes_by_film)
    corners = dataset.boxes_by_film[film.id][0].box.corners
    return f"{dataset.film_path(film)}:{','.join(f'{corner:g}' for corner in corners)}"


@pytest.mark.parametrize(
    ("text", "film", "box"),
    [
        ("chest.png", "chest.png", None),
        ("chest.png:1,2,3.5,4", "chest.png", mg.Box(1, 2, 3.5, 4)),
        (r"C:\films\chest.png", r"C:\films\chest.png", None),
        (r"C:\films\chest.png:-5,0,3,4", r"C:\films\chest.png", mg.Box(-5, 0, 3, 4)),
        ("a:b,c.png", "a:b,c.png", None),
    ],
)
def test_an_example_is_a_film_with_or_without_a_box_even_if_its_name_has_colons(text, film, box):
    assert parse_example(text) == (Path(film) if box is None else (Path(film), box))


@pytest.mark.parametrize("text", ["chest.png:1,2,3", "chest.png:1,2,3,4,5", ":1,2,3,4", "chest.png:5,5,5,9"])
def test_an_invalid_box_is_refused(text):
    with pytest.raises(UserError):
        parse_example(text)


def test_a_concept_is_added_grown_and_listed(trained_run, example, tmp_path):
    out = tmp_path / "new"
    result = typed(
        "concept", "add", "cavity", "--model", trained_run, "--out", out, "--description", HOLE, "--title", "Cave",
        "--example", example, "--grow",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "Learnt cavity from its description and 1 film (1 box)." in result.output
    assert "Let the head listen to cavity." in result.output
    assert "in its box" in result.output
    known = json.loads(typed("concept", "list", "--model", out, "--json").stdout)
    assert [(one["name"], one["trained"], one["judged"]) for one in known[2:]] == [
        (mg.load(trained_run).concepts.names[2], True, True),
        ("cavity", False, True),
    ]
    listed = typed("concept", "list", "--model", out).output
    assert "Cave" in listed
    assert "later" in listed


def test_adding_in_json_names_the_parent_and_where_the_concept_points(trained_run, example, tmp_path):
    words = ("concept", "add", "cavity", "--model", trained_run, "--description", HOLE, "--json")
    shown = json.loads(typed(*words, "--out", tmp_path / "shown", "--example", example).stdout)
    parent = mg.load(trained_run).loaded.manifest.fingerprint
    assert shown["parent"] == parent != shown["fingerprint"]
    assert shown["concept"]["judged"] is False
    pointed = shown["examples"][0]
    box = mg.Box(*map(float, example.rpartition(":")[2].split(",")))
    assert pointed["in_box"] is box.contains(pointed["x"], pointed["y"])
    report = json.loads(typed(*words, "--out", tmp_path / "told").stdout)
    assert (report["examples"], report["concept"]["taught_by_films"]) == ([], False)


def test_a_concept_without_example_films_is_called_a_guess(trained_run, tmp_path):
    result = typed("concept", "add", "cavity", "--model", trained_run, "--out", tmp_path / "n", "--description", HOLE)
    assert result.exit_code == 0, result.output
    assert "is a guess" in result.output


def test_the_trial_prints_every_concept_beside_blind_pointing_and_writes_json(trained_run, drawn_dataset, tmp_path):
    words = ("concept", "trial", "--model", trained_run, "--data", drawn_dataset, "--examples", "0,1", "--seeds", 2)
    result = typed(*words, "--out", tmp_path / "trial.json")
    assert result.exit_code == 0, result.output
    for heading in ("full supervision", "fixed point", "random point", "Mean over concepts"):
        assert heading in result.output
    report = json.loads((tmp_path / "trial.json").read_text())
    assert report["boxes"] is True
    hidden = json.loads(typed(*words, "--without-boxes", "--json").stdout)
    assert hidden["boxes"] is False


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("add", "active_tb", "--out", "OUT", "--description", HOLE), "has 'active_tb' already"),
        (("add", "Cavity", "--out", "OUT", "--description", HOLE), "lower case letters"),
        (("add", "cavity", "--out", "OUT", "--description", " "), "needs a title and a description"),
        (("add", "cavity", "--out", "OUT", "--description", HOLE, "--example", "no.png"), "no.png"),
        (("add", "cavity", "--out", "OUT", "--description", HOLE, "--example", "BOX:4,4,4,9"), "x1 < x2"),
        (("add", "cavity", "--out", "OUT", "--description", HOLE, "--example", "BOX:900,900,990,990"), "outside the"),
        (("add", "cavity", "--out", "OUT", "--description", HOLE, "--example", "BOX:1,2"), "FILM:x1,y1,x2,y2"),
        (("add", "cavity", "--out", "OUT", "--description", HOLE, "--refit"), "go together"),
        (("add", "cavity", "--out", "RUN", "--description", HOLE), "not empty"),
        (("add", "cavity", "--out", "RUN/below", "--description", HOLE), "lies in the run"),
        (("trial", "--data", "DATA", "--examples", "one"), "whole numbers"),
        (("trial", "--data", "DATA", "--out", "RUN/trial.json"), "lies in the run"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    words, complaint, trained_run, drawn_dataset, example, tmp_path
):
    places = {"OUT": tmp_path / "new", "RUN": trained_run, "DATA": drawn_dataset, "BOX": example.rpartition(":")[0]}
    spelled = list(words)
    for name, place in places.items():
        spelled = [str(place) + word.removeprefix(name) if word.startswith(name) else word for word in spelled]
    before = {path: path.stat().st_mtime_ns for path in trained_run.rglob("*")}
    refusal = typed("concept", *spelled, "--model", trained_run).exception
    assert isinstance(refusal, UserError)
    assert complaint in str(refusal)
    assert "\n" not in str(refusal)
    assert list(tmp_path.iterdir()) == []
    assert {path: path.stat().st_mtime_ns for path in trained_run.rglob("*")} == before


def test_bad_input_ends_the_command_with_exit_code_2(trained_run, tmp_path):
    words = ("concept", "add", "cavity", "--model", trained_run, "--out", tmp_path / "n", "--description", " ")
    result = medgrape(*words)
    assert result.returncode == 2, result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_new_concept_can_be_used_by_the_head_and_validation_shows_what_changed(
    trained_run, drawn_dataset, example, tmp_path
):
    words = ("--description", HOLE, "--example", example, "--refit", "--data", drawn_dataset, "--json")
    result = typed("concept", "add", "cavity", "--model", trained_run, "--out", tmp_path / "new", *words)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["concept"]["judged"] is True
    assert len(report["changes"]) == 3
    assert report["refit"]["films"] > 0
    model = mg.load(tmp_path / "new").loaded.run.model
    assert model.head.is_trained


def test_the_head_can_use_a_concept_that_was_added_earlier(trained_run, drawn_dataset, tmp_path):
    added, grown, fitted = (tmp_path / name for name in ("added", "grown", "fitted"))
    assert (
        typed("concept", "add", "cavity", "--model", trained_run, "--out", added, "--description", HOLE).exit_code == 0
    )

    assert typed("concept", "grow", "--model", added, "--out", grown).exit_code == 0
    again = typed("concept", "grow", "--model", grown, "--out", tmp_path / "again")
    assert "uses every concept already" in str(again.exception)
    result = typed("concept", "grow", "--model", grown, "--out", fitted, "--data", drawn_dataset, "--json")

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["refit"]["films"] > 0
    assert not mg.load(grown).loaded.run.model.head.is_trained
    assert mg.load(fitted).loaded.run.model.head.is_trained
