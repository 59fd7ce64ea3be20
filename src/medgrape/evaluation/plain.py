"""Anything as plain data that every reader of JSON takes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def plain(value: object) -> Any:  # noqa: ANN401 (as JSON has it)
    """Mappings, lists, words and finite numbers; what is none of these becomes words."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return _gathered(value)


def flat(value: object, name: str = "") -> dict[str, str]:
    """Nested facts as one list of names and words."""
    if isinstance(value, Mapping):
        found: dict[str, str] = {}
        for key, inner in value.items():
            found |= flat(inner, f"{name}: {key}" if name else str(key))
        return found
    if isinstance(value, Sequence) and not isinstance(value, str):
        return {name: "; ".join(str(plain(inner)) for inner in value)} if value else {}
    return {name: "not known" if value is None else str(plain(value))}


def _gathered(value: object) -> dict[str, Any] | list[Any] | str:
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return _gathered(value.tolist())
    if isinstance(value, (Sequence, set, frozenset)):
        return [plain(inner) for inner in value]
    return str(value)
