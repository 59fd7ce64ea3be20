"""Worker processes on this machine for reading in bulk."""

import os
import signal
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from medgrape.bulk.film_reader import FilmReader, WorkerConfig
from medgrape.bulk.listing import ListedFilm, remove_abandoned_downloads
from medgrape.bulk.run import WorkerDiedError, WorkerSlot, WorkerSlotLostError
from medgrape.child_process import ChildDiedError, ChildProcess, ParentProcess
from medgrape.errors import UserError, os_error_message

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_STARTS = 3  # how often in a row a process may die before it is ready


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalWorkerSlot:
    """A worker slot that one process of this machine fills at a time."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._process = ChildProcess("medgrape.bulk.local")
        self._ready = False

    @property
    def process_id(self) -> int | None:
        """Process id of the worker; None where there is none."""
        return self._process.process_id

    def launch(self) -> None:
        """Start a worker process without waiting for it; the one before is ended."""
        self.close()
        self._ready = False
        threads = str(self._config.threads)
        self._process.start(os.environ | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads})

    def wait(self, wanted: Callable[[], bool]) -> None:
        """Wait until the worker has loaded its model, starting it again if it dies."""
        for _ in range(_MAX_STARTS):
            if self._ready or not wanted():
                return
            try:
                self._request(self._config.to_json())
                self._ready = True
            except WorkerDiedError:
                if wanted():
                    self.launch()
        if not self._ready:
            raise WorkerSlotLostError

    def read(self, films: Sequence[ListedFilm], refused: str | None = None) -> "pa.Table":
        """Return a row for each film."""
        import pyarrow as pa  # slow to import

        table = self._request({"films": [(film.name, film.place) for film in films], "refused": refused})
        with pa.ipc.open_stream(table) as stream:
            return stream.read_all()

    def close(self) -> None:
        """End the worker process; its decoder ends with it."""
        if self._process.process_id is not None:
            self._process.close()
            remove_abandoned_downloads()

    def _request(self, header: dict[str, Any]) -> bytes:
        try:
            self._process.send(header)
            answer = self._process.receive()
        except ChildDiedError as error:
            raise WorkerDiedError from error
        if "mistake" in answer.header:
            raise UserError(answer.header["mistake"])
        if "fault" in answer.header:
            raise RuntimeError(f"a worker failed with {answer.header['fault']}")
        return answer.payload


@dataclass(frozen=True)
class LocalEngine:
    """Worker processes of this machine, which share its cores evenly."""

    workers: int
    name: str = "local"

    def slots(self, config: WorkerConfig) -> list[WorkerSlot]:
        """Return a slot for each worker."""
        share = config.model_copy(update={"threads": max(1, cores() // self.workers)})
        return [LocalWorkerSlot(share) for _ in range(self.workers)]


def main() -> None:
    """Run a worker process: read parts of the films until the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent process
    parent = ParentProcess()
    import pyarrow as pa  # slow to import

    try:
        reader = FilmReader(WorkerConfig.from_json(parent.receive()))
        parent.send({"ready": True})
        while True:
            request = parent.receive()
            films = [ListedFilm(*film) for film in request["films"]]
            table = reader.read(films, request["refused"])
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)
            parent.send({}, memoryview(sink.getvalue()))
    except (UserError, OSError) as error:
        parent.send({"mistake": os_error_message(error) if isinstance(error, OSError) else str(error)})
    except Exception as error:
        if os.environ.get("MEDGRAPE_DEBUG"):
            traceback.print_exc()
        parent.send({"fault": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
