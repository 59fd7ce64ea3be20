"""Exemplars: for each prototype the most similar patch of a training film, with a thumbnail of that film."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from safetensors.torch import load_file
from torch import Tensor

from medgrape.files import write_tensors

TENSORS, NAMES = "exemplars.safetensors", "exemplars.json"
ARRAYS = ("thumbnails", "film", "patch", "similarity")
NO_FILM = -1  # Value of `ExemplarFilms.film` where no film may be shown
NO_SIMILARITY = -2.0  # Value of `ExemplarFilms.similarity` where there is none: below any cosine


def thumbnails(films: Sequence[UInt8[np.ndarray, "height width"]], side: int) -> UInt8[np.ndarray, "films side side"]:
    """Shrink films to squares of ``side`` pixels."""
    small = [cv2.resize(film, (side, side), interpolation=cv2.INTER_AREA) for film in films]
    return np.array(small, dtype=np.uint8).reshape(-1, side, side)


@dataclass(frozen=True)
class ExemplarFilms:
    """For each prototype a patch of a training film; each film has one thumbnail."""

    grid: tuple[int, int]
    films: tuple[str, ...]
    thumbnails: UInt8[np.ndarray, "films side side"]
    film: Int[np.ndarray, "k m"]  # Index into `films`; -1 where no film may be shown
    patch: Int[np.ndarray, "k m"]  # Index of the patch on `grid`, row by row
    similarity: Float[np.ndarray, "k m"]

    def save(self, folder: Path) -> None:
        """Write a file of tensors and one of names."""
        write_tensors(folder / TENSORS, self.tensors)
        (folder / NAMES).write_text(json.dumps(self.names, indent=2) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path) -> "ExemplarFilms":
        """Read what ``save`` wrote."""
        return cls.of(load_file(folder / TENSORS), json.loads((folder / NAMES).read_text("utf-8")))

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Thumbnails, indices and similarities."""
        return {name: torch.from_numpy(getattr(self, name)) for name in ARRAYS}

    @property
    def names(self) -> dict[str, Any]:
        """Grid and film names, as JSON data."""
        return {"grid": list(self.grid), "films": list(self.films)}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], names: Mapping[str, Any]) -> "ExemplarFilms":
        """Make exemplars from ``tensors`` and ``names``."""
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        return cls((names["grid"][0], names["grid"][1]), tuple(names["films"]), **arrays)
