"""Start trainings as torchrun and SLURM do, from the command line, and end what was started."""

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
    """The command, up to the arguments of medgrape."""
    return [sys.executable, "-m", "torch.distributed.run", *options, *MODULE]


def free_port():
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


@contextmanager
def begun(command, folder, name="output", **environment):
    """Run a command with its output in files, and end it with all its processes."""
    out, err = folder / f"{name}.out", folder / f"{name}.err"
    with out.open("w") as stdout, err.open("w") as stderr:
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
            env=os.environ | {"PYTHONWARNINGS": "default"} | environment,
        )  # fmt: skip
    family = [psutil.Process(process.pid)]
    try:
        yield process
    finally:
        family += members(process)
        for member in family:
            if member.is_running():
                member.kill()
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
            environment = child.environ()
        except psutil.Error:  # it has ended meanwhile
            continue
        if child.ppid() == process.pid and "RANK" in environment:
            found[int(environment["RANK"])] = child
    return found


def epochs_of(job: TrainingJob):
    """Every epoch that a training has written down while it is at work."""
    try:
        return [json.loads(line) for line in (job.work / "log.jsonl").read_text().splitlines()]
    except FileNotFoundError:
        return []


def until(done, seconds=60.0):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)
