"""What a training was started with (plan.json), and finished stages that several trainings share.

A shared stage is kept under a hash of everything that it depends on: films, labels, weights, versions, and the settings
that it or an earlier stage reads.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Collection, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from medgrape.config import Config
from medgrape.datasets.cache import CachedFilms
from medgrape.datasets.dataset import checksum
from medgrape.files import linked, sha256, write_json
from medgrape.runs.manifest import parts_used
from medgrape.training.films import TrainingError

PLAN = "plan.json"
PARTS = {  # Keys of the plan, and how an error calls them
    "config": "settings", "dataset": "labels", "films": "films",
    "sources": "weights of the backbone or the text encoder", "versions": "versions of the software",
}  # fmt: skip
_WHERE = ("processes", "threads")  # Settings that may change while a training is continued: where it runs

FIRST = "concepts.safetensors"
LATER = ("patches", "vectors", "prototypes.safetensors", "scores")
EVERYTHING = ("early", FIRST, *LATER)  # Stages that trainings may share; all but the first need much space
EARLY = ("seed", "preprocessing", "backbone", "training")  # Settings of the frozen parts, besides the views
UNSEEN_BEFORE_HEAD = (  # Prototypes and scores do not depend on these settings, nor on stage 4 except its views
    "model.head", "model.tau", "model.cut", "model.dropout", "model.standardise", "safety", "limits",
    "stages.end_to_end", "stages.black_box", "stages.cbm", "stages.pip_net_parts", "stages.pip_net",
)  # fmt: skip


def is_same_training(config: Config, other: Config) -> bool:
    """Return whether two configs train the same model, wherever each of them runs."""
    return bool(_without_where(config.model_dump(mode="json")) == _without_where(other.model_dump(mode="json")))


def _without_where(settings: Any) -> Any:  # noqa: ANN401 (from a file that anybody may have written)
    if not isinstance(settings, dict) or not isinstance(settings.get("training"), dict):
        return settings
    return settings | {"training": {key: value for key, value in settings["training"].items() if key not in _WHERE}}


def write_or_verify(work: Path, config: Config, data: Path, cached: CachedFilms) -> None:
    """Write the plan of a new training; raise if a continued training was begun with another plan."""
    path = work / PLAN
    readable = [cached.contents[position] for position in cached.readable()]
    plan = {
        "config": config.model_dump(mode="json"),
        "dataset": checksum(data),
        "films": hashlib.sha256("".join(readable).encode()).hexdigest(),
        "sources": _sources(config),
        "versions": {name: version(name) for name in ("medgrape", "torch", "numpy", "scikit-learn")}
        | {part["distribution"]: part["version"] for part in parts_used(config).values()},
    }
    if not path.is_file():
        write_json(path, plan, indent=2, allow_nan=True)  # a gate may be infinite
        return
    started = json.loads(path.read_text("utf-8"))
    for key, what in PARTS.items():
        before, after = started.get(key), json.loads(json.dumps(plan[key]))
        if (_without_where(before) != _without_where(after)) if key == "config" else before != after:
            raise TrainingError(
                f"This training was begun with other {what}; choose another --out, or remove {work} to begin anew."
            )


def _sources(config: Config) -> dict[str, str]:
    """SHA-256 of every local file of weights."""
    names = (config.backbone.name, config.backbone.weights, config.text.encoder)
    paths = [path for path in (Path(name).expanduser() for name in names) if str(path) != "." and path.exists()]
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*")))]
    return {str(file): sha256(file) for file in files if file.is_file()}


def link_from_cache(cache: Path | None, work: Path, names: Collection[str] = EVERYTHING) -> None:
    """Link the stages in the cache that another training has finished into the work folder."""
    for name, place in _places(cache, work, names).items():
        _link(place, work / name)


def link_to_cache(cache: Path | None, work: Path, names: Collection[str] = EVERYTHING) -> None:
    """Link the stages of a finished training into the cache, for other trainings."""
    for name, place in _places(cache, work, names).items():
        _link(work / name, place)


def _link(source: Path, target: Path) -> None:
    """Link through a draft, so that the target is complete or absent; another process may do the same."""
    if target.exists() or not source.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    _remove(draft)  # of a killed process with the same number
    try:
        linked(source, draft)
        if not target.exists():
            draft.replace(target)
    finally:
        _remove(draft)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def shared_stages(config: Config) -> frozenset[str]:
    """Return a name for each stage; trainings on the same films share the stages whose names are equal."""
    stages = _depends_on(config.model_dump(mode="json"))
    return frozenset(f"{name} {_hash(settings)}" for name, settings in stages.items())


def _places(cache: Path | None, work: Path, names: Collection[str]) -> dict[str, Path]:
    """Where each stage of a training is kept."""
    if cache is None:
        return {}
    plan = json.loads((work / PLAN).read_text("utf-8"))
    stages = _depends_on(plan.pop("config"))
    return {name: cache / _hash(plan | settings) / name for name, settings in stages.items() if name in names}


def _depends_on(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings that each stage depends on."""
    views = {name: settings["stages"]["concepts"][name] for name in ("augment", "mirror", "views")}
    early = {name: settings[name] for name in EARLY}
    where = {name: value for name, value in settings["training"].items() if name != "order"}
    stages = {"early": early | views | {"training": where, "paired": settings["model"]["method"] == "pip-net"}}
    if settings["model"]["method"] == "grape" and settings["training"]["order"] == "staged":
        stages[FIRST] = early | {"stage": settings["stages"]["concepts"]}
        before_head: dict[str, Any] = json.loads(json.dumps(settings))
        for key in UNSEEN_BEFORE_HEAD:
            table, _, name = key.rpartition(".")
            del (before_head[table] if table else before_head)[name]
        before_head["stages"]["head"] = {"views": settings["stages"]["head"]["views"]}
        stages |= dict.fromkeys(LATER, before_head)
    return stages


def _hash(settings: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
