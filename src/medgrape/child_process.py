"""A child process that may crash without harm: started with ``python -m``, with messages over pipes.

A message is one line of JSON, followed by the number of raw bytes that the line states. Nothing is unpickled, so a
hostile file that takes over the child cannot take over its parent. The child ends when its parent ends.
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

MAX_BYTES = 4 * 2**30
"""Largest number of bytes of a line or a payload."""


class ChildDiedError(Exception):
    """The child ended, timed out, or sent an invalid message."""


@dataclass(frozen=True)
class Message:
    """A JSON header and bytes."""

    header: dict[str, Any]
    payload: bytes = b""


def write_message(pipe: IO[bytes], header: Mapping[str, Any], *payload: bytes | memoryview) -> None:
    """Write a message; the parts of the payload are concatenated."""
    parts = [memoryview(part).cast("B") for part in payload]
    line = {**header, "payload_bytes": sum(part.nbytes for part in parts)}
    pipe.write(json.dumps(line).encode() + b"\n")
    for part in parts:
        pipe.write(part)
    pipe.flush()


def read_message(pipe: IO[bytes]) -> Message:
    """Read a message; raise ``EOFError`` if the pipe ends first, and ``ValueError`` if the message is invalid."""
    line = pipe.readline(MAX_BYTES)
    if not line.endswith(b"\n"):
        raise EOFError
    header = json.loads(line)
    count = header.pop("payload_bytes")
    if not 0 <= count <= MAX_BYTES:
        raise ValueError(f"a payload of {count} bytes")
    payload = pipe.read(count)
    if len(payload) != count:
        raise EOFError
    return Message(header, payload)


class ChildProcess:
    """A process that runs a module of this package; the parent's end of the connection."""

    def __init__(self, module: str, *, quiet: bool = False) -> None:
        # -P: a file in the current folder cannot shadow our modules
        self._command = [sys.executable, "-P", "-m", module]
        self._quiet = quiet
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def command(self) -> str:
        """Command line of the process, for error messages."""
        return " ".join(self._command)

    @property
    def process_id(self) -> int | None:
        """Id of the process; None before the start and after ``close``."""
        return None if self._process is None else self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Start the process and end the one before; ``environment`` replaces that of this process."""
        self.close()
        self._process = subprocess.Popen(  # noqa: S603
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if self._quiet else None,
            env=environment,
        )

    def send(self, header: Mapping[str, Any]) -> None:
        """Send a message."""
        process = self._process
        if process is None or process.stdin is None:
            raise ChildDiedError
        try:
            write_message(process.stdin, header)
        except (OSError, ValueError) as error:  # ValueError: another thread has closed the pipe
            raise ChildDiedError from error

    def receive(self, seconds: float | None = None) -> Message:
        """Wait for the next message; after ``seconds`` without one, kill the process."""
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
        """Kill the process and wait for its end; another thread may be waiting for a message."""
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
    """The process that started this one; the child's end of the connection."""

    def __init__(self) -> None:
        self._answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not mix with messages
        self._received: queue.SimpleQueue[Message] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, header: Mapping[str, Any], *payload: bytes | memoryview) -> None:
        """Send a message."""
        write_message(self._answers, header, *payload)

    def receive(self) -> dict[str, Any]:
        """Wait for the next message."""
        return self._received.get().header

    def _listen(self) -> None:
        """Read all the time, so that this process ends as soon as its parent is killed."""
        try:
            while True:
                self._received.put(read_message(sys.stdin.buffer))
        finally:
            os._exit(0)
