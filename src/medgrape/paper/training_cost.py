"""Train in a child process, so that time and peak memory are those of this training alone."""

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
from pathlib import Path

from medgrape.errors import UserError, os_error_message
from medgrape.progress import Track, Watch, quietly, unwatched
from medgrape.training.run import TrainingJob, train

STOPPED = 130  # exit code of an interrupted child
PATIENCE = 3  # seconds that an interrupted training has to end by itself


@dataclass(frozen=True)
class Cost:
    """Time and memory of a training."""

    seconds: float  # from raw films to a run, with epochs that an earlier attempt or another training has done
    peak_bytes: int


def train_in_child(job: TrainingJob, *, track: Track = quietly, watch: Watch = unwatched) -> Cost:
    """Train in a child process, which has ended when this returns. The same job continues an interrupted training."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_train, args=(sender, job, track, watch))
    process.start()
    sender.close()
    try:
        answer = json.loads(receiver.recv_bytes())
    except EOFError:
        process.join()
        raise _reason(process.exitcode or 0, job.out) from None
    except KeyboardInterrupt:
        process.join(PATIENCE)  # Ctrl-C in a terminal reaches both processes, another signal this one only
        process.terminate()
        raise
    finally:
        process.join()
    if "error" in answer:
        raise UserError(answer["error"])
    return Cost(**answer)


def _reason(code: int, out: Path) -> BaseException:
    """The exception for a child that ended with an exit code and without an answer."""
    if code == STOPPED:
        return KeyboardInterrupt()
    if code < 0:
        return UserError(f"The training of {out} was killed by signal {-code}; free some memory and try again.")
    return RuntimeError(f"the training of {out} ended with exit code {code}")


def _train(sender: Connection, job: TrainingJob, track: Track, watch: Watch) -> None:
    """Run in the child."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end as with Ctrl-C
    done_before: dict[str, float] = {}  # share of the epochs of each stage; a stage that is missing was done completely

    def watch_stage(label: str, total: int, done: int = 0) -> AbstractContextManager[Callable[[str], None]]:
        done_before[label] = done / max(total, 1)
        return watch(label, total, done)

    began = time.monotonic()
    try:
        train(job, track=track, watch=watch_stage)
        seconds = time.monotonic() - began
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    except (UserError, OSError) as error:  # an OSError is most likely a full disk
        message = str(error) if isinstance(error, UserError) else os_error_message(error)
        sender.send_bytes(json.dumps({"error": message}).encode())
        return
    if job.config.training.processes == 1:  # the stages of other processes are not watched from here
        for line in (job.out / "log.jsonl").read_text("utf-8").splitlines():
            epoch = json.loads(line)
            seconds += float(epoch["seconds"]) * done_before.get(f"stage {epoch['stage']}", 1.0)
    sender.send_bytes(json.dumps({"seconds": round(seconds, 1), "peak_bytes": peak_bytes()}).encode())


def peak_bytes() -> int:
    """Return the peak memory of this process. On Linux, ``getrusage`` may return that of its parent."""
    status = Path("/proc/self/status")
    if status.is_file():
        lines = (line.split() for line in status.read_text("utf-8").splitlines())
        return next(int(words[1]) for words in lines if words and words[0] == "VmHWM:") * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
