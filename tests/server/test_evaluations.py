"""Reports and audits beside a run are shown for exactly that run."""

import json
import shutil

import pytest
from reading_room import reading_room

from medgrape.baselines.methods import load_any
from medgrape.evaluation.audit.audit import audit_run
from medgrape.evaluation.audit.groups import attributes
from medgrape.evaluation.evaluate import evaluate_run
from medgrape.runs.manifest import audit_folder, report_folder


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory, trained_run, drawn_dataset):
    """A run with a report and an audit beside it."""
    run = shutil.copytree(trained_run, tmp_path_factory.mktemp("evaluated") / "run")
    loaded = load_any(run)
    evaluate_run(loaded, drawn_dataset, report_folder(run, "test"))
    audit_run(loaded, drawn_dataset, audit_folder(run, "test"), attributes("sex,view"))
    return run


@pytest.fixture
def run(evaluated, tmp_path):
    """The same, for oneself."""
    return shutil.copytree(evaluated.parent, tmp_path / "runs") / "run"


@pytest.fixture
def evaluation(tmp_path, run):
    """The evaluation that a room shows of the run, asked at any time."""
    with reading_room(tmp_path / "room", run) as room:
        model = room.model_in_use()
        yield lambda: room.get("rita", f"/models/{model}/evaluation").json()


def changed(path, **parts):
    content = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(content | parts), "utf-8")


def test_the_figures_of_the_report_are_shown_with_trivial_baselines(evaluation, run):
    found, written = evaluation()["report"], json.loads((report_folder(run, "test") / "report.json").read_text("utf-8"))
    for name in ("split", "data_set", "films", "known_films", "headline", "warnings"):
        assert found[name] == written[name]
    classes, pointing = written["classification"], written["localisation"]["per_pair"]
    assert found["classification"]["macro_f1"] == {"value": classes["macro_f1"], **classes["interval"]}
    assert found["classification"]["majority"] == classes["majority"]
    assert [one["f1"] for one in found["classification"]["classes"]] == [one["f1"] for one in classes["classes"]]
    assert (found["pointing"]["chance"], found["pointing"]["fixed"]) == (pointing["chance"], pointing["fixed"])
    assert found["pointing"]["mean"] == {"value": pointing["mean"]["share"], **pointing["mean"]["interval"]}
    checks = {one["name"]: one for one in written["interaction"]["checks"]}
    own = checks.get("calibrated") or checks.get("settings") or checks["paper"]
    assert found["safety"]["own"]["title"] == own["title"]
    assert found["safety"]["own"]["caught"]["value"] == own["caught"]["share"]
    assert found["safety"]["majority"]["title"] == checks["majority"]["title"]
    assert found["its_own"]


def test_every_group_of_the_audit_is_shown_with_its_flags(evaluation, run):
    path = audit_folder(run, "test") / "audit.json"
    written = json.loads(path.read_text("utf-8"))
    interval = {"low": -0.4, "high": -0.1}
    figure = written["tables"][0]["groups"][0]["figures"][0] | {
        "too_few": False, "value": 0.5, "interval": {"low": 0.4, "high": 0.6},
        "trivial": [{"name": "majority", "title": "always “healthy”", "value": "nan"}],
        "gap": {"rest": 0.75, "rest_interval": interval, "difference": -0.25, "interval": interval, "p_value": 0.01,
                "flagged": True, "corrected_p_value": 0.2, "still_flagged": False},
    }  # fmt: skip
    written["tables"][0]["groups"][0]["figures"][0] = figure
    path.write_text(json.dumps(written), "utf-8")
    found = evaluation()["audit"]
    assert found["measures"] == written["measures"]
    assert [table["title"] for table in found["tables"]] == ["sex", "view"]
    for table, origin in zip(found["tables"], written["tables"], strict=True):
        for group, its in zip(table["groups"], origin["groups"], strict=True):
            assert [group[name] for name in ("name", "films", "patients")] == [
                its[name] for name in ("name", "films", "patients")
            ]
            assert [one["value"] for one in group["figures"]] == [one["value"] for one in its["figures"]]
    first, *others = found["tables"][0]["groups"][0]["figures"]
    assert (first["low"], first["high"], first["rest"]) == (0.4, 0.6, 0.75)
    assert (first["flagged"], first["still_flagged"], first["trivial"][0]["value"]) == (True, False, None)
    assert not any(one["flagged"] for one in others)


def test_with_report_and_audit_nothing_is_missing(evaluation):
    assert evaluation()["how"] is None


def test_without_reports_the_commands_to_make_them_are_named(evaluation, run):
    shutil.rmtree(report_folder(run, "test"))
    shutil.rmtree(audit_folder(run, "test"))
    found = evaluation()
    assert (found["report"], found["audit"]) == (None, None)
    assert "medgrape evaluate RUN --data DIR" in found["how"]
    assert "medgrape audit RUN --data DIR" in found["how"]
    assert str(run.parent) not in found["how"]


def test_a_report_about_another_run_is_not_shown(evaluation, run):
    changed(audit_folder(run, "test") / "audit.json", version="0" * 16)
    report = report_folder(run, "test") / "report.json"
    facts = json.loads(report.read_text("utf-8"))["facts"]
    changed(report, facts=facts | {"version": "0" * 16})
    found = evaluation()
    assert (found["report"], found["audit"]) == (None, None)
    assert found["how"].count("about another model") == 2


def test_a_report_without_the_version_of_its_run_is_not_shown(evaluation, run):
    path = audit_folder(run, "test") / "audit.json"
    content = json.loads(path.read_text("utf-8"))
    del content["version"]
    path.write_text(json.dumps(content), "utf-8")
    assert evaluation()["audit"] is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no JSON",
        b"[]",
        b"null",
        b"{}",
        b'{"facts": 3}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"facts": {"version": 1}}',
    ],
    ids=lambda content: repr(content[:12]),
)
def test_a_damaged_report_is_not_shown(evaluation, run, content):
    for path in (report_folder(run, "test") / "report.json", audit_folder(run, "test") / "audit.json"):
        path.write_bytes(content)
    found = evaluation()
    assert (found["report"], found["audit"]) == (None, None)
    assert found["how"].count("damaged") == 2


@pytest.mark.parametrize("value", ["NaN", "1e999", '"much"', "[]"])
def test_an_undefined_figure_is_null_in_the_response(evaluation, run, value):
    path = report_folder(run, "test") / "report.json"
    content = json.loads(path.read_text("utf-8"))
    content["classification"]["accuracy"] = "HERE"
    path.write_text(json.dumps(content).replace('"HERE"', value), "utf-8")
    found = evaluation()
    assert found["report"] is None
    assert found["audit"] is not None


def test_without_a_test_report_the_validation_report_is_shown(evaluation, run):
    assert evaluation()["report"]["split"] == "test"
    report_folder(run, "test").rename(report_folder(run, "val"))
    changed(report_folder(run, "val") / "report.json", split="val")
    assert evaluation()["report"]["split"] == "val"


def test_a_model_made_in_the_room_has_no_reports_and_the_answer_says_why(tmp_path, run):
    with reading_room(tmp_path / "room", run) as room:
        address = f"/models/{room.model_in_use()}/concepts/active_tb/discard"
        made = room.post("cora", address, json={"prototypes": [1]}).json()["version"]
        found = room.get("rita", f"/models/{made}/evaluation").json()
    assert (found["report"], found["audit"]) == (None, None)
    assert "made in the room" in found["how"]


def test_the_model_card_shows_architecture_and_warning_thresholds(tmp_path, run, strict_run):
    with reading_room(tmp_path / "room", run) as room:
        card = room.get("rita", f"/models/{room.model_in_use()}").json()
    made = load_any(run).run
    assert (card["concepts"], card["head"], card["backbone"]) == (3, made.config.model.head, made.config.backbone.name)
    assert (card["input_size"], tuple(card["grid"])) == (made.config.preprocessing.size, made.exemplars.grid)
    assert not card["safety_rule"]["calibrated"]
    assert "Nobody calibrated" in card["safety_rule"]["origin"]
    assert set(card["safety_rule"]["leads"].values()) == {made.config.safety.lead}
    with reading_room(tmp_path / "another", strict_run) as room:
        strict = room.get("rita", f"/models/{room.model_in_use()}").json()["safety_rule"]
    assert set(strict["leads"].values()) == {0.0}
    assert strict["gate"] is None
