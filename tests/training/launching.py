"""Starts trainings as torchrun and SLURM do, from the command line, and looks after what was started."""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import psutil

from medgrape.training.run import TrainingJob

MODULE = ("-m", "medgrape", "train")


def torchrun(*options):
    """The command, up to what medgrape is told."""
    return [sys.executable, "-m", "torch.distributed.run", *options, *MODULE]


def free_port():
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


@contextmanager
def begun(command, folder, name="said", **environment):
    """A command at work, its words in files; whatever of it is left in the end is ended."""
    out, err = folder / f"{name}.out", folder / f"{name}.err"
    with out.open("w") as told, err.open("w") as complained:
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=told, stderr=complained,
            env=os.environ | {"PYTHONWARNINGS": "default"} | environment,
        )  # fmt: skip
    family = [psutil.Process(process.pid)]
    try:
        yield process
    finally:
        family += members(process)
        for one in family:
            if one.is_running():
                one.kill()
        process.wait()


def members(process):
    """The processes that a torchrun has started."""
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def ranks(process):
    """The workers of a torchrun, by their number."""
    found = {}
    for child in members(process):
        try:
            told = child.environ()
        except psutil.Error:  # it has ended meanwhile
            continue
        if child.ppid() == process.pid and "RANK" in told:
            found[int(told["RANK"])] = child
    return found


def epochs_of(order: TrainingJob):
    """Every epoch that a training has written down while it is at work."""
    try:
        return [json.loads(line) for line in (order.work / "log.jsonl").read_text().splitlines()]
    except FileNotFoundError:
        return []


def until(done, seconds=60.0):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)
