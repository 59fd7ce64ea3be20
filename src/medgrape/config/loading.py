"""The whole file: every table together, and how it is read."""

import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from medgrape.config.base import ConfigError, Settings, first_complaint
from medgrape.config.films import FilmLimits, Preprocessing
from medgrape.config.model import BackboneSettings, ModelSettings, TextSettings
from medgrape.config.safety import SafetySettings
from medgrape.config.training import ExemplarSettings, StageSettings, TrainingSettings

MAX_SEED = 2**32 - 1
"""What k-means takes."""


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
