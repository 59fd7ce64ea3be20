"""Settings of a run: one TOML file, typed and frozen. Keys that the file omits keep the defaults defined here."""

import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from medgrape.config.base import ConfigError, Settings, first_complaint
from medgrape.config.settings import (
    BackboneSettings,
    BlackBoxStage,
    CbmStage,
    ConceptStage,
    EndToEndStage,
    ExemplarSettings,
    FilmLimits,
    HeadStage,
    ModelSettings,
    PipNetPartsStage,
    PipNetStage,
    Preprocessing,
    PrototypeStage,
    SafetySettings,
    StageSettings,
    TextSettings,
    TrainingSettings,
    VectorStage,
)

__all__ = [
    "MAX_SEED", "RECIPES", "BackboneSettings", "BlackBoxStage", "CbmStage", "ConceptStage", "Config", "ConfigError",
    "EndToEndStage", "ExemplarSettings", "FilmLimits", "HeadStage", "ModelSettings", "PipNetPartsStage",
    "PipNetStage", "Preprocessing", "PrototypeStage", "SafetySettings", "Settings", "StageSettings", "TextSettings",
    "TrainingSettings", "VectorStage", "config_path", "load_config", "parse_config", "put", "recipe_names",
]  # fmt: skip

MAX_SEED = 2**32 - 1
"""The largest seed of scikit-learn's k-means."""
RECIPES = Path(__file__).with_name("recipes")
"""The folder of packaged settings; ``recipes/demo.toml`` has the name ``demo``."""


class Config(Settings):
    """All settings of a run."""

    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 0
    """Random seed of initial weights, order of films, and augmentation."""
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
    """Return the names of the packaged settings."""
    return tuple(sorted(path.stem for path in RECIPES.glob("*.toml")))


def config_path(config: Path | str) -> Path:
    """Return the file of a config given by path or by name, such as ``demo``; an existing file comes first."""
    path = Path(config)
    if path.exists():
        return path
    packaged = RECIPES / f"{path.stem}.toml"
    by_name = len(path.parts) == 1 and path.suffix in ("", ".toml")
    by_old_path = path.parts[:-1] == ("configs",)  # the path in a clone of the repository
    if (by_name or by_old_path) and packaged.is_file():
        return packaged
    raise ConfigError(
        f"Cannot read the settings in {config}: there is no such file; give a file, or one of "
        f"{', '.join(recipe_names())}."
    )


def load_config(config: Path | str | None) -> Config:
    """Load the settings of a file, or packaged ones by name; the defaults for None."""
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
    """Set a dotted key; unknown keys are detected when the tables are parsed."""
    *path, last = key.split(".")
    table: Any = tables
    for part in path:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ConfigError(f"There is no setting {key!r}: {part!r} is a setting itself, not a table of them.")
    table[last] = value


def parse_config(tables: dict[str, Any], origin: str = "the settings") -> Config:
    """Validate settings; ``origin`` names them in an error."""
    try:
        return Config.model_validate(tables)
    except ValidationError as error:
        raise ConfigError(f"{origin}: {first_complaint(error, Config)}") from error
