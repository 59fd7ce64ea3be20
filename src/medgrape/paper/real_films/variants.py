"""Variants of a recipe as data: which settings, what is changed in them, on which films, with which seeds."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from medgrape.config import RECIPES, Config, ConfigError, Settings, parse_config, put
from medgrape.config.base import Listed, first_complaint
from medgrape.errors import UserError, nearest

VARIANTS = Path(__file__).with_name("real_films.toml")
CONFIGS = RECIPES


class Variant(Settings):
    """One row of the table."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    """Also of its files."""
    title: str
    """As people read it."""
    data: Literal["tbx11k", "nih"]
    settings: str
    """Name of a settings file that comes with the package."""
    change: Annotated[dict[str, Any], Field(default_factory=dict)]
    """Dotted keys put on top of the settings."""
    seeds: Annotated[tuple[int, ...], Listed] = (0, 1, 2)
    """Each is that of the training and that of the split: another seed tests on other patients."""
    extra: bool = False
    """With the films that TBX11K borrowed from other sets, which teach and are never tested on."""

    after: str = ""
    """Another variant, from whose backbone, trained with the same seed, this one goes on."""

    def config(self, seed: int, configs: Path = CONFIGS) -> Config:
        """The settings, changed, with the seed; a key that is no setting is an error."""
        tables = _tables(configs, self.settings)
        for key, value in self.change.items():
            put(tables, key, value)
        return parse_config(tables | {"seed": seed}, f"The variant {self.name!r}")


class _File(Settings):
    """What a file of variants holds."""

    variants: Annotated[tuple[Variant, ...], Listed]


def load_variants(path: Path = VARIANTS) -> tuple[Variant, ...]:
    """All variants of a file, in its order."""
    try:
        found = _File.model_validate(tomllib.loads(path.read_text("utf-8"))).variants
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_complaint(error, _File)}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error
    names = [variant.name for variant in found]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise ConfigError(f"{path} has two variants {doubled!r}; rename one.")
    for place, variant in enumerate(found):
        if variant.after and variant.after not in names[:place]:
            raise ConfigError(f"{path}: {variant.name!r} goes on from {variant.after!r}, which must stand before it.")
    return found


def chosen(variants: Sequence[Variant], names: Sequence[str]) -> tuple[Variant, ...]:
    """The variants of some names, in the file's order; all of them where none is named.

    What a variant goes on from comes with it, and stands before it in the file.
    """
    known = {variant.name: variant for variant in variants}
    for name in names:
        if name not in known:
            raise UserError(f"There is no variant {name!r}{nearest(name, known)}.")
    wanted = {*names, *(known[name].after for name in names)}
    return tuple(variant for variant in variants if variant.name in wanted or not names)


def _tables(configs: Path, name: str) -> dict[str, Any]:
    path = configs / f"{name}.toml"
    if not path.is_file():
        known = [file.stem for file in configs.glob("*.toml")]
        raise ConfigError(f"There are no settings {name!r} among those of the package{nearest(name, known)}.")
    return tomllib.loads(path.read_text("utf-8"))
