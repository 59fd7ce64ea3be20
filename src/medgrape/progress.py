"""How long work tells that it is going on, without knowing who watches."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class Track(Protocol):
    """Hands the items on one by one and shows how far it is."""

    def __call__(self, items: Iterable[T], label: str, total: int) -> Iterable[T]:
        """The same items."""
        ...


def quietly(items: Iterable[T], label: str, total: int) -> Iterable[T]:  # noqa: ARG001 (nobody watches)
    """The same items, with nothing shown."""
    return items


@runtime_checkable
class Watch(Protocol):
    """Opens a bar for work whose news changes on the way; each call of what it yields is one step, with news."""

    def __call__(self, label: str, total: int, done: int = 0) -> AbstractContextManager[Callable[[str], None]]:
        """A bar of ``total`` steps of which ``done`` were done before."""
        ...


@contextmanager
def unwatched(label: str, total: int, done: int = 0) -> Iterator[Callable[[str], None]]:  # noqa: ARG001 (nobody watches)
    """Steps that nobody sees."""
    yield lambda news: None  # noqa: ARG005
