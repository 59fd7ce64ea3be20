"""A Python process that may die without harm: started with ``python -m``, spoken to over pipes.

A message is one line of JSON, followed by as many raw bytes as the line says. Nothing is pickled, so a child that a
hostile file has taken over cannot take over its parent. The child ends when its parent does, even while it works.
"""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

LONGEST = 4 * 2**30
"""Bytes of a line or a payload; whatever is longer is no message."""


class ChildDiedError(Exception):
    """The child ended, took too long, or sent something that is no message."""


@dataclass(frozen=True)
class Message:
    """What one process sends another."""

    header: dict[str, Any]
    payload: bytes = b""


def write_message(pipe: IO[bytes], header: Mapping[str, Any], *payload: bytes | memoryview) -> None:
    """Write one message; the parts of the payload are sent one after the other."""
    parts = [memoryview(part).cast("B") for part in payload]
    line = {**header, "payload_bytes": sum(part.nbytes for part in parts)}
    pipe.write(json.dumps(line).encode() + b"\n")
    for part in parts:
        pipe.write(part)
    pipe.flush()


def read_message(pipe: IO[bytes]) -> Message:
    """Read one message; raise ``EOFError`` where the pipe ends first and ``ValueError`` where it is no message."""
    line = pipe.readline(LONGEST)
    if not line.endswith(b"\n"):
        raise EOFError
    header = json.loads(line)
    count = header.pop("payload_bytes")
    if not 0 <= count <= LONGEST:
        raise ValueError(f"a payload of {count} bytes")
    payload = pipe.read(count)
    if len(payload) != count:
        raise EOFError
    return Message(header, payload)


class ChildProcess:
    """A process that runs one module of this package, as its parent sees it."""

    def __init__(self, module: str, *, quiet: bool = False) -> None:
        # -P: a file in the current folder cannot pass for one of our modules
        self._command = [sys.executable, "-P", "-m", module]
        self._quiet = quiet
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def command(self) -> str:
        """The command line that starts it, for error messages."""
        return " ".join(self._command)

    @property
    def process_id(self) -> int | None:
        """Its process id; None before it starts and after it is closed."""
        return None if self._process is None else self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Start it without waiting for it, ending the process that ran before; ``environment`` replaces ours."""
        self.close()
        self._process = subprocess.Popen(  # noqa: S603
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if self._quiet else None,
            env=environment,
        )

    def send(self, header: Mapping[str, Any]) -> None:
        """Send one message."""
        process = self._process
        if process is None or process.stdin is None:
            raise ChildDiedError
        try:
            write_message(process.stdin, header)
        except (OSError, ValueError) as error:  # ValueError: another thread has closed the pipe
            raise ChildDiedError from error

    def receive(self, seconds: float | None = None) -> Message:
        """Wait for its next message; it is killed if there is none after ``seconds``."""
        process = self._process
        if process is None or process.stdout is None:
            raise ChildDiedError
        watchdog = None if seconds is None else threading.Timer(seconds, process.kill)
        if watchdog is not None:
            watchdog.daemon = True
            watchdog.start()
        try:
            return read_message(process.stdout)
        except Exception as error:  # a child that was taken over may send anything
            raise ChildDiedError from error
        finally:
            if watchdog is not None:
                watchdog.cancel()

    def close(self) -> None:
        """Kill it, whatever it does, and wait until it is gone; another thread may be waiting for its answer."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # a message that was never read
                    pipe.close()


class ParentProcess:
    """The other end: the process that started this one, as a child sees it."""

    def __init__(self) -> None:
        self._answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not mix with messages
        self._received: queue.SimpleQueue[Message] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, header: Mapping[str, Any], *payload: bytes | memoryview) -> None:
        """Send one message."""
        write_message(self._answers, header, *payload)

    def receive(self) -> dict[str, Any]:
        """Wait for the next message."""
        return self._received.get().header

    def _listen(self) -> None:
        """Read also while a message is being worked on, so that a child whose parent was killed ends at once."""
        try:
            while True:
                self._received.put(read_message(sys.stdin.buffer))
        finally:
            os._exit(0)
