"""How long a prediction takes with one head and with the other, from film to classes, in turns on this machine."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset
from medgrape.evaluation.evaluate import Loaded
from medgrape.evaluation.faithfulness import answer_of, faithfulness, random_order, saliency_of
from medgrape.evaluation.few_shot import TrialPlan, leave_one_out
from medgrape.evaluation.readings import EvaluationError
from medgrape.progress import Track
from medgrape.runs.checkpoint import LoadedRun


def measure_faithfulness(loaded: Loaded, data: Path, films: int, track: Track) -> dict[str, Any]:
    """Areas over some test films, evenly spaced over all of them, beside those of a random order of patches."""
    dataset, model = Dataset.load(data), loaded.run.model
    cached = cached_films(loaded.run.config, dataset, data, track)
    places = [place for place in cached.readable() if dataset.pictured[place].split == "test"]
    chosen = [places[int(at)] for at in np.linspace(0, len(places) - 1, min(films, len(places))).round()]
    greys = torch.from_numpy(np.stack([cached[place] for place in chosen])).unsqueeze(1).float() / 255.0
    answer, saliency = answer_of(model), saliency_of(model, greys)
    own = faithfulness(answer, greys, saliency, track=track)
    blind = faithfulness(answer, greys, random_order(len(greys), (saliency.shape[1], saliency.shape[2])), track=track)
    records = [dataset.pictured[place] for place in chosen]
    by_film: dict[str, Any] = {"patients": [film.patient or film.id for film in records]}
    told: dict[str, Any] = {"films": len(chosen), "by_film": by_film}
    for name, found in (("own", own), ("random", blind)):
        for kind in ("deletion", "insertion"):
            areas = getattr(found, kind)
            by_film[f"{name}.{kind}"] = areas.tolist()
            told[f"{name}.{kind}"] = float(areas.mean())
            told[f"{name}.{kind}.curve"] = getattr(found, f"{kind}_curves").mean(axis=0).tolist()
    return told


FILMS = (0, 1, 5, 20)


def measure_few_shot(loaded: LoadedRun, data: Path, draws: int, track: Track) -> dict[str, Any]:
    """The paper's numbers of films; empty, with the reason, where no finding has boxes to learn from and to test on."""
    try:
        return leave_one_out(loaded, data, TrialPlan(FILMS, draws), track=track).to_json()
    except EvaluationError as error:
        return {"concepts": [], "warnings": [str(error)]}


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
