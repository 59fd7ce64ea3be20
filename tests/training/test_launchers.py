"""Who started a process, by what torchrun and SLURM leave in its environment."""

import os
import signal
import subprocess
import sys
import time

import pytest

from medgrape.config import TrainingSettings
from medgrape.training.films import TrainingError
from medgrape.training.launchers import ProcessInfo, process_info
from medgrape.training.processes import launch, one_device

TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "none",
    "RANK": "3",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "4",
    "LOCAL_WORLD_SIZE": "2",
    "GROUP_WORLD_SIZE": "2",
}
SRUN = {
    "SLURM_JOB_NAME": "train.sh",
    "SLURM_NTASKS": "6",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "6",
    "SLURM_STEP_NUM_NODES": "3",
    "SLURM_STEP_TASKS_PER_NODE": "2(x3)",
    "SLURM_PROCID": "0",
}


def test_rank_and_world_size_are_read_from_torchrun():
    assert process_info(TORCHRUN) == ProcessInfo("torchrun", rank=3, world=4, nodes=2, per_node=2)
    assert not process_info(TORCHRUN).is_rank_zero


def test_rank_and_world_size_are_read_from_srun():
    assert process_info(SRUN, terminal=False) == ProcessInfo("slurm", rank=0, world=6, nodes=3, per_node=2)
    assert process_info(SRUN, terminal=False).is_rank_zero


def test_torchrun_takes_precedence_over_slurm():
    assert process_info(SRUN | TORCHRUN, terminal=False).launcher == "torchrun"


@pytest.mark.parametrize(
    ("environment", "terminal"),
    [
        pytest.param({}, False, id="no cluster"),
        pytest.param({"SLURM_NTASKS": "8", "SLURM_PROCID": "0", "SLURM_JOB_NAME": "train.sh"}, False, id="no srun"),
        pytest.param(SRUN | {"SLURM_STEP_NUM_TASKS": "1"}, False, id="one task"),
        pytest.param(SRUN | {"SLURM_JOB_NAME": "bash"}, False, id="a shell that srun opened"),
        pytest.param(SRUN, True, id="somebody at a terminal"),
    ],
)
def test_a_process_without_launcher_is_on_its_own(environment, terminal):
    assert process_info(environment, terminal=terminal) is None


@pytest.mark.parametrize("environment", [TORCHRUN | {"WORLD_SIZE": "3"}, SRUN | {"SLURM_STEP_TASKS_PER_NODE": "1,3,2"}])
def test_machines_with_different_numbers_of_processes_are_refused(environment, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TrainingError, match="every machine must have the same number"):
        launch(TrainingSettings(device="cpu"), pytest.fail)


def test_one_process_in_an_allocation_for_many_trains_by_itself(monkeypatch):
    """Lightning alone would take the batch script's variables for an order to wait for seven others."""
    for name, value in {"SLURM_NTASKS": "8", "SLURM_PROCID": "0", "SLURM_JOB_NAME": "train.sh"}.items():
        monkeypatch.setenv(name, value)
    worlds = []
    launch(TrainingSettings(device="cpu"), lambda fabric: worlds.append(fabric.world_size))
    assert worlds == [one_device("cpu").world_size] == [1]


def test_a_process_ends_when_its_parent_is_killed(tmp_path):
    """The parent is killed, so that it cannot tell anybody."""
    mark = tmp_path / "child"
    child = (
        "import pathlib, os, time; from medgrape.training.launchers import end_with_parent;"
        f"end_with_parent(); pathlib.Path({str(mark)!r}).write_text(str(os.getpid())); time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"]
    )
    _until(lambda: mark.is_file() and mark.read_text())
    parent.kill()
    parent.wait()
    pid = int(mark.read_text())
    try:
        _until(lambda: not _is_alive(pid))
    finally:
        if _is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def _is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _until(done, seconds=20):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)
