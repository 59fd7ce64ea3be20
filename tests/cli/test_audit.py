"""``medgrape audit`` as a user types it."""

import json
import shutil
from dataclasses import replace

import pytest
from test_commands import medgrape

from medgrape.data.dataset import Dataset
from medgrape.data.sources.phantom import PhantomOrder, draw_dataset
from medgrape.data.splits import SplitRule


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """Enough films that groups have ten patients."""
    folder = tmp_path_factory.mktemp("town") / "films"
    draw_dataset(PhantomOrder(films=160, seed=6, size=64), folder, SplitRule(validation=0.1, test=0.7, seed=0))
    return folder


@pytest.fixture(scope="module")
def audited(graduate, town, tmp_path_factory):
    run = tmp_path_factory.mktemp("audited") / "run"
    shutil.copytree(graduate, run)
    return run, medgrape("audit", run, "--data", town, "--by", "sex,view,sex+age")


def test_an_audit_writes_a_page_and_a_json_file_beside_the_run(audited):
    run, ended = audited
    assert ended.returncode == 0, ended.stderr
    folder = run.with_name("run-audit-test")
    assert sorted(path.name for path in folder.iterdir()) == ["audit.html", "audit.json"]
    told = json.loads((folder / "audit.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert [table["title"] for table in told["tables"]] == ["sex", "view", "sex and age"]
    assert {"macro_f1", "pointing", "caught", "false_alarms"} <= {one["name"] for one in told["measures"]}
    assert told["gaps"] > 10
    assert (folder / "audit.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_an_audit_prints_a_table_for_each_attribute_and_each_flagged_gap_as_a_sentence(audited):
    run, ended = audited
    for words in (
        "By sex, ",
        "By view, ",
        "By sex and age, ",
        "female",
        "all films",
        "too few",
        "gaps between a group",
    ):
        assert words in ended.stdout
    told = json.loads((run.with_name("run-audit-test") / "audit.json").read_text("utf-8"))
    for sentence in (*told["headline"], *told["flagged"], *told["warnings"], "run-audit-test/audit.html"):
        assert sentence in ended.stdout


def test_an_audit_in_json_goes_to_the_folder_that_is_asked_for(graduate, ward, tmp_path):
    ended = medgrape("audit", graduate, "--data", ward, "--by", "age", "--out", tmp_path / "here", "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == json.loads((tmp_path / "here" / "audit.json").read_text("utf-8"))


def test_an_audit_never_writes_into_a_run(graduate, ward):
    ended = medgrape("audit", graduate, "--data", ward, "--out", graduate / "audit")
    assert ended.returncode == 2
    assert not (graduate / "audit").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--by", "sxe"), "did you mean 'sex'"),
        (("--by", "sex+height"), "known: age, sex, view"),
        (("--split", "tset"), "A split is one of train, val, test"),
    ],
)
def test_what_cannot_be_audited_is_one_sentence_and_exit_code_two(graduate, ward, tmp_path, words, told):
    ended = medgrape("audit", graduate, "--data", ward, "--out", tmp_path / "out", *words)
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
def test_a_set_that_tells_nothing_or_has_no_films_there_is_refused_by_name(graduate, ward, tmp_path, facts, told):
    known = Dataset.load(ward)
    films = tuple(replace(film, **facts) for film in known.films)
    replace(known, films=films).save(tmp_path / "set")
    ended = medgrape("audit", graduate, "--data", tmp_path / "set", "--out", tmp_path / "out")
    assert ended.returncode == 2
    assert told in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
