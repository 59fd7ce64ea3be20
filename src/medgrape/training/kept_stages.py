"""Finished stages, kept for trainings that would learn the very same: a suite of many rows learns each of them once.

A stage is kept under a hash of everything that it depends on: films, labels, weights, versions, and the settings that
it or a stage before it reads. So what lies there is right, or of another name.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medgrape.data.files import linked

EARLY = ("seed", "preprocessing", "backbone", "training")
"""Tables that the output of the backbone's frozen parts depends on, beside how films are viewed."""
UNSEEN_BEFORE_HEAD = (
    "model.head", "model.tau", "model.cut", "model.dropout", "model.standardise", "safety", "limits",
    "stages.end_to_end", "stages.black_box", "stages.cbm", "stages.pip_net_parts", "stages.pip_net",
)  # fmt: skip
"""What prototypes and scores do not depend on, beside all of stage 4 but its views."""


def fetch(kept: Path | None, work: Path) -> None:
    """Take the stages that another training has finished."""
    for name, place in _places(kept, work).items():
        if place.exists() and not (work / name).exists():
            linked(place, work / name)


def keep(kept: Path | None, work: Path) -> None:
    """Leave the stages of a training that is finished to others."""
    for name, place in _places(kept, work).items():
        if (work / name).exists() and not place.exists():
            _leave(work / name, place)


def _leave(own: Path, place: Path) -> None:
    """Beside its place first: it is whole there, or not there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        linked(own, draft)
        draft.replace(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True) if draft.is_dir() else draft.unlink(missing_ok=True)


def _places(kept: Path | None, work: Path) -> dict[str, Path]:
    """What a training may share, by its name in the folder of a training, and where it is kept."""
    if kept is None:
        return {}
    begun = json.loads((work / "plan.json").read_text("utf-8"))
    settings = begun.pop("config")
    views = {name: settings["stages"]["concepts"][name] for name in ("augment", "mirror", "views")}
    early = {name: settings[name] for name in EARLY}
    found = {"early": early | views | {"paired": settings["model"]["method"] == "pip-net"}}
    if settings["model"]["method"] == "grape" and settings["training"]["order"] == "staged":
        found["concepts.safetensors"] = early | {"stage": settings["stages"]["concepts"]}
        before_head = _without(settings, UNSEEN_BEFORE_HEAD)
        before_head["stages"]["head"] = {"views": settings["stages"]["head"]["views"]}
        found |= dict.fromkeys(("patches", "vectors", "prototypes.safetensors", "scores"), before_head)
    return {name: kept / _hash(begun | told) / name for name, told in found.items()}


def _without(settings: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    left: dict[str, Any] = json.loads(json.dumps(settings))
    for key in keys:
        *path, last = key.split(".")
        table = left
        for part in path:
            table = table[part]
        del table[last]
    return left


def _hash(told: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
