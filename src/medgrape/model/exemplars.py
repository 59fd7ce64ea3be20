"""The training films that prototypes remind of: small pictures that a run carries along."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from safetensors.torch import load_file

from medgrape.data.tensors import write_tensors

TENSORS, NAMES = "exemplars.safetensors", "exemplars.json"


@dataclass(frozen=True)
class ExemplarFilms:
    """For each prototype a patch of a training film; pictures of each film once."""

    grid: tuple[int, int]
    films: tuple[str, ...]
    thumbnails: UInt8[np.ndarray, "films side side"]
    film: Int[np.ndarray, "k m"]
    """Which of ``films``; -1 where no film may be shown."""
    patch: Int[np.ndarray, "k m"]
    """Counted row by row on ``grid``."""
    similarity: Float[np.ndarray, "k m"]

    def save(self, folder: Path) -> None:
        """Two files."""
        tensors = {
            "thumbnails": torch.from_numpy(self.thumbnails),
            "film": torch.from_numpy(self.film),
            "patch": torch.from_numpy(self.patch),
            "similarity": torch.from_numpy(self.similarity),
        }
        write_tensors(folder / TENSORS, tensors)
        told = {"grid": list(self.grid), "films": list(self.films)}
        (folder / NAMES).write_text(json.dumps(told, indent=2) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path) -> "ExemplarFilms":
        """The inverse of ``save``."""
        tensors = load_file(folder / TENSORS)
        told = json.loads((folder / NAMES).read_text("utf-8"))
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        return cls((told["grid"][0], told["grid"][1]), tuple(told["films"]), **arrays)
