"""What every table of the settings file has in common: typed, frozen, and no key that nothing reads."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medgrape.errors import UserError, nearest

Listed = Field(strict=False)
"""Settings are strict, but TOML has lists where frozen settings have tuples; their contents are checked as strictly."""
Names = Annotated[tuple[str, ...], Listed]


class ConfigError(UserError):
    """A settings file that cannot be used as it is."""


class Settings(BaseModel):
    """Base of every table of the file: no unknown keys, no change after loading."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def overridden(self, **given: object) -> Self:
        """The same with every value that is not None put in place: how an option on the command line wins."""
        try:
            return type(self).model_validate(self.model_dump() | {k: v for k, v in given.items() if v is not None})
        except ValidationError as error:
            raise ConfigError(f"The options given do not fit: {first_complaint(error, type(self))}") from error


def first_complaint(error: ValidationError, model: type[BaseModel]) -> str:
    """The first thing that is wrong, as a sentence; a mistyped key is told the nearest known one."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] != "extra_forbidden":
        said = first["msg"].removeprefix("Value error, ")
        return f"{where}: {said}, got {first['input']!r}." if where else f"{said}."
    return f"there is no key {where!r}{nearest(str(first['loc'][-1]), _known_keys(model, first['loc'][:-1]))}."


def _known_keys(model: type[BaseModel], table: tuple[int | str, ...]) -> list[str]:
    for part in table:
        field = model.model_fields[str(part)].annotation
        if not (isinstance(field, type) and issubclass(field, BaseModel)):
            return []
        model = field
    return list(model.model_fields)
