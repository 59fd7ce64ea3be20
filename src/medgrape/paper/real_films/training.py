"""A training in a process of its own, so that its peak memory is its own."""

import json
import multiprocessing
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from medgrape.errors import UserError, os_error_message
from medgrape.progress import Track, Watch, quietly, unwatched
from medgrape.training.run import TrainingJob, train

STOPPED = 130
PATIENCE = 3
"""Seconds in which a training that was asked to end may do so by itself."""


@dataclass(frozen=True)
class Cost:
    """What a training took."""

    seconds: float
    """From raw films to a run, with epochs that an earlier attempt or another training had learnt already."""
    peak_bytes: int
    """Most memory that was in use at once."""


@dataclass
class _Noted:
    """A watch that remembers how much of each stage was there before."""

    watch: Watch
    before: dict[str, float] = field(default_factory=dict)

    def __call__(self, label: str, total: int, done: int = 0) -> AbstractContextManager[Callable[[str], None]]:
        self.before[label] = done / max(total, 1)
        return self.watch(label, total, done)


def train_apart(order: TrainingJob, *, track: Track = quietly, watch: Watch = unwatched) -> Cost:
    """Train in a process of its own; it ends with this one, and goes on with the same command."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, order, track, watch))
    process.start()
    theirs.close()
    try:
        return Cost(**_answer(ours, process, order.out))
    except KeyboardInterrupt:
        process.join(PATIENCE)  # Ctrl-C in a terminal asks both to end; whoever ends this one alone asks for both
        process.terminate()
        raise
    finally:
        process.join()


def _answer(ours: Connection, process: BaseProcess, out: Path) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads(ours.recv_bytes())
    except EOFError:
        process.join()
        raise _ended(process.exitcode or 0, out) from None
    if "mistake" in told:
        raise UserError(told["mistake"])
    return told


def _ended(code: int, out: Path) -> BaseException:
    if code == STOPPED:
        return KeyboardInterrupt()
    if code < 0:
        return UserError(
            f"The training of {out} was killed by signal {-code}; free some memory and give the same command again."
        )
    return RuntimeError(f"the training of {out} broke off with exit code {code}")


def _work(answer: Connection, order: TrainingJob, track: Track, watch: Watch) -> None:
    """What the process does; it is asked to end as Ctrl-C asks it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    noted, began = _Noted(watch), time.monotonic()
    try:
        train(order, track=track, watch=noted)
    except UserError as mistake:
        answer.send_bytes(json.dumps({"mistake": str(mistake)}).encode())
    except OSError as error:  # a full disk, most likely
        answer.send_bytes(json.dumps({"mistake": os_error_message(error)}).encode())
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    else:
        lines = (order.out / "log.jsonl").read_text("utf-8").splitlines()
        alone = order.config.training.processes == 1  # else the stages were watched from somewhere else
        seconds = time.monotonic() - began + (_earlier(map(json.loads, lines), noted.before) if alone else 0.0)
        answer.send_bytes(json.dumps({"seconds": round(seconds, 1), "peak_bytes": peak_bytes()}).encode())


def _earlier(epochs: Iterable[dict[str, Any]], before: dict[str, float]) -> float:
    """Seconds of epochs that were there already: all of a stage that was not gone through, a share of one that was."""
    return sum(float(epoch["seconds"]) * before.get(f"stage {epoch['stage']}", 1.0) for epoch in epochs)


def peak_bytes() -> int:
    """Most memory that this process has used; what ``getrusage`` says on Linux may be that of its parent."""
    status = Path("/proc/self/status")
    if status.is_file():
        lines = (line.split() for line in status.read_text("utf-8").splitlines())
        return next(int(words[1]) for words in lines if words and words[0] == "VmHWM:") * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
