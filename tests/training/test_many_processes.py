"""Trainings that torchrun or SLURM has started: together, killed, begun again."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import tomli_w
import torch
from launching import MODULE, begun, epochs_of, free_port, members, ranks, torchrun, until
from safetensors.torch import load_file

from medgrape.runs.checkpoint import load_run
from medgrape.training.run import TrainingJob, train
from small_settings import small

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.xdist_group("many processes")
EPOCHS = 24
LONGER = {"concepts": {"epochs": EPOCHS}}
CONFIG = small(stages=LONGER)


def weights(run):
    return (run / "model.safetensors").read_bytes()


def log(run):
    """Every epoch, but for how long it took."""
    return [json.loads(line) | {"seconds": 0} for line in (run / "log.jsonl").read_text().splitlines()]


def first_stage(entries):
    return [entry for entry in entries if entry["stage"] == "concepts"]


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "small.toml"
    path.write_text(tomli_w.dumps(CONFIG.model_dump(mode="json")))
    return path


@pytest.fixture(scope="module")
def pair(settings, drawn_dataset, tmp_path_factory):
    """A run that two processes of torchrun made without being disturbed, and what they printed."""
    out = tmp_path_factory.mktemp("pair") / "run"
    command = [*torchrun("--nproc-per-node", "2"), settings, "--data", drawn_dataset, "--out", out]
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return out, ended


@pytest.fixture
def job(drawn_dataset, tmp_path):
    return TrainingJob(CONFIG, drawn_dataset, tmp_path / "run")


@pytest.fixture
def arguments(settings, job):
    return [settings, "--data", job.data, "--out", job.out]


def midway(job, epochs):
    """Whether so many epochs of the first stage are written down; fails when there is nothing left to disturb."""
    entries = epochs_of(job)
    assert len(first_stage(entries)) == len(entries) < EPOCHS, "the first stage was over before it was disturbed"
    return len(entries) >= epochs


def test_two_processes_of_torchrun_leave_one_run_and_only_rank_zero_prints(pair):
    out, ended = pair
    loaded = load_run(out)
    assert loaded.run.metrics["films"] == 35
    assert ended.stdout.count("Validation") == 1
    assert ended.stdout.count(f"-> {out}") == 1
    assert "medgrape:" not in ended.stderr
    assert "Warning" not in ended.stderr
    assert [path.name for path in out.parent.iterdir() if path.name not in ("run", ".run.lock")] == []
    shared = {entry["stage"]: entry["processes"] for entry in log(out)}
    assert shared == {"concepts": 2, "prototypes": 1, "head": 1}


def test_two_processes_train_like_one_except_for_rounding(pair, drawn_dataset, tmp_path):
    alone = train(TrainingJob(CONFIG, drawn_dataset, tmp_path / "alone"))
    one, two = first_stage(log(alone)), first_stage(log(pair[0]))
    assert [entry["train_loss"] for entry in two[:4]] == pytest.approx([e["train_loss"] for e in one[:4]], rel=1e-3)
    assert [entry["val_loss"] for entry in two[:4]] == pytest.approx([e["val_loss"] for e in one[:4]], rel=1e-3)
    apart, together = (load_file(run / "model.safetensors") for run in (alone, pair[0]))
    assert not torch.equal(apart["cam.maps.weight"], together["cam.maps.weight"])  # or this compares one with one
    torch.testing.assert_close(apart["cam.maps.weight"], together["cam.maps.weight"], rtol=0.05, atol=5e-3)


@pytest.mark.slow
def test_torchrun_restarts_a_training_when_a_process_is_killed(pair, job, arguments, tmp_path):
    """First a helper is killed, then the leader, who held the lock; torchrun starts all anew each time."""
    command = [*torchrun("--nproc-per-node", "2", "--max-restarts", "3"), *arguments]
    with begun(command, tmp_path) as agent:
        generations = []
        for victim in (1, 0):
            until(lambda: midway(job, 2 + 4 * len(generations)))
            generations.append(ranks(agent))
            generations[-1][victim].kill()
            old = {process.pid for process in generations[-1].values()}
            until(
                lambda old=old: len(ranks(agent)) == 2 and not old & {process.pid for process in ranks(agent).values()}
            )
        assert agent.wait(timeout=90) == 0, (tmp_path / "output.err").read_text()
    assert weights(job.out) == weights(pair[0])
    assert log(job.out) == log(pair[0])
    assert "fault in medgrape" not in (tmp_path / "output.err").read_text()


@pytest.mark.slow
def test_a_killed_torchrun_leaves_no_process_and_can_be_continued(pair, job, arguments, tmp_path):
    """With as many processes the bytes are the same; one process alone goes on from the same place, too."""
    command = [*torchrun("--nproc-per-node", "2"), *arguments]
    with begun(command, tmp_path) as agent:
        until(lambda: midway(job, 2))
        orphans = list(ranks(agent).values())
        agent.kill()
        agent.wait()
        gone, _ = psutil.wait_procs(orphans, timeout=30)
        assert len(gone) == 2
    reached = len(epochs_of(job))
    fewer = TrainingJob(job.config, job.data, tmp_path / "fewer")
    shutil.copytree(job.work, fewer.work)

    with begun(command, tmp_path, "again") as agent:
        assert agent.wait(timeout=90) == 0, (tmp_path / "again.err").read_text()
    assert f"Continuing the training of {job.out}." in (tmp_path / "again.out").read_text()
    assert weights(job.out) == weights(pair[0])

    train(fewer)
    shared = [entry["processes"] for entry in first_stage(log(fewer.out))]
    assert shared == [2] * reached + [1] * (EPOCHS - reached)
    assert log(fewer.out)[:reached] == log(pair[0])[:reached]


@pytest.mark.slow
def test_torchrun_on_two_machines_gives_the_same_run_as_two_processes(pair, job, arguments, tmp_path):
    """Two agents that meet at one port, as they would from two machines that share a disk."""
    port = free_port()
    options = ("--nnodes", "2", "--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port", port)
    with (
        begun([*torchrun(*options, "--node-rank", "0"), *arguments], tmp_path, "first") as first,
        begun([*torchrun(*options, "--node-rank", "1"), *arguments], tmp_path, "second") as second,
    ):
        assert [agent.wait(timeout=120) for agent in (first, second)] == [0, 0], (tmp_path / "first.err").read_text()
    assert weights(job.out) == weights(pair[0])
    assert "Validation" in (tmp_path / "first.out").read_text()
    assert (tmp_path / "second.out").read_text() == ""


@pytest.mark.slow
def test_two_tasks_of_slurm_give_the_same_run_as_torchrun(pair, job, arguments, tmp_path):
    """Without SLURM: its variables for a step of two tasks, given to two processes."""
    step = {
        "SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "train.sh", "SLURM_JOB_NODELIST": "localhost",
        "SLURM_NODELIST": "localhost", "SLURM_NNODES": "1", "SLURM_NTASKS": "2", "SLURM_STEP_ID": "0",
        "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_NODEID": "0",
        "MASTER_PORT": str(free_port()),
    }  # fmt: skip
    command = [sys.executable, *MODULE, *arguments]
    with (
        begun(command, tmp_path, "0", **step, SLURM_PROCID="0", SLURM_LOCALID="0") as first,
        begun(command, tmp_path, "1", **step, SLURM_PROCID="1", SLURM_LOCALID="1") as second,
    ):
        assert [task.wait(timeout=120) for task in (first, second)] == [0, 0], (tmp_path / "0.err").read_text()
    assert weights(job.out) == weights(pair[0])
    assert (tmp_path / "1.out").read_text() == (tmp_path / "1.err").read_text() == ""


@pytest.mark.slow
def test_spawned_processes_end_with_one_message_when_one_is_killed(pair, job, tmp_path):
    """``training.processes`` starts them without torchrun, and a person again; they do what torchrun's do."""
    settings = tmp_path / "two.toml"
    config = small(stages=LONGER, training={"processes": 2})
    settings.write_text(tomli_w.dumps(config.model_dump(mode="json")))
    command = [sys.executable, *MODULE, settings, "--data", job.data, "--out", job.out]
    with begun(command, tmp_path) as parent:
        until(lambda: midway(job, 2))
        workers = [child for child in members(parent) if "spawn_main" in " ".join(child.cmdline())]
        max(workers, key=lambda worker: worker.pid).kill()
        assert parent.wait(timeout=60) == 2
    assert "Another process of this training has ended" in (tmp_path / "output.err").read_text()
    assert not job.out.exists()
    with begun(command, tmp_path, "again") as parent:
        assert parent.wait(timeout=90) == 0, (tmp_path / "again.err").read_text()
    assert weights(job.out) == weights(pair[0])


@pytest.mark.slow
def test_the_barrier_waits_longer_than_the_group_for_gradients(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", HERE / "slow_rank_zero.py"]
    with begun(command, tmp_path) as agent:
        assert agent.wait(timeout=60) == 0, (tmp_path / "output.err").read_text()
    output = (tmp_path / "output.out").read_text()
    assert "broadcast: at last" in output
    assert "the process group for gradients timed out" in output


def test_an_error_is_printed_once_and_torchrun_fails(drawn_dataset, tmp_path):
    command = [
        *torchrun("--nproc-per-node", "2"),
        tmp_path / "nowhere.toml",
        "--data",
        drawn_dataset,
        "--out",
        tmp_path / "run",
    ]
    with begun(command, tmp_path) as agent:
        assert agent.wait(timeout=60) != 0
    output = (tmp_path / "output.err").read_text()
    assert output.count("medgrape: Cannot read the settings in") == 1
    assert "Process 1" not in output


def test_a_finished_run_is_found_by_all_processes(pair, settings, drawn_dataset, tmp_path):
    out, _ = pair
    before = weights(out)
    command = [*torchrun("--nproc-per-node", "2"), settings, "--data", drawn_dataset, "--out", out]
    with begun(command, tmp_path) as agent:
        assert agent.wait(timeout=60) == 0, (tmp_path / "output.err").read_text()
    assert (tmp_path / "output.out").read_text().count("Validation") == 1
    assert weights(out) == before
