"""Which process this is of those that torchrun or SLURM started for a training.

This module does not import torch: a command needs it before its settings are read.
"""

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from medgrape.errors import UserError

_SHELLS = ("bash", "sh", "zsh", "interactive")  # Names that SLURM gives to the job of an interactive shell
_POLL = 1.0  # Seconds between two checks that the parent process still runs


class PeerExitedError(UserError):
    """Another process of the same training has ended. It has printed the reason itself, unless it was killed."""

    def __init__(self) -> None:
        message = "Another process of this training has ended; the same command goes on after the last whole epoch."
        super().__init__(message)


@dataclass(frozen=True)
class ProcessInfo:
    """Rank of this process among those that a launcher started for one training."""

    launcher: Literal["torchrun", "slurm"]
    rank: int
    world: int  # Number of processes on all machines
    nodes: int
    per_node: int  # Number of processes on each machine

    @property
    def is_rank_zero(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    @property
    def is_even(self) -> bool:
        """Whether every machine has the same number of processes."""
        return self.nodes * self.per_node == self.world


def process_info(environment: Mapping[str, str] = os.environ, *, terminal: bool | None = None) -> ProcessInfo | None:
    """Read from the environment what torchrun or SLURM started; None for a process on its own.

    SLURM sets its variables everywhere in an allocation. Only a step of several tasks means that srun started this
    process as one of several: a batch script without srun, a single task, or a shell is a process on its own.
    """
    if "TORCHELASTIC_RUN_ID" in environment:
        nodes, per_node = int(environment["GROUP_WORLD_SIZE"]), int(environment["LOCAL_WORLD_SIZE"])
        return ProcessInfo("torchrun", int(environment["RANK"]), int(environment["WORLD_SIZE"]), nodes, per_node)
    tasks = int(environment.get("SLURM_STEP_NUM_TASKS", "1"))
    if terminal is None:  # srun connects stdin to a pipe, unless it opens a shell (--pty)
        terminal = sys.stdin is not None and sys.stdin.isatty()
    if tasks == 1 or terminal or environment.get("SLURM_JOB_NAME") in _SHELLS:
        return None
    nodes, tasks_per_node = int(environment["SLURM_STEP_NUM_NODES"]), environment["SLURM_STEP_TASKS_PER_NODE"]
    per_node = int(re.match(r"\d+", tasks_per_node)[0])  # type: ignore[index] # "2(x3)": two on each of three
    return ProcessInfo("slurm", int(environment["SLURM_PROCID"]), tasks, nodes, per_node)


def end_with_parent() -> None:
    """Terminate this process when its parent ends.

    A killed torchrun leaves its processes behind, which would continue training and hold the lock of the run.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_POLL)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="medgrape-parent").start()
