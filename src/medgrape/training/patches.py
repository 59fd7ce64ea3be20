"""Features of every patch of every film, kept on disk (in half precision) for stages 2 and 3."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float

from medgrape.data.arrays import ArrayWriter, mapped
from medgrape.data.files import whole_folder
from medgrape.model.grape import Grape
from medgrape.progress import Track
from medgrape.training.early import BATCH, Inputs
from medgrape.training.films import in_order

Patches = Float[np.ndarray, "n c h w"]
"""Memory-mapped; films in the order of ``TrainingFilms``."""


def open_patches(model: Grape, inputs: Inputs, folder: Path, track: Track) -> Patches:
    """The features of all films, from disk; written there by one pass of the model when they are not yet."""
    if not folder.is_dir():
        with whole_folder(folder) as draft, torch.no_grad():
            _write(model.eval(), inputs, draft / "patches.npy", track)
    return mapped(folder / "patches.npy")


def _write(model: Grape, inputs: Inputs, path: Path, track: Track) -> None:
    batches = list(in_order(range(len(inputs.films)), BATCH))
    with ArrayWriter(path, (model.backbone.features, *inputs.grid), np.float16) as out:
        for positions in track(batches, "features of every patch", len(batches)):
            out.append(inputs.features(model, positions, 0).cpu().numpy())
