"""What a training was begun with. One that is gone on with must have the same, or it would end as neither."""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from medgrape.config import Config
from medgrape.data.cache import CachedFilms
from medgrape.data.dataset import checksum
from medgrape.data.files import sha256, whole_file
from medgrape.model.own_record import parts_used
from medgrape.training.films import TrainingError

PLAN = "plan.json"
PARTS = {
    "config": "settings",
    "dataset": "labels",
    "films": "films",
    "sources": "weights of the backbone or the text encoder",
    "versions": "versions of the software",
}


_WHERE = ("processes", "threads")
"""Settings that say where a training runs, not what is learnt: one that is gone on with may have others."""


def alike(one: Config, other: Config) -> bool:
    """Whether two trainings are to learn the same, wherever each of them runs."""
    return bool(_learnt(one.model_dump(mode="json")) == _learnt(other.model_dump(mode="json")))


def _learnt(settings: Any) -> Any:  # noqa: ANN401 (of a file that anybody may have written)
    if not isinstance(settings, dict) or not isinstance(settings.get("training"), dict):
        return settings
    return settings | {"training": {key: told for key, told in settings["training"].items() if key not in _WHERE}}


def agree(work: Path, config: Config, data: Path, cached: CachedFilms) -> None:
    """Write down what is begun with, or compare it with what was written down."""
    plan, now = work / PLAN, _plan(config, data, cached)
    if not plan.is_file():
        with whole_file(plan) as draft:
            draft.write_text(json.dumps(now, indent=2) + "\n", "utf-8")
        return
    begun = json.loads(plan.read_text("utf-8"))
    for key, what in PARTS.items():
        before, after = begun.get(key), json.loads(json.dumps(now[key]))
        if (_learnt(before) != _learnt(after)) if key == "config" else before != after:
            raise TrainingError(
                f"This training was begun with other {what}; choose another --out, or remove {work} to begin anew."
            )


def _plan(config: Config, data: Path, cached: CachedFilms) -> dict[str, Any]:
    readable = [cached.contents[position] for position in cached.readable()]
    return {
        "config": config.model_dump(mode="json"),
        "dataset": checksum(data),
        "films": hashlib.sha256("".join(readable).encode()).hexdigest(),
        "sources": _sources(config),
        "versions": {name: version(name) for name in ("medgrape", "torch", "numpy", "scikit-learn")}
        | {one["distribution"]: one["version"] for one in parts_used(config).values()},
    }


def _sources(config: Config) -> dict[str, str]:
    """Every local file that weights are read from."""
    given = (Path(place).expanduser() for place in (config.backbone.name, config.backbone.weights, config.text.encoder))
    places = [place for place in given if str(place) != "." and place.exists()]
    files = [f for p in places for f in ([p] if p.is_file() else sorted(p.rglob("*"))) if f.is_file()]
    return {str(file): sha256(file) for file in files}
