"""Properties that are computed when first accessed, and then kept."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class once(Generic[Owner, Value]):  # noqa: N801 (a decorator)
    """Like ``functools.cached_property``, without the lock that all objects of a class share before Python 3.12.

    Two threads that access it at the same moment may both compute the value; the results are equal.
    """

    def __init__(self, compute: Callable[[Owner], Value]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, _owner: type[Owner], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[Owner]) -> "once[Owner, Value]": ...

    @overload
    def __get__(self, instance: Owner, owner: type[Owner]) -> Value: ...

    def __get__(self, instance: Owner | None, owner: type[Owner]) -> Any:
        """Compute the value and store it in the object, where later accesses find it."""
        if instance is None:
            return self
        value = vars(instance)[self._name] = self._compute(instance)
        return value
