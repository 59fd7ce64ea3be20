"""Values that are worked out when first asked for, and then kept."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class once(Generic[Owner, Value]):  # noqa: N801 (a decorator)
    """Like ``functools.cached_property``, which until Python 3.12 makes all objects of a class wait for each other.

    Two threads that ask at the same moment may both work the value out; it is the same.
    """

    def __init__(self, work: Callable[[Owner], Value]) -> None:
        self._work, self.__doc__ = work, work.__doc__

    def __set_name__(self, _owner: type[Owner], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[Owner]) -> "once[Owner, Value]": ...

    @overload
    def __get__(self, instance: Owner, owner: type[Owner]) -> Value: ...

    def __get__(self, instance: Owner | None, owner: type[Owner]) -> Any:
        """The value, which from now on stands in the object itself."""
        if instance is None:
            return self
        found = vars(instance)[self._name] = self._work(instance)
        return found
