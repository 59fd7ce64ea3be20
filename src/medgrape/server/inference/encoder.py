"""One thread runs backbones: films that wait at the same time are encoded in one batch."""

import contextlib
import hashlib
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from jaxtyping import Float
from torch import Tensor

from medgrape.files import whole_file
from medgrape.films.film import Film
from medgrape.reader import Reader
from medgrape.runs.checkpoint import Run
from medgrape.server import metrics

ENCODE_TIMEOUT = 120.0
"""Seconds that somebody waits for a film that somebody else encodes."""


def encoder_version(run: Run) -> str:
    """One name for all models that encode alike: the same backbone, projector and preparation of films.

    A model that was taught a finding, or curated, encodes like the one it came from, and so shares what was encoded.
    """
    found = hashlib.sha256(run.config.preprocessing.model_dump_json().encode())
    found.update(repr((run.grape.mirror, run.grape.backbone.describe(), run.config.model.smooth)).encode())
    for part in (run.grape.backbone, run.grape.projector):
        for name, tensor in sorted(part.state_dict().items()):
            found.update(name.encode())
            found.update(tensor.contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


class FeatureStore:
    """A file for each film and encoder. The first one written stays: what was answered from it stays true."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, encoder: str, film: str) -> Float[Tensor, "d h w"] | None:
        """What is there; None where nothing is, or nothing whole."""
        try:
            found = np.load(self._path(encoder, film), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        return torch.from_numpy(found) if found.ndim == 3 and found.dtype == np.float32 else None

    def made_once(self, encoder: str, film: str, make: Callable[[], Float[Tensor, "d h w"]]) -> Float[Tensor, "d h w"]:
        """What is kept, or else what ``make`` makes; whoever asks meanwhile, in any worker, waits for it."""
        found = self.get(encoder, film)
        if found is not None:
            return found
        path = self._path(encoder, film)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock"), timeout=ENCODE_TIMEOUT, poll_interval=0.01):
            found = self.get(encoder, film)
            return self._put(path, make()) if found is None else found

    def drop(self, film: str) -> None:
        """Forget a film."""
        for path in self._folder.glob(f"*/{film[:2]}/{film}.*"):
            path.unlink(missing_ok=True)

    def _put(self, path: Path, patches: Float[Tensor, "d h w"]) -> Float[Tensor, "d h w"]:
        with whole_file(path) as draft, draft.open("wb") as file:
            np.save(file, patches.numpy(), allow_pickle=False)
        return patches

    def _path(self, encoder: str, film: str) -> Path:
        return self._folder / encoder / film[:2] / f"{film}.npy"


BATCH = 16
LINGER = 0.004
"""Seconds that the first film waits for company."""
BATCH_TIMEOUT = 120.0


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
        return waiting.done.result(BATCH_TIMEOUT)

    def close(self) -> None:
        """End the thread once it has done what waits."""
        self._queue.put(None)
        self._thread.join(BATCH_TIMEOUT)

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
