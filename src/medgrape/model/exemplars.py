"""The training films that prototypes remind of: small pictures that a run carries along."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from safetensors.torch import load_file
from torch import Tensor

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
        write_tensors(folder / TENSORS, self.tensors)
        (folder / NAMES).write_text(json.dumps(self.names, indent=2) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path) -> "ExemplarFilms":
        """The inverse of ``save``."""
        return cls.of(load_file(folder / TENSORS), json.loads((folder / NAMES).read_text("utf-8")))

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All pixels and numbers."""
        return {
            "thumbnails": torch.from_numpy(self.thumbnails),
            "film": torch.from_numpy(self.film),
            "patch": torch.from_numpy(self.patch),
            "similarity": torch.from_numpy(self.similarity),
        }

    @property
    def names(self) -> dict[str, Any]:
        """All that is no tensor, as plain data."""
        return {"grid": list(self.grid), "films": list(self.films)}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], names: Mapping[str, Any]) -> "ExemplarFilms":
        """From both again."""
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        return cls((names["grid"][0], names["grid"][1]), tuple(names["films"]), **arrays)
