"""One thread runs backbones: films that wait at the same time are encoded in one batch."""

import contextlib
import os
import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.data.film import Film
from medgrape.feedback.reader import Reader
from medgrape.server import metrics

BATCH = 16
LINGER = 0.004
"""Seconds that the first film waits for company."""
PATIENCE = 120.0


@dataclass
class Waiting:
    """A film in the queue."""

    encoder: str
    reader: Reader
    prepared: Film
    done: "Future[Float[Tensor, 'd h w']]"


class Encoder:
    """The only user of backbones, so that threads of the backend do not get into each other's way."""

    def __init__(self) -> None:
        self.films, self.batches = 0, 0
        """Encoded so far."""
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="encoder", daemon=True)
        self._thread.start()

    def encode(self, encoder: str, reader: Reader, prepared: Film) -> Float[Tensor, "d h w"]:
        """Every patch of a film; waits for its turn."""
        waiting = Waiting(encoder, reader, prepared, Future())
        self._queue.put(waiting)
        return waiting.done.result(PATIENCE)

    def close(self) -> None:
        """End the thread once it has done what waits."""
        self._queue.put(None)
        self._thread.join(PATIENCE)

    def _work(self) -> None:
        torch.set_num_threads(os.cpu_count() or 1)  # of this thread; all others compute by themselves
        ended = False
        while not ended:
            batch, ended = self._gathered()
            for encoder in dict.fromkeys(one.encoder for one in batch):
                self._encode([one for one in batch if one.encoder == encoder])

    def _gathered(self) -> tuple[list[Waiting], bool]:
        """All that wait, or come within a moment; and whether that was the end."""
        found: list[Waiting] = []
        first = self._queue.get()
        while first is not None:
            found.append(first)
            if len(found) == BATCH:
                return found, False
            try:
                first = self._queue.get(timeout=LINGER if len(found) == 1 else 0.0005)
            except queue.Empty:
                return found, False
        return found, True

    def _encode(self, batch: list[Waiting]) -> None:
        try:
            patches = batch[0].reader.encode([one.prepared for one in batch])
        except Exception as error:  # whoever waits must hear of it, whatever it is
            for one in batch:
                with contextlib.suppress(Exception):
                    one.done.set_exception(error)
            return
        self.films, self.batches = self.films + len(batch), self.batches + 1
        metrics.ENCODED.inc(len(batch))
        metrics.BATCHES.inc()
        for one, own in zip(batch, patches, strict=True):
            one.done.set_result(own.clone())
