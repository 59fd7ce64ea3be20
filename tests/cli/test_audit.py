"""``medgrape audit`` as a user types it."""

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
from medgrape.datasets.sources.phantoms import PhantomOrder, draw_dataset
from medgrape.evaluation.faithfulness import faithfulness
from medgrape.training.run import TrainingJob, train
from small_settings import small


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """Enough films that groups have ten patients."""
    folder = tmp_path_factory.mktemp("town") / "films"
    draw_dataset(PhantomOrder(films=160, seed=6, size=64), folder, SplitRule(validation=0.1, test=0.7, seed=0))
    return folder


@pytest.fixture(scope="module")
def bottleneck(drawn_dataset, tmp_path_factory):
    """A run of a method without prototypes."""
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
    run, ended = audited
    assert ended.returncode == 0, ended.stderr
    folder = run.with_name("run-audit-test")
    assert sorted(path.name for path in folder.iterdir()) == ["audit.html", "audit.json"]
    told = json.loads((folder / "audit.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert [table["title"] for table in told["tables"]] == ["sex", "view", "sex and age"]
    measures = {one["name"] for one in told["measures"]}
    assert {"macro_f1", "pointing", "energy", "caught", "false_alarms", "balance"} <= measures
    assert not {"deletion", "insertion"} & measures, "they take too long to be counted unasked"
    (energy,) = (one for one in told["whole"]["figures"] if one["measure"] == "energy")
    assert 0 < energy["trivial"][0]["value"] < energy["value"] < 1, "even a small model beats a flat map"
    assert told["gaps"] > 10
    assert (folder / "audit.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_an_audit_prints_a_table_for_each_attribute_and_each_flagged_gap_as_a_sentence(audited):
    run, ended = audited
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
        assert words in ended.stdout
    told = json.loads((run.with_name("run-audit-test") / "audit.json").read_text("utf-8"))
    for sentence in (*told["headline"], *told["flagged"], *told["warnings"], "run-audit-test/audit.html"):
        assert sentence in ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize("pupil", ["trained_run", pytest.param("bottleneck", marks=pytest.mark.slow)])
def test_insertion_and_deletion_are_counted_when_asked_for_whatever_the_method(pupil, drawn_dataset, tmp_path, request):
    run = request.getfixturevalue(pupil)
    words = ("--by", "sex", "--split", "train", "--out", tmp_path / "out", "--faithfulness", "--json")
    ended = medgrape("audit", run, "--data", drawn_dataset, *words)
    assert ended.returncode == 0, ended.stderr
    figures = {one["measure"]: one for one in json.loads(ended.stdout)["whole"]["figures"]}
    own = changed_by_hand(run, drawn_dataset)
    for name, areas in (("deletion", own.deletion), ("insertion", own.insertion)):
        assert figures[name]["value"] == pytest.approx(areas.mean(), abs=1e-3)
        (blind,) = figures[name]["trivial"]
        assert blind["title"] == "patches in a random order"
        assert 0 < blind["value"] < 1
    assert {"pointing", "energy"} <= set(figures)
    assert ("caught" in figures) == (pupil == "trained_run"), "a baseline has no safety check"


@torch.no_grad()
def changed_by_hand(run, data):
    """All training films at once, by the highest of all maps that the model shows."""
    model, config, dataset = load_any(run).run.model, load_any(run).run.config, Dataset.load(data)
    cached = cached_films(config, dataset, data)
    pixels = [cached[place] for place, film in enumerate(dataset.pictured) if film.split == "train"]
    films = torch.from_numpy(np.stack(pixels)).unsqueeze(1).float() / 255.0

    def answer(some):
        said = model.read(some)[0]
        return getattr(said, "logits", said).softmax(dim=-1)

    shown = model.read(films)[1]
    return faithfulness(answer, films, getattr(shown, "strongest", shown).amax(dim=1))


def test_an_audit_of_a_baseline_writes_its_page(bottleneck, drawn_dataset, tmp_path):
    ended = medgrape(
        "audit", bottleneck, "--data", drawn_dataset, "--by", "sex", "--split", "train", "--out", tmp_path / "out"
    )
    assert ended.returncode == 0, ended.stderr
    assert "pointing" in ended.stdout
    assert "false alarms" not in ended.stdout
    assert "insertion" not in (tmp_path / "out" / "audit.html").read_text("utf-8")


def test_an_audit_in_json_goes_to_the_folder_that_is_asked_for(trained_run, drawn_dataset, tmp_path):
    ended = medgrape("audit", trained_run, "--data", drawn_dataset, "--by", "age", "--out", tmp_path / "here", "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == json.loads((tmp_path / "here" / "audit.json").read_text("utf-8"))


def test_an_audit_never_writes_into_a_run(trained_run, drawn_dataset):
    ended = medgrape("audit", trained_run, "--data", drawn_dataset, "--out", trained_run / "audit")
    assert ended.returncode == 2
    assert not (trained_run / "audit").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--by", "sxe"), "did you mean 'sex'"),
        (("--by", "sex+height"), "known: age, sex, view"),
        (("--split", "tset"), "A split is one of train, val, test"),
    ],
)
def test_what_cannot_be_audited_is_one_sentence_and_exit_code_two(trained_run, drawn_dataset, tmp_path, words, told):
    ended = medgrape("audit", trained_run, "--data", drawn_dataset, "--out", tmp_path / "out", *words)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"sex": "", "age": None, "view": ""}, "No film of this split has a known sex or age or view"),
        ({"split": "train"}, "has no films in split 'test'"),
    ],
)
def test_a_set_that_tells_nothing_or_has_no_films_there_is_refused_by_name(
    trained_run, drawn_dataset, tmp_path, facts, told
):
    known = Dataset.load(drawn_dataset)
    films = tuple(replace(film, **facts) for film in known.films)
    replace(known, films=films).save(tmp_path / "set")
    ended = medgrape("audit", trained_run, "--data", tmp_path / "set", "--out", tmp_path / "out")
    assert ended.returncode == 2
    assert told in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
