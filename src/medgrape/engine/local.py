"""The processes of this machine as workers."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from medgrape.engine.listing import ListedFilm
from medgrape.engine.reading import Job
from medgrape.engine.seat import Seat, SeatLostError, WorkerDiedError
from medgrape.engine.storage import sweep
from medgrape.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_STARTS = 3
"""How often in a row a process may die before it is ready."""


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalSeat:
    """One process of this machine."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False

    @property
    def process_id(self) -> int | None:
        """Of the worker; None where there is none."""
        return None if self._process is None else self._process.pid

    def launch(self) -> None:
        """Start a process; it is told what to do as soon as it listens."""
        self.close()
        self._ready = False
        # -P: nothing that lies in the current folder may pass for one of our modules
        command = [sys.executable, "-P", "-m", "medgrape.engine.worker"]
        threads = str(self._job.threads)
        environment = os.environ | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        self._process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def wait(self, wanted: Callable[[], bool]) -> None:
        """Until its model is loaded."""
        for _ in range(_MOST_STARTS):
            if self._ready or not wanted():
                return
            try:
                self._ask(self._job.to_json())
                self._ready = True
            except WorkerDiedError:
                if wanted():
                    self.launch()
        if not self._ready:
            raise SeatLostError

    def read(self, films: Sequence[ListedFilm], refused: str | None = None) -> "pa.Table":
        """A row for each film."""
        import pyarrow as pa

        raw = self._ask({"films": [(film.name, film.place) for film in films], "refused": refused})
        with pa.ipc.open_stream(raw) as stream:
            return stream.read_all()

    def close(self) -> None:
        """Its decoder ends with it."""
        process = self._process
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                _close_quietly(pipe)
        sweep()  # what it had fetched

    def _ask(self, told: dict[str, Any]) -> bytes:
        """What the process answers; that it was killed shows as an answer that ends early."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise WorkerDiedError
        try:
            process.stdin.write(json.dumps(told).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline() or b"{}")
            raw = process.stdout.read(answer.get("bytes", 0))
        except (OSError, ValueError) as gone:
            raise WorkerDiedError from gone
        return _understood(answer, raw)


def _understood(answer: dict[str, Any], raw: bytes) -> bytes:
    if "mistake" in answer:
        raise UserError(answer["mistake"])
    if "fault" in answer:
        raise RuntimeError(f"a worker failed with {answer['fault']}")
    if not answer or len(raw) != answer.get("bytes", 0):
        raise WorkerDiedError
    return raw


def _close_quietly(pipe: Any) -> None:  # noqa: ANN401
    try:
        pipe.close()
    except OSError:  # something was still to be sent
        return


@dataclass(frozen=True)
class LocalEngine:
    """As many processes as there are cores, or as somebody says; they share the cores evenly."""

    workers: int
    name: str = "local"

    @classmethod
    def of(cls, workers: int | None = None) -> "LocalEngine":
        """One worker for each core, where nobody says how many."""
        return cls(workers or cores())

    def seats(self, job: Job) -> list[Seat]:
        """One for each worker."""
        share = replace(job, threads=max(1, cores() // self.workers))
        return [LocalSeat(share) for _ in range(self.workers)]
