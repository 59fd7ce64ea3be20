"""Files of version 0.1.0 (tests/fixtures/version-0.1.0) and the answers that it gave for them."""

import json
from pathlib import Path

import pytest

BEFORE = Path(__file__).parent / "fixtures" / "version-0.1.0"
EXPECTED = json.loads((BEFORE / "expected.json").read_text("utf-8"))


def alike(now: object, before: object) -> bool:
    """Equal, but for rounding: the numbers were written on another processor."""
    if isinstance(before, dict):
        return isinstance(now, dict) and now.keys() == before.keys() and all(alike(now[k], before[k]) for k in before)
    if isinstance(before, list):
        return isinstance(now, list | tuple) and len(now) == len(before) and all(map(alike, now, before))
    if isinstance(before, float):
        return now == pytest.approx(before, abs=2e-4)
    return now == before
