"""The command ``medgrape audit``."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from test_commands import medgrape

from medgrape.baselines.methods import load_any
from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset, SplitRule
from medgrape.datasets.sources.phantoms import PhantomOptions, draw_dataset
from medgrape.evaluation.faithfulness import faithfulness
from medgrape.training.run import TrainingJob, train
from small_settings import small


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """Return a data set with at least ten patients per group."""
    folder = tmp_path_factory.mktemp("town") / "films"
    draw_dataset(PhantomOptions(films=160, seed=6, size=64), folder, SplitRule(validation=0.1, test=0.7, seed=0))
    return folder


@pytest.fixture(scope="module")
def bottleneck(drawn_dataset, tmp_path_factory):
    """Return a run of a method without prototypes."""
    brief = {"concepts": {"views": 3}, "cbm": {"epochs": 2, "batch": 16}}
    return train(
        TrainingJob(
            small(model={"method": "cbm"}, stages=brief), drawn_dataset, tmp_path_factory.mktemp("runs") / "cbm"
        )
    )


@pytest.fixture(scope="module")
def audited(trained_run, town, tmp_path_factory):
    run = tmp_path_factory.mktemp("audited") / "run"
    shutil.copytree(trained_run, run)
    return run, medgrape("audit", run, "--data", town, "--by", "sex,view,sex+age")


def test_an_audit_writes_a_page_and_a_json_file_beside_the_run(audited):
    run, result = audited
    assert result.returncode == 0, result.stderr
    folder = run.with_name("run-audit-test")
    assert sorted(path.name for path in folder.iterdir()) == ["audit.html", "audit.json"]
    report = json.loads((folder / "audit.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert [table["title"] for table in report["tables"]] == ["sex", "view", "sex and age"]
    measures = {one["name"] for one in report["measures"]}
    assert {"macro_f1", "pointing", "energy", "caught", "false_alarms", "balance"} <= measures
    assert not {"deletion", "insertion"} & measures, "they are slow, so only on request"
    (energy,) = (one for one in report["whole"]["figures"] if one["measure"] == "energy")
    assert 0 < energy["trivial"][0]["value"] < energy["value"] < 1, "even a small model beats a flat map"
    assert report["gaps"] > 10
    assert (folder / "audit.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_an_audit_prints_a_table_for_each_attribute_and_each_flagged_gap_as_a_sentence(audited):
    run, result = audited
    for words in (
        "By sex: ",
        "By view: ",
        "By sex and age: ",
        "By sex: maps",
        "box energy",
        "female",
        "all films",
        "too few",
        "gaps between a group",
    ):
        assert words in result.stdout
    report = json.loads((run.with_name("run-audit-test") / "audit.json").read_text("utf-8"))
    for sentence in (*report["headline"], *report["flagged"], *report["warnings"], "run-audit-test/audit.html"):
        assert sentence in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("method_run", ["trained_run", pytest.param("bottleneck", marks=pytest.mark.slow)])
def test_insertion_and_deletion_are_measured_for_every_method(method_run, drawn_dataset, tmp_path, request):
    run = request.getfixturevalue(method_run)
    words = ("--by", "sex", "--split", "train", "--out", tmp_path / "out", "--faithfulness", "--json")
    result = medgrape("audit", run, "--data", drawn_dataset, *words)
    assert result.returncode == 0, result.stderr
    figures = {one["measure"]: one for one in json.loads(result.stdout)["whole"]["figures"]}
    own = changed_by_hand(run, drawn_dataset)
    for name, areas in (("deletion", own.deletion), ("insertion", own.insertion)):
        assert figures[name]["value"] == pytest.approx(areas.mean(), abs=1e-3)
        (blind,) = figures[name]["trivial"]
        assert blind["title"] == "patches in a random order"
        assert 0 < blind["value"] < 1
    assert {"pointing", "energy"} <= set(figures)
    assert ("caught" in figures) == (method_run == "trained_run"), "a baseline has no safety check"


@torch.no_grad()
def changed_by_hand(run, data):
    """Compute the figures for all training films at once, from the highest map of each."""
    model, config, dataset = load_any(run).run.model, load_any(run).run.config, Dataset.load(data)
    cached = cached_films(config, dataset, data)
    pixels = [cached[place] for place, film in enumerate(dataset.pictured) if film.split == "train"]
    films = torch.from_numpy(np.stack(pixels)).unsqueeze(1).float() / 255.0

    def answer(some):
        result = model.predict_with_all_maps(some)[0]
        return getattr(result, "logits", result).softmax(dim=-1)

    shown = model.predict_with_all_maps(films)[1]
    return faithfulness(answer, films, getattr(shown, "strongest", shown).amax(dim=1))


def test_an_audit_of_a_baseline_writes_its_page(bottleneck, drawn_dataset, tmp_path):
    result = medgrape(
        "audit", bottleneck, "--data", drawn_dataset, "--by", "sex", "--split", "train", "--out", tmp_path / "out"
    )
    assert result.returncode == 0, result.stderr
    assert "pointing" in result.stdout
    assert "false alarms" not in result.stdout
    assert "insertion" not in (tmp_path / "out" / "audit.html").read_text("utf-8")


def test_an_audit_in_json_is_also_written_to_the_out_folder(trained_run, drawn_dataset, tmp_path):
    result = medgrape(
        "audit", trained_run, "--data", drawn_dataset, "--by", "age", "--out", tmp_path / "here", "--json"
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == json.loads((tmp_path / "here" / "audit.json").read_text("utf-8"))


def test_an_audit_never_writes_into_a_run(trained_run, drawn_dataset):
    result = medgrape("audit", trained_run, "--data", drawn_dataset, "--out", trained_run / "audit")
    assert result.returncode == 2
    assert not (trained_run / "audit").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--by", "sxe"), "did you mean 'sex'"),
        (("--by", "sex+height"), "known: age, sex, view"),
        (("--split", "tset"), "A split is one of train, val, test"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_exit_code_two(trained_run, drawn_dataset, tmp_path, words, message):
    result = medgrape("audit", trained_run, "--data", drawn_dataset, "--out", tmp_path / "out", *words)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"sex": "", "age": None, "view": ""}, "No film of this split has a known sex or age or view"),
        ({"split": "train"}, "has no films in split 'test'"),
    ],
)
def test_a_set_without_known_attributes_or_without_films_is_refused(
    trained_run, drawn_dataset, tmp_path, facts, message
):
    known = Dataset.load(drawn_dataset)
    films = tuple(replace(film, **facts) for film in known.films)
    replace(known, films=films).save(tmp_path / "set")
    result = medgrape("audit", trained_run, "--data", tmp_path / "set", "--out", tmp_path / "out")
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
