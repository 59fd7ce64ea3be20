"""Runs brought to a stand-in for the hub, and fetched from there again."""

import json

import pytest
from hub_scenes import contents
from hub_stand_in import Repository
from huggingface_hub import constants
from typer.testing import CliRunner

import medgrape as mg
from medgrape.cli.app import app
from medgrape.errors import UserError
from medgrape.runs.hub.publish import Publishing, push
from medgrape.runs.manifest import RunError


def test_a_run_that_was_pushed_is_loaded_again_by_its_commit(hub, trained_run):
    done = push(trained_run, Publishing("org/tb", "apache-2.0", pictures=True), private=True)
    reader = mg.load("org/tb", revision=done.commit)

    repository = hub.repositories["org/tb"]
    assert repository.private
    assert set(repository.commits[done.commit]) == {".gitattributes", "README.md", *contents(trained_run)}
    assert reader.loaded.manifest == mg.load(trained_run).loaded.manifest
    assert (reader.origin.repository, reader.origin.commit) == ("org/tb", done.commit)


def test_only_files_of_the_manifest_are_asked_for(hub, trained_run):
    repository = hub.repositories["org/tb"] = Repository()
    repository.commit(
        "main", contents(trained_run) | {"pytorch_model.bin": b"\x80\x04.", "README.md": b"#", "run.py": b""}
    )
    mg.load("org/tb")

    asked = {path.split("/", 5)[-1] for path in hub.asked}
    assert asked == set(contents(trained_run))


def test_once_fetched_a_commit_is_loaded_without_a_network(hub, trained_run, monkeypatch):
    commit = push(trained_run, Publishing("org/tb", pictures=True)).commit
    mg.load("org/tb", revision=commit)
    hub.asked.clear()
    mg.load("org/tb", revision=commit)
    assert hub.asked == []
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    assert mg.load("org/tb", revision=commit).origin.commit == commit


@pytest.mark.usefixtures("hub")
def test_pushing_to_a_new_branch_does_not_change_other_branches(trained_run, strict_run):
    push(trained_run, Publishing("org/tb", pictures=True))
    push(strict_run, Publishing("org/tb", pictures=True), branch="strict")

    assert mg.load("org/tb").loaded.run.safety is None
    assert mg.load("org/tb", revision="strict").loaded.run.safety is not None


def test_only_files_of_the_previous_run_are_removed(hub, trained_run):
    manifest = json.loads((trained_run / "manifest.json").read_text("utf-8"))
    manifest["files"]["older.json"] = "0" * 64
    repository = hub.repositories["org/tb"] = Repository()
    files = {"manifest.json": json.dumps(manifest).encode(), "older.json": b"{}", "paper.pdf": b"%PDF"}
    repository.commit("main", files)

    done = push(trained_run, Publishing("org/tb", pictures=True))

    assert done.removed == ("older.json",)
    assert "paper.pdf" in repository.commits[done.commit]
    assert "older.json" not in repository.commits[done.commit]


def test_a_run_with_pictures_of_training_films_is_pushed_only_with_an_explicit_option(hub, trained_run):
    with pytest.raises(UserError, match=r"carries pictures of \d+ training films.*--with-pictures.*--without-pictures"):
        push(trained_run, Publishing("org/tb"))
    assert hub.repositories == {}

    push(trained_run, Publishing("org/tb", pictures=False))
    published = mg.load("org/tb").loaded
    assert published.run.exemplars.films == ()
    assert published.run.exemplars.thumbnails.size == 0
    assert published.manifest.fingerprint == mg.load(trained_run).loaded.manifest.fingerprint


@pytest.mark.parametrize("revision", [None, "v1", "0" * 40])
@pytest.mark.usefixtures("hub")
def test_a_hub_that_does_not_answer_is_reported_at_once(trained_run, monkeypatch, revision):
    push(trained_run, Publishing("org/tb", pictures=True))
    mg.load("org/tb")
    closed = "http://127.0.0.1:9"  # nobody listens there
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", closed + "/{repo_id}/resolve/{revision}/{filename}")

    with pytest.raises(RunError, match=r"cannot be asked about org/tb.*HF_HUB_OFFLINE=1"):
        mg.load("org/tb", revision=revision)

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert mg.load("org/tb").origin is not None  # as it was fetched last


@pytest.mark.parametrize(
    ("scene", "sentence"),
    [
        ("nobody", r"The hub has no org/tb, or does not show it to you"),
        ("gated", r"org/tb is gated: ask for access"),
        ("other", r"org/tb is on the hub, but no run of medgrape: it has no manifest\.json"),
        ("lacking", r"org/tb lacks metrics\.json, which its manifest names"),
    ],
)
def test_an_error_of_the_hub_is_one_sentence(hub, trained_run, scene, sentence):
    if scene != "nobody":
        files = {"lacking": contents(trained_run), "other": {"README.md": b"#"}, "gated": {}}[scene]
        files.pop("metrics.json", None)
        hub.repositories["org/tb"] = Repository(gated=scene == "gated")
        hub.repositories["org/tb"].commit("main", files)

    with pytest.raises(RunError, match=sentence):
        mg.load("org/tb")


@pytest.mark.usefixtures("hub")
def test_a_private_push_to_a_public_repository_is_refused(trained_run):
    push(trained_run, Publishing("org/tb", pictures=True))

    with pytest.raises(RunError, match="org/tb already exists and is public"):
        push(trained_run, Publishing("org/tb", pictures=True), private=True)


@pytest.mark.usefixtures("hub")
def test_a_missing_revision_is_an_error(trained_run):
    push(trained_run, Publishing("org/tb", pictures=True))

    with pytest.raises(RunError, match="org/tb has no branch, tag or commit 'v9'"):
        mg.load("org/tb", revision="v9")


def test_nobody_pushes_without_a_token(hub, trained_run, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_stranger")

    with pytest.raises(RunError, match=r"does not show it to you|does not let you"):
        push(trained_run, Publishing("org/tb", pictures=True))
    assert hub.repositories == {}


@pytest.mark.usefixtures("hub")
def test_pushing_while_offline_is_an_error(trained_run, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    with pytest.raises(RunError, match="HF_HUB_OFFLINE"):
        push(trained_run, Publishing("org/tb", pictures=True))


def test_the_command_pushes_and_prints_how_to_load(hub, trained_run):
    words = ["hub", "push", str(trained_run), "org/tb", "--license", "mit", "--without-pictures"]
    rehearsed = CliRunner().invoke(app, [*words, "--dry-run"], catch_exceptions=False)
    assert "Nothing was pushed" in rehearsed.stdout
    assert hub.asked == []

    done = CliRunner().invoke(app, words, catch_exceptions=False)

    commit = hub.repositories["org/tb"].names["main"]
    assert f'mg.load("org/tb", revision="{commit}")' in done.stdout
    card = hub.repositories["org/tb"].commits[commit]["README.md"].decode()
    assert "license: mit" in card
