"""A worker of this machine: a process that reads parts of the films, one after the other.

It is spoken to over pipes: a line of JSON with what is to be done, and back a line of JSON, then, where there is a
table, its bytes. When whoever started it goes away, so does it.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any

from medgrape.bulk.film_reader import FilmReader, Job
from medgrape.bulk.listing import ListedFilm
from medgrape.bulk.scheduler import Seat, SeatLostError, WorkerDiedError
from medgrape.bulk.storage import sweep
from medgrape.errors import UserError, told_of_file

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
        command = [sys.executable, "-P", "-m", "medgrape.bulk.local"]
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


def main() -> None:
    """The worker process itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever hands out the work
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not mix with the answers
    asked: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, asked), daemon=True).start()
    try:
        _serve(asked, answers)
    except UserError as mistake:
        _say(answers, {"mistake": str(mistake)})
    except OSError as error:
        _say(answers, {"mistake": told_of_file(error)})
    except Exception as error:
        if os.environ.get("MEDGRAPE_DEBUG"):
            traceback.print_exc()
        _say(answers, {"fault": f"{type(error).__name__}: {error}"})


def _listen(source: IO[bytes], asked: "queue.SimpleQueue[dict[str, Any]]") -> None:
    """Also while films are read, so that nobody works for a driver that was killed; a decoder ends with its worker."""
    for line in source:
        asked.put(json.loads(line))
    os._exit(0)


def _serve(asked: "queue.SimpleQueue[dict[str, Any]]", answers: IO[bytes]) -> None:
    reader = FilmReader(Job.from_json(asked.get()))
    _say(answers, {"ready": True})
    while True:
        told = asked.get()
        films = [ListedFilm(*film) for film in told["films"]]
        found = reader.read(films) if told["refused"] is None else reader.refuse(films, told["refused"])
        raw = _packed(found)
        _say(answers, {"bytes": len(raw)}, raw)


def _packed(table: "pa.Table") -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _say(answers: IO[bytes], told: dict[str, Any], raw: bytes = b"") -> None:
    answers.write(json.dumps(told).encode() + b"\n" + raw)
    answers.flush()


if __name__ == "__main__":
    main()
