"""Packaged settings with trainings shortened to seconds: the same files and tables."""

import tomllib
from pathlib import Path
from typing import Any

import tomli_w
from document_blocks import ROOT

CONFIGS = ROOT / "src/medgrape/config/recipes"
MOST = {"epochs": 1, "batch": 16, "views": 1, "parts": 8}
"""Largest value of each in a stage; 0 stays 0."""
PROTOTYPES = {"demo": 8}
"""Prototypes per concept."""
STAGES = ("concepts", "prototypes", "head", "end_to_end", "black_box", "cbm", "pip_net_parts", "pip_net")


def write_cut(folder: Path) -> Path:
    """Write all packaged settings, shortened, to a folder."""
    folder.mkdir(parents=True)
    for path in sorted(CONFIGS.glob("*.toml")):
        (folder / path.name).write_text(
            tomli_w.dumps(cut(tomllib.loads(path.read_text("utf-8")), PROTOTYPES.get(path.stem, 4)))
        )
    return folder


def cut(tables: dict[str, Any], prototypes: int) -> dict[str, Any]:
    """Return settings with small films, a small backbone without download, few prototypes and one epoch."""
    weights = {key: value for key, value in tables["backbone"].items() if key == "weights"}
    stages = {name: dict(tables.get("stages", {}).get(name, {})) for name in STAGES}
    for stage, settings in stages.items():
        settings |= {
            "epochs": min(settings.get("epochs", 1), MOST["epochs"]),
            "batch": min(settings.get("batch", 16), MOST["batch"]),
        }
        if settings.get("views"):
            settings["views"] = MOST["views"]
        if stage == "pip_net_parts":
            settings["parts"] = MOST["parts"]
    return tables | {
        "preprocessing": {"size": 64},
        "backbone": {"name": "efficientnet-lite0", "leave_off": 1, "frozen_parts": 6} | weights,
        "text": {"encoder": "lexical"},
        "model": tables.get("model", {}) | {"prototypes": prototypes, "width": 16},
        "training": {"device": "cpu", "threads": 1},
        "stages": tables.get("stages", {}) | stages,
    }
