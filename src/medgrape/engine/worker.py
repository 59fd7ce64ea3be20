"""A worker of this machine: a process that reads parts of the films, one after the other.

It is spoken to over pipes: a line of JSON with what is to be done, and back a line of JSON, then, where there is a
table, its bytes. When whoever started it goes away, so does it.
"""

import json
import os
import queue
import signal
import sys
import threading
import traceback
from typing import IO, TYPE_CHECKING, Any

from medgrape.engine.listing import ListedFilm
from medgrape.engine.reading import FilmReader, Job
from medgrape.errors import UserError, told_of_file

if TYPE_CHECKING:
    import pyarrow as pa


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
