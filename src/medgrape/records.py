"""Frozen records that are written as JSON and read back, and properties of frozen objects that are computed once."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

from pydantic import BaseModel, ConfigDict

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class Record(BaseModel):
    """A frozen record whose JSON keys are its field names; an unknown or missing key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON data."""
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, payload: dict[str, Any]) -> Self:
        """Make a record from the result of ``to_json``."""
        return cls.model_validate(payload)


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
