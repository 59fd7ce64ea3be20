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
    told: dict[str, Any] = {"films": len(chosen)}
    for name, found in (("own", own), ("random", blind)):
        told |= {f"{name}.deletion": float(found.deletion.mean()), f"{name}.insertion": float(found.insertion.mean())}
        told |= {
            f"{name}.deletion.sd": float(found.deletion.std()),
            f"{name}.insertion.sd": float(found.insertion.std()),
        }
        told |= {f"{name}.deletion.curve": found.deletion_curves.mean(axis=0).tolist()}
        told |= {f"{name}.insertion.curve": found.insertion_curves.mean(axis=0).tolist()}
    return told
