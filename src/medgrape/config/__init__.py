"""Settings of a run: one TOML file, typed and frozen. Keys that the file omits keep their defaults."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from medgrape.config.settings import (
    MAX_SEED,
    BackboneSettings,
    CbmStage,
    ConceptStage,
    Config,
    ConfigError,
    FilmLimits,
    HeadStage,
    ModelSettings,
    PipNetPartsStage,
    PipNetStage,
    Preprocessing,
    PrototypeStage,
    Settings,
    TextSettings,
    TrainingSettings,
    VectorStage,
    first_complaint,
)

__all__ = [
    "MAX_SEED", "RECIPES", "BackboneSettings", "CbmStage", "ConceptStage", "Config", "ConfigError", "FilmLimits",
    "HeadStage", "ModelSettings", "PipNetPartsStage", "PipNetStage", "Preprocessing", "PrototypeStage", "Settings",
    "TextSettings", "TrainingSettings", "VectorStage", "load_config", "parse_config", "put", "recipe_names",
]  # fmt: skip

RECIPES = Path(__file__).with_name("recipes")
"""The folder of packaged settings; ``recipes/demo.toml`` has the name ``demo``."""


def recipe_names() -> tuple[str, ...]:
    """Return the names of the packaged settings."""
    return tuple(sorted(path.stem for path in RECIPES.glob("*.toml")))


def load_config(config: Path | str | None) -> Config:
    """Load the settings of a file, or packaged ones by name, such as ``demo``; the defaults for None."""
    if config is None:
        return Config()
    path = Path(config)
    if not path.exists() or path.is_dir():  # a folder may have the name of a recipe
        by_name = len(path.parts) == 1 and path.suffix in ("", ".toml")
        by_old_path = path.parts[:-1] == ("configs",)  # the path in a clone of the repository
        if not (by_name or by_old_path) or path.stem not in recipe_names():
            raise ConfigError(
                f"Cannot read the settings in {config}: there is no such file; give a file, or one of "
                f"{', '.join(recipe_names())}."
            )
        path = RECIPES / f"{path.stem}.toml"
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
