"""Trainings that log to MLflow, against MLflow's own server."""

import hashlib
import json
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from lightning_fabric import Fabric
from tcp_proxy import TcpProxy

from medgrape.config import parse_config
from medgrape.datasets.dataset import Dataset, checksum
from medgrape.training import run as running
from medgrape.training.run import TrainingJob, train
from medgrape.training.training_log import (
    FILES,
    Tracking,
    TrackingError,
    TrainingLog,
    figures,
    flattened,
    open_mlflow,
    without_password,
)
from small_settings import small

QUICK = small(stages={"concepts": {"epochs": 2}, "prototypes": {"epochs": 1}, "head": {"epochs": 2}})


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """Of MLflow's own server, on a database of its own."""
    pytest.importorskip("mlflow")
    pytest.importorskip("flask")
    script = Path(__file__).with_name("mlflow_server.py")
    command = [sys.executable, "-W", "ignore", str(script), str(tmp_path_factory.mktemp("mlflow"))]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        line = server.stdout.readline()
        assert line.strip().isdigit(), "MLflow's server did not start"
        yield int(line)
    finally:
        server.terminate()
        server.wait(timeout=20)
        server.stdout.close()


@pytest.fixture
def proxy(port):
    between = TcpProxy(port)
    yield between
    between.close()


@pytest.fixture
def tracking(proxy, request) -> Tracking:
    return Tracking(f"http://127.0.0.1:{proxy.port}", experiment=request.node.name)


def mlflow_run(port, experiment):
    """The client and the only run of an experiment."""
    from mlflow import MlflowClient

    client = MlflowClient(f"http://127.0.0.1:{port}")
    (run,) = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    return client, run


def in_mlflow(client, run):
    """Every figure that MLflow has, as (name, epoch, value)."""
    histories = (client.get_metric_history(run.info.run_id, name) for name in run.data.metrics)
    return sorted((metric.key, metric.step, metric.value) for history in histories for metric in history)


def in_journal(folder):
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text("utf-8").splitlines()]
    return sorted((name, entry["epoch"], value) for entry in entries for name, value in figures(entry).items())


def test_mlflow_has_the_log_the_settings_and_the_hash_but_no_patient(tracking, port, drawn_dataset, tmp_path):
    withheld = Dataset.load(drawn_dataset).films[0].id
    config = QUICK.model_copy(update={"exemplars": QUICK.exemplars.overridden(withheld=[withheld])})
    out = train(TrainingJob(config, drawn_dataset, tmp_path / "run", tracking=replace(tracking, files=True)))
    client, run = mlflow_run(port, tracking.experiment)

    assert in_mlflow(client, run) == in_journal(out)
    assert len(in_journal(out)) == 5 * 5
    assert run.data.params == flattened(config.model_dump(mode="json"))
    assert run.data.params["stages.head.epochs"] == "2"
    assert run.data.tags["medgrape.dataset_checksum"] == checksum(drawn_dataset)
    assert run.data.tags["medgrape.run"] == hashlib.sha256((out / "manifest.json").read_bytes()).hexdigest()
    assert "not a medical device" in run.data.tags["mlflow.note.content"]
    assert (run.info.status, run.info.run_name) == ("FINISHED", "run")
    (tmp_path / "sent").mkdir()
    sent = Path(client.download_artifacts(run.info.run_id, "", str(tmp_path / "sent")))
    assert sorted(path.name for path in sent.iterdir()) == sorted(FILES)
    assert withheld in (out / "config.toml").read_text("utf-8")
    assert [path.name for path in sent.iterdir() if withheld.encode() in path.read_bytes()] == []


def test_a_continued_training_uses_the_same_mlflow_run_with_every_epoch_once(
    tracking, port, drawn_dataset, tmp_path, monkeypatch
):
    job, add = TrainingJob(QUICK, drawn_dataset, tmp_path / "run", tracking=tracking), TrainingLog.add

    def stopped(self, entry):
        if entry["stage"] == "prototypes":  # in the checkpoint, but not in the log
            raise KeyboardInterrupt
        add(self, entry)

    monkeypatch.setattr(TrainingLog, "add", stopped)
    with pytest.raises(KeyboardInterrupt):
        train(job)
    monkeypatch.setattr(TrainingLog, "add", add)
    client, before = mlflow_run(port, tracking.experiment)
    assert before.info.status == "KILLED"
    assert {name.split("/")[0] for name in before.data.metrics} == {"concepts"}

    out = train(job)
    client, after = mlflow_run(port, tracking.experiment)
    assert after.info.run_id == before.info.run_id
    assert after.info.status == "FINISHED"
    assert in_mlflow(client, after) == in_journal(out)


def test_an_unreachable_server_is_refused_before_a_film_is_read(tracking, proxy, drawn_dataset, tmp_path, monkeypatch):
    proxy.cut()
    monkeypatch.setattr(running, "cached_films", lambda *_: pytest.fail("a film was read"))
    with_password = replace(tracking, uri=tracking.uri.replace("//", "//alma:geheim@"))
    with pytest.raises(TrackingError) as refused:
        train(TrainingJob(QUICK, drawn_dataset, tmp_path / "run", tracking=with_password))
    assert str(refused.value).startswith(f"MLflow at {tracking.uri} cannot be used (MlflowException")
    assert str(refused.value).endswith("start it, or train without --mlflow.")
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize("comes_back", [True, False])
def test_losing_the_server_midway_does_not_stop_the_training(
    comes_back, tracking, proxy, port, drawn_dataset, tmp_path, monkeypatch, caplog
):
    add = TrainingLog.add

    def disturbed(self, entry):
        if (entry["stage"], entry["epoch"]) == ("concepts", 2):
            proxy.cut()
        if comes_back and (entry["stage"], entry["epoch"]) == ("head", 2):
            proxy.restore()
        add(self, entry)

    monkeypatch.setattr(TrainingLog, "add", disturbed)
    with caplog.at_level(logging.WARNING, "medgrape.training"):
        out = train(TrainingJob(QUICK, drawn_dataset, tmp_path / "run", tracking=tracking))
    client, run = mlflow_run(port, tracking.experiment)
    warnings = warnings_in(caplog)

    assert len(in_journal(out)) == 5 * 5
    assert len(warnings) == 2
    assert "the training goes on" in warnings[0]
    if comes_back:
        assert in_mlflow(client, run) == in_journal(out)
        assert warnings[1].endswith("is back and has every epoch.")
        assert run.info.status == "FINISHED"
    else:
        assert {step for _, step, _ in in_mlflow(client, run)} == {1}
        assert warnings[1].endswith("missed the end and 4 epochs; see log.jsonl.")


def epoch(stage, number):
    return {"stage": stage, "epoch": number, "train_loss": number / 8, "val_loss": number / 4}


def warnings_in(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "medgrape.training"]


def away(*_given, **_named):
    raise ConnectionError


def test_a_server_that_misses_only_the_end_is_reported_as_such(
    tracking, port, trained_run, drawn_dataset, tmp_path, monkeypatch, caplog
):
    opened = open_mlflow(tracking, QUICK, drawn_dataset, tmp_path, "run")
    opened.add(epoch("head", 1))
    monkeypatch.setattr(opened.client, "set_terminated", away)
    opened.finish(trained_run)
    assert mlflow_run(port, tracking.experiment)[1].info.status == "RUNNING"
    assert warnings_in(caplog)[-1].endswith("has every epoch, but the run could not be marked as finished.")


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_server_that_is_lost_at_the_start_gets_every_epoch_once_or_is_reported(
    comes_back, tracking, port, trained_run, drawn_dataset, tmp_path, monkeypatch, caplog
):
    open_mlflow(tracking, QUICK, drawn_dataset, tmp_path, "run").add(epoch("concepts", 1))
    again = open_mlflow(tracking, QUICK, drawn_dataset, tmp_path, "run")
    with monkeypatch.context() as cut:
        cut.setattr(again.client, "get_metric_history", away)
        again.begin([epoch("concepts", 1), epoch("concepts", 2)])
        if not comes_back:
            again.finish(trained_run)
            assert warnings_in(caplog)[-1].endswith("missed the end and 2 epochs; see log.jsonl.")
            return
    again.add(epoch("head", 1))
    again.finish(trained_run)
    losses = [(name, step) for name, step, _ in in_mlflow(*mlflow_run(port, tracking.experiment)) if "train" in name]
    assert losses == [("concepts/train_loss", 1), ("concepts/train_loss", 2), ("head/train_loss", 1)]
    assert warnings_in(caplog)[-1].endswith("is back and has every epoch.")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://alma:geheim@host:5000", "http://host:5000"),
        ("postgresql://u:a/b@host/db", "postgresql://host/db"),
        ("http://u:p@ss@h", "http://h"),
        ("http://host:5000/path", "http://host:5000/path"),
    ],
)
def test_an_address_is_shown_without_user_and_password(address, shown):
    assert Tracking(address).shown == shown
    assert without_password(f"could not reach {address} at all") == f"could not reach {shown} at all"


def test_only_rank_zero_logs_to_mlflow(monkeypatch, tmp_path, drawn_dataset):
    class Helper(Fabric):
        is_global_zero = False

        def __init__(self):
            """Of nothing that it would be part of."""

    class Met:
        def broadcast(self, answer):
            return answer

        wait_for_file = wait = lambda *_: None

    given = []
    monkeypatch.setattr(running.Barrier, "of", lambda _: Met())
    monkeypatch.setattr(running, "open_mlflow", lambda *_: pytest.fail("another process opened MLflow"))
    monkeypatch.setattr(running, "_learn", lambda *_, mlflow=None, **__: given.append(mlflow))
    job = TrainingJob(QUICK, drawn_dataset, tmp_path / "run", tracking=Tracking("http://127.0.0.1:1"))
    running._work(Helper(), job, running.quietly, running.unwatched)
    assert given == [None]


def test_withheld_films_and_patients_are_not_sent_to_mlflow():
    params = flattened(parse_config({"exemplars": {"withheld": ["Rumpelstiltskin"]}}).model_dump(mode="json"))
    assert params["exemplars.withheld"] == "1"
    assert "Rumpelstiltskin" not in json.dumps(params)
    assert (params["seed"], params["model.head"], params["stages.concepts.like"]) == ("0", "gat", "{}")


def test_a_missing_mlflow_gives_the_command_to_install_it(monkeypatch, tmp_path, drawn_dataset):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(TrackingError, match=r"pip install 'medgrape\[mlflow\]'"):
        open_mlflow(Tracking("http://127.0.0.1:1"), QUICK, drawn_dataset, tmp_path, "run")
