"""Who started this process: torchrun or SLURM, as one of several, or a person, on its own.

Nothing here imports torch: a command asks before it has read its settings.
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

_SHELLS = ("bash", "sh", "zsh", "interactive")
"""What SLURM calls the job of somebody who asked for a shell."""
_GLANCE = 1.0
"""Seconds between two looks at whether torchrun is still there."""


class PeerExitedError(UserError):
    """Another process of the same training has ended; why, that one has said, unless it was killed."""

    def __init__(self) -> None:
        super().__init__(
            "Another process of this training has ended; the same command goes on after the last whole epoch."
        )


@dataclass(frozen=True)
class ProcessInfo:
    """Which process this is, of those that somebody else has started for one training."""

    launcher: Literal["torchrun", "slurm"]
    rank: int
    world: int
    """Processes on all machines together."""
    nodes: int
    per_node: int
    """Processes on each machine."""

    @property
    def is_rank_zero(self) -> bool:
        """Whether this process writes files and tells people."""
        return self.rank == 0

    @property
    def even(self) -> bool:
        """Whether every machine has as many processes."""
        return self.nodes * self.per_node == self.world


def process_info(environment: Mapping[str, str] = os.environ, *, terminal: bool | None = None) -> ProcessInfo | None:
    """Where torchrun or SLURM has put this process; None where it stands alone.

    SLURM's variables are everywhere inside an allocation. Only those of a step of several tasks mean that srun has
    started this process beside others: a batch script without srun, one task, or a person at a shell stands alone.
    """
    if "TORCHELASTIC_RUN_ID" in environment:
        nodes, per_node = int(environment["GROUP_WORLD_SIZE"]), int(environment["LOCAL_WORLD_SIZE"])
        return ProcessInfo("torchrun", int(environment["RANK"]), int(environment["WORLD_SIZE"]), nodes, per_node)
    tasks = int(environment.get("SLURM_STEP_NUM_TASKS", "1"))
    at_a_shell = _at_a_terminal() if terminal is None else terminal
    if tasks == 1 or at_a_shell or environment.get("SLURM_JOB_NAME") in _SHELLS:
        return None
    nodes, told = int(environment["SLURM_STEP_NUM_NODES"]), environment["SLURM_STEP_TASKS_PER_NODE"]
    per_node = int(re.match(r"\d+", told)[0])  # type: ignore[index] # "2(x3)": two on each of three
    return ProcessInfo("slurm", int(environment["SLURM_PROCID"]), tasks, nodes, per_node)


def _at_a_terminal() -> bool:
    """What srun starts hears from a pipe, unless it was asked for a shell (``--pty``)."""
    return sys.stdin is not None and sys.stdin.isatty()


def end_with_parent() -> None:
    """Be asked to end as soon as whoever started this process is gone.

    torchrun that is killed leaves its processes behind, and these would train on and hold the run's lock.
    """
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True, name="medgrape-parent").start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_GLANCE)
    os.kill(os.getpid(), signal.SIGTERM)
