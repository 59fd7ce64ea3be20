"""What was used lately stays in memory, up to a limit."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """A dictionary that forgets what was not asked for in the longest time, once all of it weighs too much."""

    def __init__(self, most: int, weight: Callable[[V], int] = lambda _: 1) -> None:
        self._most, self._weight = most, weight
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._total = 0
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """What is kept, and is now the last used."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: K, value: V) -> V:
        """Keep it, and forget others to make room; hand it back."""
        with self._lock:
            self._drop(key)
            self._kept[key] = value
            self._total += self._weight(value)
            while self._total > self._most and len(self._kept) > 1:
                self._drop(next(iter(self._kept)))
        return value

    def forget(self, matching: Callable[[K], bool]) -> None:
        """Drop all of some kind."""
        with self._lock:
            for key in [key for key in self._kept if matching(key)]:
                self._drop(key)

    def _drop(self, key: K) -> None:
        if key in self._kept:
            self._total -= self._weight(self._kept.pop(key))
