"""A process that takes too long is ended, without a thread for each thing that it does: starting one takes longer than
decoding a small film."""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Watchdog:
    """One thread that sleeps until the time is up of whatever was begun last; where nothing is, it goes away."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._change = threading.Condition()
        self._watched: tuple[float, subprocess.Popen[bytes]] | None = None
        self._awake = False

    @contextmanager
    def over(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """The process is killed if the block takes longer than it may."""
        with self._change:
            self._watched = time.monotonic() + self._seconds, process
            if not self._awake:
                self._awake = True
                threading.Thread(target=self._watch, name="watchdog", daemon=True).start()
        try:
            yield
        finally:
            with self._change:
                self._watched = None

    def close(self) -> None:
        """Let the thread go."""
        with self._change:
            self._watched = None
            self._change.notify_all()

    def _watch(self) -> None:
        with self._change:
            while self._watched is not None:
                until, process = self._watched
                left = until - time.monotonic()
                if left <= 0:
                    process.kill()
                    self._watched = None
                else:
                    self._change.wait(left)
            self._awake = False
