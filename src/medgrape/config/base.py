"""The base class of all tables of a settings file: typed, frozen, without unknown keys."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medgrape.errors import UserError, nearest

Listed = Field(strict=False)
"""For tuples: settings are strict, but TOML has lists only. The items are still checked strictly."""
Names = Annotated[tuple[str, ...], Listed]


class ConfigError(UserError):
    """An invalid settings file."""


class Settings(BaseModel):
    """Base of every table of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def overridden(self, **given: object) -> Self:
        """Return a copy with every value that is not None, such as options of the command line."""
        try:
            return type(self).model_validate(self.model_dump() | {k: v for k, v in given.items() if v is not None})
        except ValidationError as error:
            raise ConfigError(f"The options are not valid: {first_complaint(error, type(self))}") from error


def first_complaint(error: ValidationError, model: type[BaseModel]) -> str:
    """Return the first error as a sentence; for an unknown key, with the nearest known one."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] != "extra_forbidden":
        message = first["msg"].removeprefix("Value error, ")
        return f"{where}: {message}, got {first['input']!r}." if where else f"{message}."
    *tables, key = map(str, first["loc"])
    known = list(model.model_fields)
    for table in tables:
        field = model.model_fields[table].annotation
        if not (isinstance(field, type) and issubclass(field, BaseModel)):
            known = []
            break
        model, known = field, list(field.model_fields)
    return f"there is no key {where!r}{nearest(key, known)}."
