"""A cache of decoded films on disk, mapped into memory: after the first epoch, reading a film costs no decoding.

Films are stored in shards of ``SHARD`` films. Each shard is a NumPy file whose name is a hash of the checksums of its
films and of the preprocessing, so a shard is either right or absent, never stale. Several processes may build it at
once (one lock for each shard), and a killed one leaves only complete shards.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from filelock import FileLock
from jaxtyping import Float32, UInt8

from medgrape.config import Config
from medgrape.datasets.dataset import Dataset
from medgrape.files import sha256, whole_file, write_json
from medgrape.films.decoder import DecoderPool, Request
from medgrape.films.film import Film, FilmError
from medgrape.progress import Track, quietly

T = TypeVar("T")
SHARD = 256
_VERSION = 1  # increased whenever preprocessing gives other pixels for the same film


def in_order(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """Yield batches in order, with an incomplete last one."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


@dataclass(frozen=True)
class CachedFilms:
    """Preprocessed films in the order of their paths, read from disk when they are used."""

    shards: tuple[UInt8[np.ndarray, "_films size size"], ...]
    contents: tuple[str, ...]  # SHA-256 of each film's file; empty where there is no file
    refused: dict[int, str] = field(default_factory=dict)  # why films at these positions could not be read

    def __len__(self) -> int:
        return len(self.contents)

    def __getitem__(self, position: int) -> UInt8[np.ndarray, "size size"]:
        if not 0 <= position < len(self):
            raise IndexError(position)
        if position in self.refused:
            raise FilmError(self.refused[position])
        shard, row = divmod(position, SHARD)
        return np.asarray(self.shards[shard][row])

    def readable(self) -> list[int]:
        """Return the positions of the films that can be read."""
        return [position for position in range(len(self)) if position not in self.refused]

    def stack(self, positions: Sequence[int]) -> Float32[np.ndarray, "b 1 size size"]:
        """Return some films as one batch of greys from 0 to 1, as a model takes them."""
        return np.stack([self[position] for position in positions])[:, None].astype(np.float32) / np.float32(255)

    def batches(
        self, positions: Sequence[int], size: int, label: str, track: Track = quietly
    ) -> Iterator[tuple[list[int], Float32[np.ndarray, "b 1 size size"]]]:
        """Yield positions and their films in order, a batch at a time; the last batch may be smaller."""
        chunks = list(in_order(positions, size))
        for chunk in track(chunks, label, len(chunks)):
            yield chunk, self.stack(chunk)


def fingerprint(content: str) -> str:
    """Return the part of a film's checksum that identifies it."""
    return content[:16]


@dataclass(frozen=True)
class FilmCache:
    """A folder of decoded films."""

    folder: Path
    config: Config

    def films(self, paths: Sequence[Path], *, workers: int | None = None, track: Track = quietly) -> CachedFilms:
        """Return all films preprocessed; only those that are not in the cache are decoded."""
        contents = self.contents(paths, track=track)
        shards, refused = [], dict[int, str]()
        starts = range(0, len(paths), SHARD)
        complete = all(self._open_shard(contents[start : start + SHARD]) is not None for start in starts)
        label = "opening the cache" if complete else f"decoding {len(paths):,} films"
        with DecoderPool(workers) as decoders:
            for start in track(starts, label, len(starts)):
                part = slice(start, start + SHARD)
                shard, reasons = self._shard(paths[part], contents[part], decoders)
                shards.append(shard)
                refused |= {start + position: reason for position, reason in reasons.items()}
        return CachedFilms(tuple(shards), tuple(contents), refused)

    def contents(self, paths: Sequence[Path], *, track: Track = quietly) -> list[str]:
        """Return the SHA-256 of each file, empty where there is none; only files that may have changed are read.

        The index stores the checksum of each path with its size, times of change and inode.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        stored = _read_index(self.folder / "contents.json")
        index = dict(stored)
        tracked = track(paths, f"looking at {len(paths):,} films", len(paths))
        contents = [_checksum(path, index) for path in tracked]
        if index != stored:
            write_json(self.folder / "contents.json", index, end="")
        return contents

    def _shard_path(self, contents: Sequence[str]) -> Path:
        key = json.dumps([_VERSION, self.config.preprocessing.model_dump(), list(contents)], sort_keys=True)
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npy"

    def _open_shard(self, contents: Sequence[str]) -> UInt8[np.ndarray, "films size size"] | None:
        """The shard on disk; None if it is missing or broken."""
        size = self.config.preprocessing.size
        try:
            shard = np.asanyarray(np.load(self._shard_path(contents), mmap_mode="r"))
        except (OSError, ValueError, EOFError):
            return None
        return shard if shard.shape == (len(contents), size, size) and shard.dtype == np.uint8 else None

    def _shard(
        self, paths: Sequence[Path], contents: Sequence[str], decoders: DecoderPool
    ) -> tuple[UInt8[np.ndarray, "films size size"], dict[int, str]]:
        """A shard from disk, or decoded and stored; one with a refused film is not stored, so it is tried again."""
        shard = self._open_shard(contents)
        if shard is not None:
            return shard, {}
        path, size = self._shard_path(contents), self.config.preprocessing.size
        with FileLock(path.with_suffix(".lock")):
            shard = self._open_shard(contents)
            if shard is not None:  # another process was faster
                return shard, {}
            pixels, refused = np.zeros((len(paths), size, size), np.uint8), dict[int, str]()
            requests = (Request(film, self.config.limits, self.config.preprocessing) for film in paths)
            for position, film in enumerate(decoders.read_all(requests)):
                if isinstance(film, Film):
                    pixels[position] = film.pixels
                else:
                    refused[position] = str(film)
            if refused:
                return pixels, refused
            with whole_file(path) as draft, draft.open("wb") as file:
                np.save(file, pixels)
        return np.asanyarray(np.load(path, mmap_mode="r")), {}


def _read_index(path: Path) -> dict[str, list[object]]:
    """The index of checksums; empty if it is missing or broken."""
    try:
        index = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    valid = isinstance(index, dict) and all(isinstance(entry, list) and len(entry) == 5 for entry in index.values())
    return index if valid else {}


def _checksum(path: Path, index: dict[str, list[object]]) -> str:
    """The SHA-256 of a file, from the index where the file has not changed since."""
    try:
        status, key = path.stat(), str(path.resolve())
        state = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        if key not in index or index[key][:-1] != state:
            index[key] = [*state, sha256(path)]
        return str(index[key][-1])
    except OSError:
        return ""


def cached_films(config: Config, dataset: Dataset, data: Path, track: Track = quietly) -> CachedFilms:
    """Return all films of the data set in the folder ``data``, preprocessed, from its cache."""
    paths = [dataset.film_path(film) for film in dataset.pictured]
    return FilmCache(data / "cache", config).films(paths, track=track)
