"""What a model card says, and where it has it from."""

import json
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from huggingface_hub import ModelCard
from typer.testing import CliRunner

import medgrape as mg
from medgrape.cli.app import app
from medgrape.errors import UserError
from medgrape.evaluation.evaluate import evaluate_run
from medgrape.runs.checkpoint import Change
from medgrape.runs.hub.card import TAKEN_OUT, UNNAMED, card_of, render_card, reports_beside
from medgrape.runs.hub.publish import Publishing, pack
from medgrape.runs.manifest import report_folder, unseal


@pytest.fixture(scope="module")
def evaluated(trained_run, drawn_dataset, tmp_path_factory):
    """A copy of the trained_run with a report beside it."""
    reader = mg.load(trained_run).save(tmp_path_factory.mktemp("evaluated") / "run")
    evaluate_run(reader.loaded, drawn_dataset, report_folder(reader.loaded.folder, "test"))
    return reader.loaded.folder


def test_figures_on_a_card_are_those_of_the_report_with_the_trivial_answer_beside_them(evaluated):
    report = json.loads((report_folder(evaluated, "test") / "report.json").read_text("utf-8"))
    card = ModelCard(card_of(evaluated, repository="org/tb", licence="apache-2.0"))

    known = report["classification"]
    figures = {result.metric_name: result.metric_value for result in card.data.eval_results}
    always = f"always “{known['majority']['answer']}”"
    assert figures["Macro-F1 of the classes"] == round(known["macro_f1"], 4)
    assert figures[f"Macro-F1 of the classes, by the trivial answer: {always}"] == round(
        known["majority"]["macro_f1"], 4
    )
    row = next(line for line in card.text.splitlines() if line.startswith("| Macro-F1"))
    assert f"{known['macro_f1']:.3f}" in row
    assert f"{known['majority']['macro_f1']:.3f}" in row
    assert (card.data.license, card.data.library_name) == ("apache-2.0", "medgrape")


def test_a_card_counts_the_films_and_says_that_they_were_drawn(evaluated, drawn_dataset):
    from medgrape.datasets.dataset import Dataset

    text, films = card_of(evaluated), Dataset.load(drawn_dataset)
    assert f"| films | {len(films.in_split('train'))} | {len(films.in_split('val'))} |" in text
    assert "drawn by a program" in text
    assert "not a medical device" in text
    assert all(concept.description in text for concept in films.concepts)


def test_a_report_on_another_model_is_not_on_the_card(evaluated, tmp_path):
    other = mg.load(evaluated)
    other = other.changed(replace(other.loaded.run, learnt_from=()), "Forgot.").save(tmp_path / "run")
    (tmp_path / "run-test").symlink_to(report_folder(evaluated, "test"))

    text = card_of(other.loaded.folder)

    assert "There is no report of exactly this model" in text
    assert "model-index" not in text
    assert "- Forgot." in text


def test_a_card_without_a_report_says_that_its_figures_flatter(trained_run):
    assert "and so flatter it" in card_of(trained_run)


def card_of_changed(folder, reports=None, **changed):
    """The card of a run in which some things are otherwise."""
    loaded = mg.load(folder).loaded
    made = replace(loaded, run=replace(loaded.run, **changed))
    return render_card(made, reports or reports_beside(folder), repository="org/tb", licence="mit", removed=False)


def test_figures_from_before_a_change_are_marked_as_such(trained_run):
    text = card_of_changed(trained_run, changes=(Change("abc", "Discarded prototype 3 of Cavity."),))

    assert "| stage | figure | as trained, before the changes below |" in text
    assert "the figures are of the model before the changes below:" in text
    assert "The figures below are of the model before it was changed" in text
    assert "this model |" not in text


@pytest.mark.parametrize("what", [TAKEN_OUT, UNNAMED])
def test_what_publishing_takes_out_leaves_figures_those_of_this_model(trained_run, what):
    text = card_of_changed(trained_run, changes=(Change("abc", what),))

    assert "| stage | figure | this model |" in text
    assert "before it was changed" not in text


@pytest.mark.parametrize("source", ["table", "phantom"])
def test_a_head_fitted_on_another_data_set_did_not_learn_from_one_alone(trained_run, source):
    metrics = mg.load(trained_run).loaded.run.metrics
    metrics = metrics | {"data": metrics["data"] | {"source": source}}
    what = "Fitted the head again on 'north', another data set than it was trained on."

    refitted = card_of_changed(trained_run, metrics=metrics, changes=(Change("abc", what),))

    assert "all from one data set" not in refitted
    assert "Before it was changed (see below), it was trained on" in refitted
    assert "These are the films of its training; any later data" in refitted
    assert f"- {what}" in refitted
    assert ("all from one data set" in card_of_changed(trained_run, metrics=metrics)) == (source == "table")


def line_for_pip(text):
    (line,) = [line.strip() for line in text.splitlines() if "pip install" in line]
    return line


def test_the_packages_on_the_card_suffice_for_its_example(trained_run):
    loaded = mg.load(trained_run).loaded
    for kind, extras in (("efficientnet-lite0", "hub,lite"), ("transformers", "hub,text"), ("own", "hub")):
        model = deepcopy(loaded.run.grape)
        model.backbone.blueprint = replace(model.backbone.blueprint, kind=kind)
        text = card_of_changed(trained_run, model=model)
        assert line_for_pip(text) == f'pip install "medgrape[{extras}]"'
    assert 'reader.open("film.png")' in text  # a DICOM file would take one more


def test_films_that_do_not_go_along_are_not_promised(evaluated):
    assert "shows the most similar training films" in card_of(evaluated)
    assert "shows the most similar training films" not in card_of(evaluated, removed=True)


@pytest.mark.parametrize(("split", "known", "tested"), [("test", 0, True), ("test", 2, False), ("val", 16, False)])
def test_only_films_that_it_never_saw_are_a_test(evaluated, split, known, tested):
    reports = reports_beside(evaluated)
    report = {**reports.report, "split": split, "known_films": known}
    text = card_of_changed(evaluated, replace(reports, report=report))

    assert ("tested on other patients of the data set" in text) == tested
    assert ("model-index" in text) == tested
    assert "| Macro-F1 of the classes |" in text


def test_a_packed_folder_is_the_run_and_a_card(evaluated, tmp_path):
    packed = pack(evaluated, tmp_path / "out", Publishing("org/tb", pictures=True))

    assert set(packed.files) == {*unseal(evaluated).files, "manifest.json", "README.md"}
    assert all(
        (tmp_path / "out" / name).read_bytes() == (evaluated / name).read_bytes() for name in unseal(evaluated).files
    )
    assert packed.pictures == len(mg.load(evaluated).loaded.run.exemplars.films) > 0


def test_without_pictures_no_film_is_shown_or_named_and_every_answer_stays(evaluated, drawn_dataset, tmp_path):
    packed = pack(evaluated, tmp_path / "out", Publishing("org/tb", pictures=False))
    (packed.folder / "README.md").rename(tmp_path / "README.md")
    published, before = mg.load(packed.folder), mg.load(evaluated)

    assert packed.pictures == 0
    names = before.loaded.run.exemplars.films
    text = "".join(path.read_text("utf-8") for path in packed.folder.glob("*.json"))
    assert not [name for name in names if name in text]
    film = next(drawn_dataset.parent.rglob("*.png"))
    assert published.open(film).prediction == before.open(film).prediction
    text = (tmp_path / "README.md").read_text("utf-8")
    assert "No picture of any training film" in text
    assert "model-index" in text  # measured before they were taken out, and said so
    assert "Weights and predictions are those that were measured" in text


@pytest.mark.parametrize("pictures", [True, False, None])
def test_who_must_not_be_shown_is_not_named_either(evaluated, drawn_dataset, tmp_path, pictures):
    reader = mg.load(evaluated)
    run = reader.loaded.run
    shown = run.config.exemplars.model_copy(update={"withheld": ("Doe^Jane",), "show": pictures is not None})
    run = replace(run, config=run.config.model_copy(update={"exemplars": shown}))
    if pictures is None:  # a run without a picture, where nothing has to be decided
        none = replace(run.exemplars, films=(), thumbnails=run.exemplars.thumbnails[:0])
        run = replace(run, exemplars=replace(none, film=np.full_like(none.film, -1)))
    changed = reader.changed(run, "Jane does not want to be shown.").save(tmp_path / "run")

    packed = pack(changed.loaded.folder, tmp_path / "out", Publishing("org/tb", pictures=pictures))

    assert not [name for name in packed.files if b"Doe^Jane" in (packed.folder / name).read_bytes()]
    assert packed.warnings == ()
    text = (packed.folder / "README.md").read_text("utf-8")
    assert "Names of films or patients that it never shows were removed" in text
    (packed.folder / "README.md").unlink()
    published = mg.load(packed.folder)
    assert published.loaded.run.config.exemplars.withheld == ()
    assert "Names of films or patients" in published.loaded.run.changes[-1].what
    assert len(published.loaded.run.exemplars.films) == (len(run.exemplars.films) if pictures else 0)
    film = next(drawn_dataset.parent.rglob("*.png"))
    assert published.open(film).prediction == changed.open(film).prediction


def test_a_card_names_the_packages_whose_code_a_reader_would_run(evaluated):
    loaded = mg.load(evaluated).loaded
    parts = {
        "backbone": {"name": "pocketnet", "distribution": "clinic", "version": "1.2"},
        "head": {"name": "votes", "distribution": "lab; rm", "version": "3"},
        "text encoder": {"name": "synonyms", "distribution": "words", "version": "4"},
    }
    made = replace(loaded, run=replace(loaded.run, plugins=parts))
    text = render_card(made, reports_beside(evaluated), repository="org/tb", licence="mit", removed=False)

    (line,) = [line for line in text.splitlines() if "pip install" in line]
    assert line.endswith("\" clinic==1.2 'lab; rm==3'")  # words is needed only by whoever adds a concept
    assert "This runs code of other packages" in text
    limits = text.partition("## Limits")[2].partition("\n## ")[0]
    assert "backbone “pocketnet” is code of clinic 1.2" in limits
    assert "text encoder “synonyms” is code of words 4" in limits
    assert "code of other packages" not in card_of(evaluated)


def test_a_folder_of_this_machine_in_the_settings_is_pointed_out(evaluated, tmp_path):
    reader = mg.load(evaluated)
    run = reader.loaded.run
    config = run.config.model_copy(update={"text": run.config.text.model_copy(update={"encoder": "/home/dr/encoder"})})
    changed = reader.changed(replace(run, config=config), "Moved.").save(tmp_path / "run")

    packed = pack(changed.loaded.folder, tmp_path / "out", Publishing(pictures=False))

    assert packed.warnings == ("config.toml names a folder on your machine: text.encoder = '/home/dr/encoder'.",)


def test_without_a_decision_about_pictures_packing_is_refused(evaluated, tmp_path):
    with pytest.raises(UserError, match="--with-pictures"):
        pack(evaluated, tmp_path / "out", Publishing())
    assert not (tmp_path / "out").exists()


def test_the_commands_write_the_card_and_the_folder(evaluated, tmp_path):
    card = CliRunner().invoke(
        app, ["hub", "card", str(evaluated), "--out", str(tmp_path / "c.md")], catch_exceptions=False
    )
    assert card.exit_code == 0
    words = ["hub", "pack", str(evaluated), "--out", str(tmp_path / "out"), "--with-pictures", "--json"]
    done = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    assert "README.md" in done["files"]
    assert (tmp_path / "c.md").read_text("utf-8").startswith("---\n")


@pytest.mark.parametrize("metrics", [{}, {"validation": []}, {"validation": {"head": {}}}])
def test_a_run_with_incomplete_metrics_gets_no_card_but_an_error(trained_run, metrics):
    with pytest.raises(UserError, match=r"No card can be written of .*: its metrics\.json"):
        card_of_changed(trained_run, metrics=metrics)


@pytest.mark.parametrize("words", [["card"], ["pack", "--out", "published", "--with-pictures"]])
def test_a_card_is_for_a_name_that_a_hub_could_have(evaluated, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["hub", words[0], str(evaluated), *words[1:], "--as", "no slash"])
    assert "is no repository on a model hub; give ORG/NAME." in str(done.exception)
    assert not list(tmp_path.iterdir())

    done = CliRunner().invoke(app, ["hub", words[0], str(evaluated), *words[1:], "--as", ""], catch_exceptions=False)
    assert done.exit_code == 0


def test_the_name_of_a_repository_is_checked_before_anything_else(evaluated):
    done = CliRunner().invoke(app, ["hub", "push", str(evaluated), "no slash", "--with-pictures"])
    assert "is no repository on a model hub" in str(done.exception)
