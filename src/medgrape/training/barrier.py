"""Where the processes of one training wait for each other, and hear what the first one has done."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch.distributed as dist
from lightning_fabric import Fabric

from medgrape.training.films import TrainingError

T = TypeVar("T")
_PATIENCE = timedelta(days=30)
"""The first process may decode films, or learn the later stages, for as long as that takes. One that has died is
noticed at once all the same: its connection ends."""
_SHARED_WITHIN = 90.0
"""Seconds in which what was written on one machine must be seen on all: network disks look again once a minute."""


@dataclass(frozen=True)
class Meeting:
    """All processes of a training; as it stands, one that is alone."""

    group: Any = None
    """Of torch: a line to the others that is not used for gradients, and on which one may wait for long."""

    @classmethod
    def of(cls, fabric: Fabric) -> "Meeting":
        """Of all that have started together; each must call this."""
        if fabric.world_size == 1:
            return cls()
        return cls(dist.new_group(backend="gloo", timeout=_PATIENCE))

    def wait(self) -> None:
        """Until all are here."""
        if self.group is not None:
            dist.barrier(group=self.group)

    def told(self, value: T) -> T:
        """What the first process says, whatever the others would have said."""
        if self.group is None:
            return value
        said = [value]
        dist.broadcast_object_list(said, src=0, group=self.group)
        return said[0]

    def see(self, path: Path) -> None:
        """Wait until the first process has written ``path``, and until this one sees it."""
        self.wait()
        self.expect(path.exists, path)

    def expect(self, seen: Callable[[], bool], path: Path) -> None:
        """Wait until this process sees what the first one sees; on a disk of its own it never will."""
        end = time.monotonic() + _SHARED_WITHIN
        while self.group is not None and not seen():
            if time.monotonic() > end:
                raise TrainingError(
                    f"{path} was written by the first process, and process {dist.get_rank()} does not see it; data set "
                    "and run must be on disks that all processes share."
                )
            time.sleep(0.2)
