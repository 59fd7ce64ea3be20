"""The models of the room: known by a hash of their manifest, loaded when needed, refused once they were altered."""

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from medgrape.errors import UserError
from medgrape.reader import Reader, load
from medgrape.runs.manifest import unseal, version_of
from medgrape.server.inference.encoder import encoder_version
from medgrape.server.inference.lru_cache import LRUCache


class ModelUnavailableError(Exception):
    """A model that is known, but cannot be used now."""


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to read."""

    version: str
    reader: Reader
    encoder: str
    folder: Path
    seen: tuple[object, ...]
    """How its files looked when they were last compared with their checksums."""


class ModelCache:
    """Models that were used lately."""

    def __init__(self, most: int) -> None:
        self._loaded: LRUCache[str, LoadedModel] = LRUCache(most)
        self._lock = threading.Lock()

    def get(self, version: str, folder: Path) -> LoadedModel:
        """The model, after a look at its folder: files that look otherwise than before are compared again.

        What is in memory is still what was loaded. But a folder that no longer holds it could not give it again after
        a restart, and nobody could say later what a film was read with; so nothing is read until it is put right.
        """
        with self._lock:
            found = self._loaded.get(version)
            try:
                if found is None:
                    return self._loaded.put(version, _loaded(version, folder))
                if found.seen != _look(folder):
                    return self._loaded.put(version, _compared(found))
            except (UserError, OSError) as error:
                raise ModelUnavailableError(version) from error
            return found

    def forget(self, version: str) -> None:
        """Let go of a model that was removed."""
        self._loaded.forget(lambda key: key == version)


def _loaded(version: str, folder: Path) -> LoadedModel:
    seen = _look(folder)
    reader = load(folder)
    if version_of(folder) != version:
        raise ModelUnavailableError(version)
    return LoadedModel(version, reader, encoder_version(reader.loaded.run), folder, seen)


def _compared(found: LoadedModel) -> LoadedModel:
    seen = _look(found.folder)
    unseal(found.folder)
    if version_of(found.folder) != found.version:
        raise ModelUnavailableError(found.version)
    return LoadedModel(found.version, found.reader, found.encoder, found.folder, seen)


def _look(folder: Path) -> tuple[object, ...]:
    """Name, size, place and times of change of every file."""
    found: list[object] = []
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            status = os.stat(os.path.join(root, name))  # noqa: PTH116, PTH118 (asked on every request)
            found.append((root, name, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))
    return tuple(found)
