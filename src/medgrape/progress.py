"""How long work tells that it is going on, without knowing who watches."""

from collections.abc import Iterable
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
