"""Settings: one TOML file, typed and frozen. What the file does not say keeps the default written here."""

from medgrape.config.base import ConfigError, Settings
from medgrape.config.films import FilmLimits, Preprocessing
from medgrape.config.loading import MAX_SEED, Config, load_config, parse_config, put
from medgrape.config.model import BackboneSettings, ModelSettings, TextSettings
from medgrape.config.safety import SafetySettings
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
    "MAX_SEED",
    "BackboneSettings",
    "BlackBoxStage",
    "CbmStage",
    "ConceptStage",
    "Config",
    "ConfigError",
    "EndToEndStage",
    "ExemplarSettings",
    "FilmLimits",
    "HeadStage",
    "ModelSettings",
    "PipNetPartsStage",
    "PipNetStage",
    "Preprocessing",
    "PrototypeStage",
    "SafetySettings",
    "Settings",
    "StageSettings",
    "TextSettings",
    "TrainingSettings",
    "VectorStage",
    "load_config",
    "parse_config",
    "put",
]
