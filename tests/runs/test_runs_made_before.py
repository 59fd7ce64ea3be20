"""Runs and exports of version 0.1.0 load and answer as they did (tests/fixtures/version-0.1.0)."""

import json
import shutil

import pytest

import medgrape as mg
from made_before import BEFORE, EXPECTED, alike


@pytest.fixture(params=["run", "run.onnx"])
def study(request, tmp_path):
    source = BEFORE / request.param
    copy = tmp_path / request.param
    shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
    return mg.load(copy).open(BEFORE / "film.png")


def test_a_model_made_before_reads_a_film_as_it_did(study):
    now = json.loads(json.dumps(study.explain().to_json()))
    assert alike(now, EXPECTED["reading"])


def test_a_correction_does_what_it_did(study):
    box = mg.Box(*EXPECTED["box"])
    assert alike(study.check(box, "active_tb").to_json(), EXPECTED["check"])
    corrected = study.apply(box, "active_tb", confirmed=True).reject("obsolete_tb")
    assert alike(dict(corrected.prediction), EXPECTED["corrected"])
    assert alike(json.loads(json.dumps(corrected.log)), EXPECTED["log"])


def test_a_run_made_before_is_calibrated_curated_and_taught(tmp_path):
    run = shutil.copytree(BEFORE / "run", tmp_path / "run")
    taught = mg.load(run).discard("active_tb", [1]).learn("cavity", "Thick-walled lucency in the upper lobe.")
    again = mg.load(taught.save(tmp_path / "taught").loaded.folder)
    assert again.concepts.names[-1] == "cavity"
    assert len(again.loaded.run.changes) == 2
