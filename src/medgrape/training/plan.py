"""Finished stages, kept for trainings that would learn the very same: a suite of many rows learns each of them once.

A stage is kept under a hash of everything that it depends on: films, labels, weights, versions, and the settings that
it or a stage before it reads. So what lies there is right, or of another name.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from medgrape.config import Config
from medgrape.files import linked

FIRST = "concepts.safetensors"
LATER = ("patches", "vectors", "prototypes.safetensors", "scores")
EVERYTHING = ("early", FIRST, *LATER)
"""What a training may share, by its name in the folder of a training; all but the first stage takes much room."""
EARLY = ("seed", "preprocessing", "backbone", "training")
"""Tables that the output of the backbone's frozen parts depends on, beside how films are viewed."""
UNSEEN_BEFORE_HEAD = (
    "model.head", "model.tau", "model.cut", "model.dropout", "model.standardise", "safety", "limits",
    "stages.end_to_end", "stages.black_box", "stages.cbm", "stages.pip_net_parts", "stages.pip_net",
)  # fmt: skip
"""What prototypes and scores do not depend on, beside all of stage 4 but its views."""


def fetch(kept: Path | None, work: Path, shared: Collection[str] = EVERYTHING) -> None:
    """Take the stages that another training has finished."""
    for name, place in _places(kept, work, shared).items():
        if place.exists() and not (work / name).exists():
            _link(place, work / name)


def keep(kept: Path | None, work: Path, shared: Collection[str] = EVERYTHING) -> None:
    """Leave the stages of a training that is finished to others."""
    for name, place in _places(kept, work, shared).items():
        if (work / name).exists() and not place.exists():
            _link(work / name, place)


def _link(source: Path, target: Path) -> None:
    """Beside its place first: it is whole there, or not there. Somebody else may be as far at the same moment."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    _remove(draft)  # of a process of the same number that was killed
    try:
        linked(source, draft)
        if not target.exists():
            draft.replace(target)
    finally:
        _remove(draft)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def shared_stages(config: Config) -> frozenset[str]:
    """A name for each stage of a training; trainings on the same films that have one in common would learn the same."""
    return frozenset(f"{name} {_hash(told)}" for name, told in _depends_on(config.model_dump(mode="json")).items())


def _places(kept: Path | None, work: Path, shared: Collection[str]) -> dict[str, Path]:
    """What a training may share, and where it is kept."""
    if kept is None:
        return {}
    begun = json.loads((work / "plan.json").read_text("utf-8"))
    found = _depends_on(begun.pop("config"))
    return {name: kept / _hash(begun | told) / name for name, told in found.items() if name in shared}


def _depends_on(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What a training may share, and the settings that each of it depends on."""
    views = {name: settings["stages"]["concepts"][name] for name in ("augment", "mirror", "views")}
    early = {name: settings[name] for name in EARLY}
    where = {name: value for name, value in settings["training"].items() if name != "order"}
    found = {"early": early | views | {"training": where, "paired": settings["model"]["method"] == "pip-net"}}
    if settings["model"]["method"] == "grape" and settings["training"]["order"] == "staged":
        found[FIRST] = early | {"stage": settings["stages"]["concepts"]}
        before_head = _without(settings, UNSEEN_BEFORE_HEAD)
        before_head["stages"]["head"] = {"views": settings["stages"]["head"]["views"]}
        found |= dict.fromkeys(LATER, before_head)
    return found


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
