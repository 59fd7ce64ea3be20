"""Settings that train a model in seconds."""

from medgrape.config import Config, parse_config

SMALL = {
    "preprocessing": {"size": 64},
    "backbone": {"name": "efficientnet-lite0", "leave_off": 1, "frozen_parts": 6},
    "model": {"prototypes": 4, "width": 16, "standardise": True},
    "training": {"device": "cpu", "threads": 1},
    "stages": {
        "concepts": {
            "epochs": 2, "batch": 8, "learning_rate": 1e-3, "pooling": "log-sum-exp", "box_weight": 1.0,
            "class_weight": 1.0, "batch_statistics": False, "views": 2,
        },
        "vectors": {"boxes": True, "normal": ["healthy"]},
        "prototypes": {"epochs": 3, "batch": 16, "dispersion": 0.5, "background": True},
        "head": {"epochs": 3, "batch": 16, "views": 2},
    },
}  # fmt: skip


def small(**tables: dict) -> Config:
    """Return the small settings with some tables changed."""
    merged = {name: dict(table) for name, table in SMALL.items()}
    for name, table in tables.items():
        if name == "stages":
            stages = {stage: dict(told) for stage, told in SMALL["stages"].items()}
            for stage, told in table.items():
                stages[stage] = stages.get(stage, {}) | told
            merged["stages"] = stages
        else:
            merged[name] = merged.get(name, {}) | table
    return parse_config(merged)
