"""Settings: one TOML file, typed and frozen. What the file does not say keeps the default written here."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medgrape.errors import UserError
from medgrape.spelling import nearest


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
            raise ConfigError(f"The options given do not fit: {_first_complaint(error)}") from error


class FilmLimits(Settings):
    """What a film file may cost. All three are checked before any pixel is unpacked."""

    max_bytes: Annotated[int, Field(gt=0)] = 256 * 2**20
    """Size of the file, and of what a deflated DICOM file unpacks to."""
    max_pixels: Annotated[int, Field(gt=0)] = 64_000_000
    """Width times height; a large-format chest film has about 20 million."""
    max_ratio: Annotated[float, Field(gt=0)] = 500.0
    """Unpacked bytes for each byte of the file; real films stay below 60."""


class Preprocessing(Settings):
    """How an upright film becomes what the model sees."""

    size: Annotated[int, Field(ge=16, le=4096)] = 224
    """Both sides of the square that the film is stretched to."""


class Config(Settings):
    """Everything a run can be told."""

    limits: FilmLimits = FilmLimits()
    preprocessing: Preprocessing = Preprocessing()


def load_config(path: Path | None) -> Config:
    """The settings in ``path``, or the defaults where there is no path."""
    if path is None:
        return Config()
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read the settings in {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error
    return parse_config(tables, str(path))


def parse_config(tables: dict[str, Any], origin: str = "the settings") -> Config:
    """Settings from plain data; ``origin`` names them in an error."""
    try:
        return Config.model_validate(tables)
    except ValidationError as error:
        raise ConfigError(f"{origin}: {_first_complaint(error)}") from error


def _first_complaint(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] != "extra_forbidden":
        return f"{where}: {first['msg']}, got {first['input']!r}."
    return f"there is no key {where!r}{nearest(str(first['loc'][-1]), _known_keys(first['loc'][:-1]))}."


def _known_keys(table: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = Config
    for part in table:
        field = model.model_fields[str(part)].annotation
        if not (isinstance(field, type) and issubclass(field, BaseModel)):
            return []
        model = field
    return list(model.model_fields)
