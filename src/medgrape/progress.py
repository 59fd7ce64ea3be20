"""Progress of long work, reported without knowing how it is displayed, and libraries kept from printing messages."""

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class Track(Protocol):
    """Yields the items one by one and displays the progress."""

    def __call__(self, items: Iterable[T], label: str, total: int) -> Iterable[T]:
        """Return the same items."""
        ...


def quietly(items: Iterable[T], label: str, total: int) -> Iterable[T]:  # noqa: ARG001 (nothing is displayed)
    """Return the same items and display nothing."""
    return items


@runtime_checkable
class Watch(Protocol):
    """Opens a progress bar with a changing message; each call of the yielded function is one step and its message."""

    def __call__(self, label: str, total: int, done: int = 0) -> AbstractContextManager[Callable[[str], None]]:
        """Open a bar of ``total`` steps of which ``done`` were done before."""
        ...


@contextmanager
def unwatched(label: str, total: int, done: int = 0) -> Iterator[Callable[[str], None]]:  # noqa: ARG001
    """Display nothing."""
    yield lambda message: None  # noqa: ARG005


@contextmanager
def suppressed_messages(level: int) -> Iterator[None]:
    """Suppress the warnings of libraries, and log messages up to ``level``; failures still raise."""
    before = logging.root.manager.disable
    logging.disable(max(before, level))
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)
