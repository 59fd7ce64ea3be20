"""How long a prediction takes with one head and with the other, from film to classes, in turns on this machine."""

import time
from typing import Any

import numpy as np
import torch

from medgrape.model.checkpoint import LoadedRun

BATCHES = (1, 8, 32)
WARM, ROUNDS = 3, 30


@torch.no_grad()
def measure_latency(linear: LoadedRun, graph: LoadedRun) -> dict[str, Any]:
    """Milliseconds of both, taken in turns so that a noisy machine disturbs both alike; the two share a backbone."""
    side = linear.run.config.preprocessing.size
    told: dict[str, Any] = {
        "threads": torch.get_num_threads(),
        "backbone": linear.run.config.backbone.name,
        "side": side,
    }
    for batch in BATCHES:
        films = torch.rand(batch, 1, side, side, generator=torch.Generator().manual_seed(0))
        taken: dict[str, list[float]] = {"linear": [], "graph": []}
        for turn in range(WARM + ROUNDS):
            for name, loaded in (("linear", linear), ("graph", graph)):
                began = time.perf_counter()
                loaded.run.grape(films)
                if turn >= WARM:
                    taken[name].append(1e3 * (time.perf_counter() - began))
        for name, times in taken.items():
            told |= _told(f"{batch}.{name}", np.array(times), batch)
        told[f"{batch}.overhead"] = told[f"{batch}.graph.median"] / told[f"{batch}.linear.median"] - 1
    return told


def _told(name: str, times: np.ndarray, batch: int) -> dict[str, float]:
    return {
        f"{name}.mean": float(times.mean()), f"{name}.sd": float(times.std(ddof=1)),
        f"{name}.p95": float(np.quantile(times, 0.95)), f"{name}.median": float(np.median(times)),
        f"{name}.film": float(1e3 * times.mean() / batch),
    }  # fmt: skip
