"""Settings: one TOML file, typed and frozen. What the file does not say keeps the default written here."""

from medgrape.config.base import ConfigError, Settings
from medgrape.config.films import FilmLimits, Preprocessing
from medgrape.config.loading import MAX_SEED, Config, load_config, parse_config
from medgrape.config.model import BackboneSettings, ModelSettings, TextSettings
from medgrape.config.safety import SafetySettings
from medgrape.config.training import (
    ConceptStage,
    EndToEndStage,
    ExemplarSettings,
    HeadStage,
    PrototypeStage,
    StageSettings,
    TrainingSettings,
    VectorStage,
)

__all__ = [
    "MAX_SEED",
    "BackboneSettings",
    "ConceptStage",
    "Config",
    "ConfigError",
    "EndToEndStage",
    "ExemplarSettings",
    "FilmLimits",
    "HeadStage",
    "ModelSettings",
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
]
