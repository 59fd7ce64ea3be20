"""Runs that lack something or have it in another form: refused in one sentence, whoever made them."""

import json
import shutil

import pytest

from medgrape.baselines.methods import load_any
from medgrape.model.backbones.base import BackboneError
from medgrape.plugins import PluginError
from medgrape.runs.checkpoint import load_run
from medgrape.runs.manifest import RunError, seal

WARD = {"name": "drawn_dataset", "checksum": "0"}


@pytest.fixture
def run(trained_run, tmp_path):
    shutil.copytree(trained_run, tmp_path / "run")
    return tmp_path / "run"


def rewrite(run, name, payload):
    """Replace the content of one file and its checksum."""
    (run / name).write_text(json.dumps(payload), "utf-8")
    seal(run, WARD)


def architecture(run):
    return json.loads((run / "architecture.json").read_text("utf-8"))


def other_backbone(run, config):
    greys = {"mean": [0.5] * 3, "spread": [0.5] * 3}
    rewrite(
        run, "architecture.json", architecture(run) | {"backbone": {"kind": "transformers", "config": config} | greys}
    )


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("architecture.json", [1, 2]),
        ("architecture.json", "GRAPE"),
        ("architecture.json", {}),
        ("concepts.json", {"classes": 5, "concepts": []}),
        ("metrics.json", 7),
        ("exemplars.json", {"grid": [], "films": []}),
        ("exemplars.json", []),
        ("changes.json", {"changes": [1]}),
        ("safety.json", {"calibrated": [1]}),
        ("learnt_from.json", None),
    ],
)
def test_a_file_in_another_form_is_one_sentence(run, name, payload):
    rewrite(run, name, payload)
    with pytest.raises(RunError, match="does not fit this version of medgrape: ") as refused:
        load_run(run)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "name",
    ["architecture.json", "concepts.json", "metrics.json", "model.safetensors", "exemplars.safetensors", "safety.json"],
)
def test_a_file_that_nobody_sealed_is_named(run, name):
    (run / name).unlink()
    seal(run, WARD)
    with pytest.raises(RunError, match=rf"is incomplete \(.*{name}.*\); copy it again, or train it anew"):
        load_run(run)


def test_settings_that_nobody_sealed_are_named(run):
    (run / "config.toml").unlink()
    seal(run, WARD)
    with pytest.raises(RunError, match=r"Cannot read the settings in .*config\.toml"):
        load_run(run)


def test_what_a_backbone_or_a_part_says_for_itself_is_told_as_it_is(run):
    other_backbone(run, {"model_type": "oracle"})
    with pytest.raises(BackboneError, match=r"^transformers .* has no architecture 'oracle'\.$"):
        load_run(run)
    other_backbone(run, [1])
    with pytest.raises(BackboneError, match="is not a mapping"):
        load_run(run)
    missing = {"head": {"name": "votes", "distribution": "nobodys", "version": "1"}}
    rewrite(run, "architecture.json", architecture(run) | {"own_parts": missing})
    with pytest.raises(PluginError, match="not installed here: pip install nobodys==1"):
        load_run(run)


@pytest.mark.parametrize("name", ["concepts.json", "model.safetensors"])
def test_a_baseline_that_lacks_something_is_one_sentence_too(run, name):
    (run / name).unlink()
    rewrite(run, "architecture.json", architecture(run) | {"method": "black-box"})
    with pytest.raises(RunError, match=rf"is incomplete \(.*{name}"):
        load_any(run)


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ({"dataset": {}}, "lacks the name or the checksum of its data set"),
        ({"dataset": "drawn_dataset"}, "dataset is not a mapping of names to text"),
        ({"versions": "1.0"}, "versions is not a mapping of names to text"),
        ({"files": ["config.toml"]}, "files is not a mapping of names to text"),
        ({"files": {"config.toml": None}}, "files is not a mapping of names to text"),
    ],
)
@pytest.mark.parametrize("loading", [load_run, load_any])
def test_a_manifest_in_another_form_is_one_sentence(run, entries, sentence, loading):
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    (run / "manifest.json").write_text(json.dumps(manifest | entries), "utf-8")
    with pytest.raises(RunError, match=sentence):
        loading(run)


@pytest.mark.parametrize("text", ['["format", "files", "versions", "dataset"]', pytest.param("[" * 100_000, id="deep")])
def test_a_manifest_that_is_none_cannot_be_read(run, text):
    (run / "manifest.json").write_text(text, "utf-8")
    with pytest.raises(RunError, match="cannot be read"):
        load_run(run)
