"""Settings of a run: one TOML file, typed and frozen. Keys that the file omits keep the defaults defined here."""

from medgrape.config.base import ConfigError, Settings
from medgrape.config.loading import MAX_SEED, RECIPES, Config, config_path, load_config, parse_config, put, recipe_names
from medgrape.config.model import (
    BackboneSettings,
    FilmLimits,
    ModelSettings,
    Preprocessing,
    SafetySettings,
    TextSettings,
)
from medgrape.config.training import (
    BlackBoxStage,
    CbmStage,
    ConceptStage,
    EndToEndStage,
    ExemplarSettings,
    HeadStage,
    PipNetPartsStage,
    PipNetStage,
    PrototypeStage,
    StageSettings,
    TrainingSettings,
    VectorStage,
)

__all__ = [
    "MAX_SEED", "RECIPES", "BackboneSettings", "BlackBoxStage", "CbmStage", "ConceptStage", "Config", "ConfigError",
    "EndToEndStage", "ExemplarSettings", "FilmLimits", "HeadStage", "ModelSettings", "PipNetPartsStage",
    "PipNetStage", "Preprocessing", "PrototypeStage", "SafetySettings", "Settings", "StageSettings", "TextSettings",
    "TrainingSettings", "VectorStage", "config_path", "load_config", "parse_config", "put", "recipe_names",
]  # fmt: skip
