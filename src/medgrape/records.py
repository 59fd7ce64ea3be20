"""Frozen records that are written as JSON and read back."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen record whose JSON keys are its field names; an unknown or missing key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    def to_json(self) -> dict[str, Any]:
        """Plain data, ready for ``json.dumps``."""
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, payload: dict[str, Any]) -> Self:
        """The inverse of ``to_json``."""
        return cls.model_validate(payload)
