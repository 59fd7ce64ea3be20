"""The whole file: every table together, and how it is read."""

import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from medgrape.config.base import ConfigError, Settings, first_complaint
from medgrape.config.model import (
    BackboneSettings,
    FilmLimits,
    ModelSettings,
    Preprocessing,
    SafetySettings,
    TextSettings,
)
from medgrape.config.training import ExemplarSettings, StageSettings, TrainingSettings

MAX_SEED = 2**32 - 1
"""The largest seed that k-means takes."""
RECIPES = Path(__file__).with_name("recipes")
"""Settings that come with the package, by name: ``recipes/demo.toml`` is ``demo``."""


class Config(Settings):
    """Everything a run can be told."""

    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 0
    """Of everything that is drawn by lot: first weights, order of films, augmentation."""
    limits: FilmLimits = FilmLimits()
    preprocessing: Preprocessing = Preprocessing()
    backbone: BackboneSettings = BackboneSettings()
    text: TextSettings = TextSettings()
    model: ModelSettings = ModelSettings()
    training: TrainingSettings = TrainingSettings()
    stages: StageSettings = StageSettings()
    exemplars: ExemplarSettings = ExemplarSettings()
    safety: SafetySettings = SafetySettings()


def recipe_names() -> tuple[str, ...]:
    """Names of the settings that come with the package."""
    return tuple(sorted(path.stem for path in RECIPES.glob("*.toml")))


def config_path(config: Path | str) -> Path:
    """The file of a config that is given by path or, as in ``demo``, by name; a file that exists comes first."""
    path = Path(config)
    if path.exists():
        return path
    packaged = RECIPES / f"{path.stem}.toml"
    by_name = len(path.parts) == 1 and path.suffix in ("", ".toml")
    by_old_path = path.parts[:-1] == ("configs",)  # as in a clone of the repository, read from elsewhere
    if (by_name or by_old_path) and packaged.is_file():
        return packaged
    raise ConfigError(f"There is no config {str(config)!r}; give a file, or one of {', '.join(recipe_names())}.")


def load_config(config: Path | str | None) -> Config:
    """The settings in a file, or of a config that comes with the package; the defaults for None."""
    if config is None:
        return Config()
    path = config_path(config)
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read the settings in {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error
    return parse_config(tables, str(path))


def put(tables: dict[str, Any], key: str, value: object) -> None:
    """``value`` under a dotted key; whether there is such a setting is found out when the whole is parsed."""
    *path, last = key.split(".")
    table: Any = tables
    for part in path:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ConfigError(f"There is no setting {key!r}: {part!r} is a setting itself, not a table of them.")
    table[last] = value


def parse_config(tables: dict[str, Any], origin: str = "the settings") -> Config:
    """Settings from plain data; ``origin`` names them in an error."""
    try:
        return Config.model_validate(tables)
    except ValidationError as error:
        raise ConfigError(f"{origin}: {first_complaint(error, Config)}") from error
