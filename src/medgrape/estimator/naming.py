"""Settings under the names that scikit-learn's searches use: ``stages__concepts__epochs``."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from medgrape.config import Config, ConfigError, load_config, parse_config, put
from medgrape.spelling import nearest

PACKAGED = Path(__file__).resolve().parents[1] / "configs"
BETWEEN = "__"


def configured(config: Config | Path | str | None, settings: Mapping[str, Any] | None, seed: int | None) -> Config:
    """The settings of a file, or that come with the package under a name, with single ones put on top."""
    tables = _found(config).model_dump()
    if not isinstance(settings, Mapping | None) or not all(isinstance(key, str) for key in settings or ()):
        raise ConfigError("Give single settings by their names, such as settings={'model.tau': 0.2}.")
    for key, value in (settings or {}).items():
        put(tables, key.replace(BETWEEN, "."), value.item() if isinstance(value, np.generic) else value)
    if seed is not None:
        tables["seed"] = seed
    return parse_config(tables)


def searchable(config: Config) -> dict[str, Any]:
    """Every setting that is in a table, by its name for a search."""
    return dict(_flat(config.model_dump(), ""))


def _flat(tables: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for name, value in tables.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{name}{BETWEEN}")
        elif path:
            yield f"{path}{name}", value


def _found(config: Config | Path | str | None) -> Config:
    if isinstance(config, Config):
        return config
    if not isinstance(config, Path | str | None):
        raise ConfigError(f"config is a TOML file, a name of settings or a Config, not {config!r}.")
    if config is None or Path(config).is_file():
        return load_config(None if config is None else Path(config))
    known = sorted(path.stem for path in PACKAGED.glob("*.toml"))
    if str(config) not in known:
        raise ConfigError(
            f"There are no settings at {config}, and none of that name come with medgrape{nearest(str(config), known)}."
        )
    return load_config(PACKAGED / f"{config}.toml")
