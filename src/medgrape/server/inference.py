"""Encoding films: the encoder thread, and caches of features and models."""

import contextlib
import hashlib
import os
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import torch
from filelock import FileLock
from jaxtyping import Float
from prometheus_client import Counter
from torch import Tensor

from medgrape.errors import UserError
from medgrape.files import whole_file
from medgrape.films.film import Film
from medgrape.reader import Reader, load
from medgrape.runs.checkpoint import Run
from medgrape.runs.manifest import unseal, version_of

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Patches = Float[Tensor, "d h w"]
BATCH = 16
LINGER = 0.004  # seconds that the first film of a batch waits for others
BATCH_TIMEOUT = 120.0
ENCODE_TIMEOUT = 120.0  # seconds to wait for a film that another worker encodes
_FILMS_ENCODED = Counter("medgrape_films_encoded", "Films encoded by a backbone.")
_BATCHES = Counter("medgrape_encoder_batches", "Batches encoded by a backbone.")


class LRUCache(Generic[K, V]):
    """A thread-safe dictionary that drops the least recently used items once their total size exceeds a limit."""

    def __init__(self, limit: int, size: Callable[[V], int] = lambda _: 1) -> None:
        self._limit, self._size = limit, size
        self._items: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """Return the item, or None; it becomes the most recently used."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
            return self._items.get(key)

    def put(self, key: K, value: V) -> V:
        """Add an item, drop others to make room, and return the item."""
        with self._lock:
            self._items.pop(key, None)
            self._items[key] = value
            while len(self._items) > 1 and sum(map(self._size, self._items.values())) > self._limit:
                self._items.popitem(last=False)
        return value

    def forget(self, matching: Callable[[K], bool]) -> None:
        """Drop all items whose key matches."""
        with self._lock:
            for key in list(filter(matching, self._items)):
                del self._items[key]


def encoder_version(run: Run) -> str:
    """Return a hash of backbone, projector and preprocessing; taught and curated models share it with their parent."""
    digest = hashlib.sha256(run.config.preprocessing.model_dump_json().encode())
    digest.update(repr((run.grape.mirror, run.grape.backbone.describe(), run.config.model.smooth)).encode())
    for part in (run.grape.backbone, run.grape.projector):
        for name, tensor in sorted(part.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


class FeatureStore:
    """Features on disk, a file per film and encoder. Files are not overwritten, so that results are reproducible."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, encoder: str, film: str) -> Patches | None:
        """Return the stored features; None if the file is missing or damaged."""
        try:
            stored = np.load(self._path(encoder, film), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        return torch.from_numpy(stored) if stored.ndim == 3 and stored.dtype == np.float32 else None

    def get_or_compute(self, encoder: str, film: str, compute: Callable[[], Patches]) -> Patches:
        """Return the stored features, or compute and store them; other threads and workers wait meanwhile."""
        stored = self.get(encoder, film)
        if stored is not None:
            return stored
        path = self._path(encoder, film)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock"), timeout=ENCODE_TIMEOUT, poll_interval=0.01):
            stored = self.get(encoder, film)
            if stored is not None:
                return stored
            patches = compute()
            with whole_file(path) as draft, draft.open("wb") as file:
                np.save(file, patches.numpy(), allow_pickle=False)
            return patches

    def drop(self, film: str) -> None:
        """Delete a film's features of every encoder."""
        for path in self._folder.glob(f"*/{film[:2]}/{film}.*"):
            path.unlink(missing_ok=True)

    def _path(self, encoder: str, film: str) -> Path:
        return self._folder / encoder / film[:2] / f"{film}.npy"


@dataclass
class _Request:
    encoder: str
    reader: Reader
    prepared: Film
    patches: "Future[Patches]"


class Encoder:
    """The only thread of a worker that runs backbones; it encodes films that wait at the same time in one batch."""

    def __init__(self) -> None:
        self.films, self.batches = 0, 0  # encoded so far
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="encoder", daemon=True)
        self._thread.start()

    def encode(self, encoder: str, reader: Reader, prepared: Film) -> Patches:
        """Return the features of a film, after its batch was encoded."""
        request = _Request(encoder, reader, prepared, Future())
        self._queue.put(request)
        return request.patches.result(BATCH_TIMEOUT)

    def close(self) -> None:
        """Stop the thread after the films that wait."""
        self._queue.put(None)
        self._thread.join(BATCH_TIMEOUT)

    def _work(self) -> None:
        torch.set_num_threads(os.cpu_count() or 1)  # for this thread; each request computes with one
        ended = False
        while not ended:
            batch, ended = self._next_batch()
            for encoder in dict.fromkeys(film.encoder for film in batch):
                self._encode([film for film in batch if film.encoder == encoder])

    def _next_batch(self) -> tuple[list[_Request], bool]:
        """Return the films that wait or arrive within a moment, and whether the queue was closed."""
        batch: list[_Request] = []
        film = self._queue.get()
        while film is not None:
            batch.append(film)
            if len(batch) == BATCH:
                return batch, False
            try:
                film = self._queue.get(timeout=LINGER if len(batch) == 1 else 0.0005)
            except queue.Empty:
                return batch, False
        return batch, True

    def _encode(self, batch: list[_Request]) -> None:
        try:
            patches = batch[0].reader.encode([film.prepared for film in batch])
        except Exception as error:  # must reach every waiting caller
            for film in batch:
                with contextlib.suppress(Exception):
                    film.patches.set_exception(error)
            return
        self.films, self.batches = self.films + len(batch), self.batches + 1
        _FILMS_ENCODED.inc(len(batch))
        _BATCHES.inc()
        for film, features in zip(batch, patches, strict=True):
            film.patches.set_result(features.clone())


class ModelUnavailableError(Exception):
    """The files of a known model are missing or were changed."""


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to read films."""

    reader: Reader
    encoder: str
    files: tuple[object, ...]  # state of its files at the last comparison of checksums


class ModelCache:
    """The most recently used models."""

    def __init__(self, limit: int) -> None:
        self._models: LRUCache[str, LoadedModel] = LRUCache(limit)
        self._lock = threading.Lock()

    def get(self, version: str, folder: Path) -> LoadedModel:
        """Return the model. If a file of its folder changed, check the checksums first.

        A model in memory is refused too: after a restart, nobody could verify which model read a film.
        """
        with self._lock:
            model = self._models.get(version)
            try:
                files = _file_states(folder)
                if model is not None and model.files == files:
                    return model
                if model is None:
                    reader = load(folder)
                    model = LoadedModel(reader, encoder_version(reader.loaded.run), files)
                else:
                    unseal(folder)
                if version_of(folder) != version:
                    raise ModelUnavailableError(version)
            except (UserError, OSError) as error:
                raise ModelUnavailableError(version) from error
            return self._models.put(version, replace(model, files=files))

    def forget(self, version: str) -> None:
        """Drop a model that was removed."""
        self._models.forget(lambda key: key == version)


def _file_states(folder: Path) -> tuple[object, ...]:
    """Return name, size, times of change and inode of every file."""
    states: list[object] = []
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            status = os.stat(os.path.join(root, name))  # noqa: PTH116, PTH118 (runs with every request)
            states.append((root, name, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))
    return tuple(states)
