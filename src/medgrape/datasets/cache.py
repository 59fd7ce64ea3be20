"""Decoded films on disk, mapped into memory: the second epoch costs what reading memory costs.

Films lie in shards of ``SHARD`` films, each a NumPy file whose name is a hash of the contents of its films and of how
they were prepared. So a shard is either right or not there, never stale; two processes may build at once (one lock a
shard), and one that is killed leaves only whole shards behind.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from filelock import FileLock
from jaxtyping import Float32, UInt8

from medgrape.config import Config
from medgrape.datasets.dataset import Dataset
from medgrape.files import sha256, whole_file
from medgrape.films.decoder import DecoderPool, Request
from medgrape.films.film import Film, FilmError
from medgrape.progress import Track, quietly

SHARD = 256
_VERSION = 1
"""Counted up whenever the same film would be prepared to other pixels."""


@dataclass(frozen=True)
class CachedFilms:
    """Prepared films in the order asked for, read from disk only where they are touched."""

    shards: tuple[UInt8[np.ndarray, "_films size size"], ...]
    contents: tuple[str, ...]
    """SHA-256 of each film's file; empty where there is no file."""
    refused: dict[int, str] = field(default_factory=dict)
    """Positions of films that could not be read, and why; their pixels are all zero."""

    def __len__(self) -> int:
        return len(self.contents)

    def __getitem__(self, position: int) -> UInt8[np.ndarray, "size size"]:
        if not 0 <= position < len(self):
            raise IndexError(position)
        if position in self.refused:
            raise FilmError(self.refused[position])
        shard, place = divmod(position, SHARD)
        return np.asarray(self.shards[shard][place])

    def readable(self) -> list[int]:
        """Positions of the films that can be read."""
        return [position for position in range(len(self)) if position not in self.refused]

    def stack(self, positions: Sequence[int]) -> Float32[np.ndarray, "b 1 size size"]:
        """Some films as one batch of greys from 0 to 1, as a model takes them."""
        return np.stack([self[position] for position in positions])[:, None].astype(np.float32) / np.float32(255)

    def batches(
        self, positions: Sequence[int], size: int, label: str, track: Track = quietly
    ) -> Iterator[tuple[list[int], Float32[np.ndarray, "b 1 size size"]]]:
        """Positions and their films in order, a batch at a time; the last batch is as small as it is."""
        chunks = [list(positions[start : start + size]) for start in range(0, len(positions), size)]
        for chunk in track(chunks, label, len(chunks)):
            yield chunk, self.stack(chunk)


def fingerprint(content: str) -> str:
    """Enough of a film's checksum to know it again."""
    return content[:16]


@dataclass(frozen=True)
class FilmCache:
    """A folder of decoded films."""

    folder: Path
    config: Config

    def films(self, paths: Sequence[Path], *, workers: int | None = None, track: Track = quietly) -> CachedFilms:
        """All films prepared, decoding only what no earlier call has decoded."""
        contents = self.contents(paths, track=track)
        shards, refused = [], dict[int, str]()
        starts = range(0, len(paths), SHARD)
        missing = sum(not self._is_whole(contents[start : start + SHARD]) for start in starts)
        label = f"decoding {len(paths):,} films" if missing else "opening the cache"
        with DecoderPool(workers) as decoders:
            for start in track(starts, label, len(starts)):
                part = slice(start, start + SHARD)
                shard, reasons = self._shard(paths[part], contents[part], decoders)
                shards.append(shard)
                refused |= {start + place: reason for place, reason in reasons.items()}
        return CachedFilms(tuple(shards), tuple(contents), refused)

    def contents(self, paths: Sequence[Path], *, track: Track = quietly) -> list[str]:
        """SHA-256 of each film's file, worked out only where it may have changed; empty where there is no file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return _Contents(self.folder / "contents.json").hashes(paths, track)

    def _shard_path(self, contents: Sequence[str]) -> Path:
        prepared = json.dumps([_VERSION, self.config.preprocessing.model_dump(), list(contents)], sort_keys=True)
        return self.folder / f"{hashlib.sha256(prepared.encode()).hexdigest()[:32]}.npy"

    def _shape(self, contents: Sequence[str]) -> tuple[int, int, int]:
        size = self.config.preprocessing.size
        return len(contents), size, size

    def _is_whole(self, contents: Sequence[str]) -> bool:
        try:
            shard = np.load(self._shard_path(contents), mmap_mode="r")
        except (OSError, ValueError, EOFError):
            return False
        return bool(shard.shape == self._shape(contents) and shard.dtype == np.uint8)

    def _shard(
        self, paths: Sequence[Path], contents: Sequence[str], decoders: DecoderPool
    ) -> tuple[UInt8[np.ndarray, "films size size"], dict[int, str]]:
        """A shard from disk, or decoded and put there; one with a refused film is not kept, so it is tried again."""
        target = self._shard_path(contents)
        if not self._is_whole(contents):
            with FileLock(target.with_suffix(".lock")):
                if not self._is_whole(contents):  # unless another process was faster
                    pixels, refused = self._decoded(paths, contents, decoders)
                    if refused:
                        return pixels, refused
                    with whole_file(target) as draft, draft.open("wb") as file:
                        np.save(file, pixels)
        return np.asanyarray(np.load(target, mmap_mode="r")), {}

    def _decoded(
        self, paths: Sequence[Path], contents: Sequence[str], decoders: DecoderPool
    ) -> tuple[UInt8[np.ndarray, "films size size"], dict[int, str]]:
        pixels, refused = np.zeros(self._shape(contents), np.uint8), dict[int, str]()
        asked = (Request(path, self.config.limits, self.config.preprocessing) for path in paths)
        for place, answer in enumerate(decoders.read_all(asked)):
            if isinstance(answer, Film):
                pixels[place] = answer.pixels
            else:
                refused[place] = str(answer)
        return pixels, refused


@dataclass(frozen=True)
class _Contents:
    """What is in each file, worked out again only when its size, times of change or place on disk are others."""

    index: Path

    def hashes(self, paths: Sequence[Path], track: Track) -> list[str]:
        known = self._load()
        found = dict(known)
        hashes = [self._hash(path, found) for path in track(paths, f"looking at {len(paths):,} films", len(paths))]
        if found != known:
            with whole_file(self.index) as draft:
                draft.write_text(json.dumps(found), "utf-8")
        return hashes

    def _load(self) -> dict[str, list[object]]:
        try:
            known = json.loads(self.index.read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        whole = isinstance(known, dict) and all(isinstance(entry, list) and len(entry) == 5 for entry in known.values())
        return known if whole else {}

    @staticmethod
    def _hash(path: Path, found: dict[str, list[object]]) -> str:
        try:
            status = path.stat()
            key = str(path.resolve())
            entry = found.get(key)
            now = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
            if entry is None or entry[:-1] != now:
                entry = [*now, sha256(path)]
                found[key] = entry
            return str(entry[-1])
        except OSError:
            return ""


def cached_films(config: Config, dataset: Dataset, data: Path, track: Track = quietly) -> CachedFilms:
    """All films of a data set as a model of these settings sees them, decoded only where nobody has yet."""
    paths = [dataset.film_path(film) for film in dataset.pictured]
    return FilmCache(data / "cache", config).films(paths, track=track)
