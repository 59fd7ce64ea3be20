"""Insertion and deletion: does a method need what its map calls important?"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from medgrape.data.dataset import Dataset
from medgrape.evaluation.faithfulness import answer_of, faithfulness, random_order, saliency_of
from medgrape.evaluation.reading import Loaded
from medgrape.feedback.boxes import opened
from medgrape.progress import Track


def measure_faithfulness(loaded: Loaded, data: Path, films: int, track: Track) -> dict[str, Any]:
    """Areas over some test films, evenly spaced over all of them, beside those of a random order of patches."""
    dataset, model = Dataset.load(data), loaded.run.model
    cached = opened(loaded.run.config, dataset, data, track)
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
