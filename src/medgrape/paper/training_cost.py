"""Train in a child process, to measure the time and the peak memory of this training alone."""

import json
import multiprocessing
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from medgrape.errors import UserError, os_error_message
from medgrape.progress import Track, Watch, quietly, unwatched
from medgrape.training.run import TrainingJob, train

STOPPED = 130
PATIENCE = 3
"""Seconds that an interrupted training has to end by itself."""


@dataclass(frozen=True)
class Cost:
    """Time and memory of a training."""

    seconds: float
    """From raw films to a run, with epochs that an earlier attempt or another training has done."""
    peak_bytes: int
    """Peak memory."""


def train_in_child(order: TrainingJob, *, track: Track = quietly, watch: Watch = unwatched) -> Cost:
    """Train in a child process, which ends with this process. The same order continues an interrupted training."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_train, args=(sender, order, track, watch))
    process.start()
    sender.close()
    try:
        return Cost(**_answer(receiver, process, order.out))
    except KeyboardInterrupt:
        process.join(PATIENCE)  # Ctrl-C in a terminal reaches both processes, another signal this one only
        process.terminate()
        raise
    finally:
        process.join()


def _answer(receiver: Connection, process: BaseProcess, out: Path) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(receiver.recv_bytes())
    except EOFError:
        process.join()
        code = process.exitcode or 0
        if code == STOPPED:
            raise KeyboardInterrupt from None
        if code < 0:
            raise UserError(
                f"The training of {out} was killed by signal {-code}; free some memory and give the command again."
            ) from None
        raise RuntimeError(f"the training of {out} ended with exit code {code}") from None
    if "mistake" in answer:
        raise UserError(answer["mistake"])
    return answer


def _train(sender: Connection, order: TrainingJob, track: Track, watch: Watch) -> None:
    """Run in the child."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end as with Ctrl-C
    before: dict[str, float] = {}  # share of each stage that was done before; a stage that is not here was done

    def watch_stage(label: str, total: int, done: int = 0) -> AbstractContextManager[Callable[[str], None]]:
        before[label] = done / max(total, 1)
        return watch(label, total, done)

    began = time.monotonic()
    try:
        train(order, track=track, watch=watch_stage)
    except UserError as mistake:
        sender.send_bytes(json.dumps({"mistake": str(mistake)}).encode())
    except OSError as error:  # a full disk, most likely
        sender.send_bytes(json.dumps({"mistake": os_error_message(error)}).encode())
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    else:
        seconds = time.monotonic() - began
        if order.config.training.processes == 1:  # the stages of other processes are not watched from here
            for line in (order.out / "log.jsonl").read_text("utf-8").splitlines():
                epoch = json.loads(line)
                seconds += float(epoch["seconds"]) * before.get(f"stage {epoch['stage']}", 1.0)
        sender.send_bytes(json.dumps({"seconds": round(seconds, 1), "peak_bytes": peak_bytes()}).encode())


def peak_bytes() -> int:
    """Return the peak memory of this process. On Linux, ``getrusage`` may return that of its parent."""
    status = Path("/proc/self/status")
    if status.is_file():
        lines = (line.split() for line in status.read_text("utf-8").splitlines())
        return next(int(words[1]) for words in lines if words and words[0] == "VmHWM:") * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
