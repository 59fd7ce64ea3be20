"""Runs from the hub's cache on this disk: found by branch, tag and commit, compared, and nothing else opened."""

import builtins
import json
import os
import pickle
import sys
from pathlib import Path

import pytest
from hub_scenes import COMMIT, OLDER, cached, contents
from typer.testing import CliRunner

import medgrape as mg
from medgrape.cli.app import app
from medgrape.errors import UserError
from medgrape.files import whole_folder
from medgrape.runs.hub import download
from medgrape.runs.hub.download import hub_name
from medgrape.runs.manifest import HubOrigin


@pytest.fixture
def published(home, trained_run) -> Path:
    """The trained_run as main and as v1, beside what other people put into repositories."""
    strangers = {"README.md": b"# tb\n", "pytorch_model.bin": pickle.dumps([1]), "modeling.py": b"raise SystemExit\n"}
    return cached(home, contents(trained_run) | strangers, COMMIT, main=COMMIT, v1=COMMIT)


@pytest.mark.parametrize("revision", [None, "main", "v1", COMMIT])
@pytest.mark.usefixtures("published")
def test_a_run_in_the_hubs_cache_is_loaded_by_branch_tag_and_commit(trained_run, revision):
    reader = mg.load("org/tb", revision=revision)

    assert reader.loaded.manifest == mg.load(trained_run).loaded.manifest
    assert str(reader.origin) == f"org/tb@{COMMIT}"


def test_a_run_that_was_trained_here_has_no_origin(trained_run):
    assert mg.load(trained_run).origin is None


def test_an_older_commit_stays_what_it_was(home, trained_run, strict_run):
    cached(home, contents(trained_run), OLDER)
    cached(home, contents(strict_run), COMMIT, main=COMMIT)

    assert mg.load("org/tb").loaded.run.safety is not None
    assert mg.load("org/tb", revision=OLDER).loaded.run.safety is None


def test_what_the_manifest_does_not_name_is_never_opened(published, monkeypatch):
    opened = []

    def watched(real):
        return lambda file, *given, **named: opened.append(str(file)) or real(file, *given, **named)

    monkeypatch.setattr(builtins, "open", watched(builtins.open))
    monkeypatch.setattr(os, "open", watched(os.open))
    monkeypatch.setattr(Path, "open", watched(Path.open))
    monkeypatch.setattr(pickle, "Unpickler", None)
    reader = mg.load("org/tb")

    strange = {os.path.realpath(published / name) for name in ("pytorch_model.bin", "modeling.py", "README.md")}
    assert opened
    assert not strange & {os.path.realpath(file) for file in opened}
    assert {path.name for path in reader.loaded.folder.iterdir()}.isdisjoint({"README.md", "pytorch_model.bin"})


def test_an_altered_file_is_refused_by_name(published):
    weights = published / "model.safetensors"
    weights.resolve().write_bytes(weights.read_bytes()[:-1] + b"\0")

    with pytest.raises(UserError, match=rf"org/tb@{COMMIT}: model.safetensors is not the file of its manifest"):
        mg.load("org/tb")


def test_a_file_that_was_altered_after_the_first_loading_is_refused_too(published):
    mg.load("org/tb")
    blob = (published / "metrics.json").resolve()
    blob.write_bytes(b"{}")

    with pytest.raises(UserError, match=r"metrics\.json is not the file of its manifest"):
        mg.load("org/tb")


def test_a_damaged_cache_that_was_mended_is_loaded_again(published):
    blob = (published / "metrics.json").resolve()
    whole = blob.read_bytes()
    mg.load("org/tb")
    blob.write_bytes(b"{}")
    with pytest.raises(UserError):
        mg.load("org/tb")
    blob.write_bytes(whole)

    assert mg.load("org/tb").origin is not None


@pytest.mark.parametrize(
    "name",
    ["../../elsewhere.json", "/etc/passwd.json", "model.bin", "code.py", "a\\b.json", "./config.toml", "a//b.json"],
)
def test_a_manifest_that_names_what_no_run_holds_is_refused(home, trained_run, name):
    manifest = json.loads((trained_run / "manifest.json").read_text("utf-8"))
    manifest["files"][name] = "0" * 64
    cached(home, contents(trained_run) | {"manifest.json": json.dumps(manifest).encode()}, COMMIT, main=COMMIT)

    with pytest.raises(UserError, match="which is not a file of a medgrape run"):
        mg.load("org/tb")


@pytest.mark.usefixtures("published")
def test_a_copy_from_the_hub_is_changed_elsewhere_only(tmp_path):
    reader = mg.load("org/tb")
    with pytest.raises(UserError, match="must not be changed"):
        reader.save(reader.loaded.folder)

    copy = reader.save(tmp_path / "own")

    assert copy.origin is None
    assert mg.load("org/tb").origin == reader.origin


@pytest.mark.usefixtures("published")
def test_a_copy_is_known_for_one_before_it_is_there(monkeypatch):
    class KilledAtItsEnd:
        """A folder that is put in its place, and nothing happens after that."""

        def __init__(self, folder):
            self.folder, self.whole = folder, whole_folder(folder)

        def __enter__(self):
            return self.whole.__enter__()

        def __exit__(self, *error):
            self.whole.__exit__(*error)
            raise KeyboardInterrupt(str(self.folder))

    monkeypatch.setattr(download, "whole_folder", KilledAtItsEnd)
    with pytest.raises(KeyboardInterrupt) as killed:
        mg.load("org/tb")

    assert mg.load(str(killed.value)).origin == HubOrigin("org/tb", COMMIT)


@pytest.mark.usefixtures("published")
def test_a_copy_that_lost_its_note_gets_it_again():
    folder = mg.load("org/tb").loaded.folder
    folder.with_name(f"{COMMIT}.hub.json").unlink()

    reader = mg.load("org/tb")

    assert reader.origin == HubOrigin("org/tb", COMMIT)
    with pytest.raises(UserError, match="must not be changed"):
        reader.save(folder)


@pytest.mark.parametrize("name", ["org/tb", "org/tb@v1", f"org/tb@{COMMIT}"])
@pytest.mark.usefixtures("published")
def test_loading_without_a_commit_prints_the_commit(name, caplog):
    mg.load(name)

    messages = [record.getMessage() for record in caplog.records if record.name == "medgrape.hub"]
    pinned = name.endswith(COMMIT)
    assert messages == ([] if pinned else [f"{name} is commit {COMMIT} today; to keep to it, write org/tb@{COMMIT}."])


@pytest.mark.usefixtures("home")
def test_a_missing_run_is_an_error_of_one_sentence():
    with pytest.raises(UserError, match=r"no folder org/other here nor in the hub's cache, and the hub cannot"):
        mg.load("org/other")
    with pytest.raises(UserError, match=r"no folder org/tb@v9 here"):
        mg.load("org/tb", revision="v9")


def test_a_path_is_never_taken_for_a_name_on_the_hub(tmp_path, monkeypatch, trained_run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()

    assert hub_name("runs/mistyped") is None
    assert hub_name(trained_run) is None
    assert hub_name("org/tb/more") is None
    assert hub_name("org/model.onnx") is None
    assert str(hub_name("runs/tb@v1")) == "runs/tb@v1"
    with pytest.raises(UserError, match="is no run"):
        mg.load("runs/mistyped")
    with pytest.raises(UserError, match="so it has no revision"):
        mg.load(trained_run, revision="main")
    with pytest.raises(UserError, match="names a revision already"):
        mg.load("org/tb@v1", revision="v2")


@pytest.mark.usefixtures("home")
def test_without_the_library_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)

    with pytest.raises(UserError, match=r"pip install 'medgrape\[hub\]'"):
        mg.load("org/tb")


@pytest.mark.usefixtures("published")
def test_commands_take_a_name_on_the_hub_and_print_its_commit(films_folder):
    film = str(films_folder / "film0.png")
    read = CliRunner().invoke(app, ["read", film, "--model", "org/tb", "--json"], catch_exceptions=False)
    pinned = CliRunner().invoke(app, ["read", film, "--model", f"org/tb@{COMMIT}", "--json"], catch_exceptions=False)

    assert json.loads(read.stdout) == json.loads(pinned.stdout)
    assert f"org/tb@{COMMIT}" in read.stderr
    assert pinned.stderr == ""


@pytest.mark.usefixtures("published")
def test_a_report_on_a_model_from_the_hub_is_in_the_current_folder(drawn_dataset, tmp_path):
    done = CliRunner().invoke(
        app, ["evaluate", "org/tb@v1", "--data", str(drawn_dataset), "--json"], catch_exceptions=False
    )

    assert done.exit_code == 0, done.output
    assert (tmp_path / "tb-test" / "report.json").is_file()
